//! Runs a command concurrently with others: every line of its output begins with its name.

use std::io::{BufRead, BufReader, PipeReader};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::step::StepResult;

/// A running command. Its output is printed as it comes.
pub(crate) struct Beside {
    name: String,
    child: Child,
    printer: JoinHandle<()>,
}

impl Beside {
    pub(crate) fn start(name: &str, mut command: Command) -> Result<Self, String> {
        let failed = |error| format!("{name}: {error}");
        let (reader, writer) = std::io::pipe().map_err(failed)?;
        let errors = writer.try_clone().map_err(failed)?;
        command.stdin(Stdio::null()).stdout(writer).stderr(errors);
        let child = command.spawn().map_err(failed)?;
        // The command has copies of the write end; the printer ends when all of them are closed.
        drop(command);
        let prefix = name.to_owned();
        let printer = thread::spawn(move || print(&prefix, reader));
        Ok(Self { name: name.to_owned(), child, printer })
    }

    /// Waits for the end of the command.
    pub(crate) fn end(mut self) -> StepResult {
        let status = self.child.wait().map_err(|error| format!("{}: {error}", self.name))?;
        if self.printer.join().is_err() {
            return Err(format!("{}: its output cannot be printed", self.name));
        }
        if status.success() { Ok(()) } else { Err(format!("{} failed, see above", self.name)) }
    }
}

/// Prints every line after a prefix, even one that is not UTF-8.
fn print(prefix: &str, reader: PipeReader) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        println!("{prefix}| {}", String::from_utf8_lossy(&line).trim_end());
        line.clear();
    }
}
