//! Runs a command concurrently with others: every line of its output begins with its name.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, PipeReader};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};

use crate::step::StepResult;

/// The last lines of a failed command that its error repeats. Where only the end of the whole output is kept, the
/// command's own lines may have been dropped.
const REPEATED_LINES: usize = 20;

/// A running command. Its output is printed as it comes.
pub(crate) struct Beside {
    name: String,
    child: Child,
    printer: JoinHandle<VecDeque<String>>,
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
        let Ok(last) = self.printer.join() else {
            return Err(format!("{}: its output cannot be printed", self.name));
        };
        if status.success() {
            return Ok(());
        }
        Err(format!("{} failed; its last lines:\n{}", self.name, Vec::from(last).join("\n")))
    }
}

/// Prints every line after a prefix, even one that is not UTF-8. Returns the last ones.
fn print(prefix: &str, reader: PipeReader) -> VecDeque<String> {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    let mut last = VecDeque::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        let prefixed = format!("{prefix}| {}", String::from_utf8_lossy(&line).trim_end());
        println!("{prefixed}");
        if last.len() == REPEATED_LINES {
            last.pop_front();
        }
        last.push_back(prefixed);
        line.clear();
    }
    last
}
