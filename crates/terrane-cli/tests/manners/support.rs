//! Runs the command, at once or line by line.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;

use terrane_testkit::HANG_LIMIT;

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn run(args: &[&str], input: &[u8]) -> Output {
    let mut child = command(args).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A command that reads nothing may have exited already.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().unwrap()
    })
}

/// Exit code, standard output and standard error.
pub(crate) fn run_to_end(args: &[&str], input: &str) -> (i32, String, String) {
    let output = run(args, input.as_bytes());
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Standard output of a command that must succeed.
pub(crate) fn done(args: &[&str], input: &str) -> String {
    let (code, out, error) = run_to_end(args, input);
    assert_eq!(code, 0, "{args:?}: {error}");
    out
}

pub(crate) fn path(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

/// A process that a test talks to line by line.
pub(crate) struct Talk {
    pub(crate) child: Child,
    answers: mpsc::Receiver<String>,
}

impl Talk {
    /// Starts the command with `temporary` as its directory for temporary files, which the test
    /// removes because a killed process cannot.
    pub(crate) fn with(args: &[&str], temporary: &Path) -> Self {
        let mut child = command(args).env("TMPDIR", temporary).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let (tell, answers) = mpsc::channel();
        std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    break;
                }
            }
        });
        Self { child, answers }
    }

    pub(crate) fn say(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn answer(&mut self) -> String {
        self.answers.recv_timeout(HANG_LIMIT).unwrap()
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Interrupts a process like Ctrl-C.
pub(crate) fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}
