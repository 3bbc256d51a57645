//! `terrane serve`: the log for an operator.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command};
use std::sync::mpsc;

use terrane_testkit::HANG_LIMIT;

use crate::support::{command, done, path};

/// A server whose log is read line by line.
struct Served {
    child: Child,
    lines: mpsc::Receiver<String>,
    address: String,
}

impl Served {
    fn start(args: &[&str]) -> Self {
        let listen = ["serve", "--listen", "127.0.0.1:0"];
        let mut served = Self::of(command(&[&listen[..], args].concat()));
        let line = served.line("listening on redis://");
        let (_, after) = line.split_once("redis://").unwrap();
        served.address = after
            .split(|c: char| c != '.' && c != ':' && !c.is_ascii_digit())
            .next()
            .unwrap()
            .into();
        served
    }

    /// Starts a server, and does not wait until it listens.
    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            log.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)).ok();
        });
        Self { child, lines, address: String::new() }
    }

    /// Waits for a line of the log with a text.
    fn line(&self, wanted: &str) -> String {
        let mut seen = Vec::new();
        loop {
            let line = self.lines.recv_timeout(HANG_LIMIT);
            assert!(line.is_ok(), "no line with '{wanted}' in {seen:#?}");
            match line.unwrap() {
                line if line.contains(wanted) => return line,
                line => seen.push(line),
            }
        }
    }

    fn send(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server printed four lines at its start, and nothing about a damaged table or its end.
#[test]
fn the_log_has_a_line_for_start_damage_and_end() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    done(&["shell", &db], "put a 1\nflush\nput b 2\n");
    for entry in std::fs::read_dir(&db).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sst") {
            let mut bytes = std::fs::read(&path).unwrap();
            bytes[3] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
    }
    let mut served = Served::start(&[&db, "--log-format", "text"]);
    assert!(served.send("GET a\r\n").starts_with("-"), "the table is not damaged");
    let line = served.line("reads found damage");
    assert!(
        line.contains(" ERROR ") && line.contains(".sst") && line.contains("times=1"),
        "{line}"
    );
    served.send("SHUTDOWN\r\n");
    served.line("stopping, because a client sent SHUTDOWN");
    let line = served.line("closed the database");
    assert!(line.contains("uptime"), "{line}");
    assert!(served.child.wait().unwrap().success());
}

#[test]
fn the_log_is_json_on_request_and_has_the_chosen_level() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut served = Served::start(&[&db, "--log-format", "json"]);
    served.send("CONFIG SET maxclients 17\r\nSHUTDOWN\r\n");
    let line: serde_json::Value = serde_json::from_str(&served.line("setting-changed")).unwrap();
    assert_eq!(line["message"], "a client set maxclients to 17");
    assert_eq!(line["level"], "info");
    let line: serde_json::Value = serde_json::from_str(&served.line("\"stopped\"")).unwrap();
    assert_eq!(line["commands"], 2);
    assert!(served.child.wait().unwrap().success());
}

/// Warnings of the engine about the machine were not in the log.
#[cfg(target_os = "linux")]
#[test]
fn the_log_warns_of_a_budget_beyond_the_limit_of_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let (program, db) = (env!("CARGO_BIN_EXE_terrane"), path(dir.path(), "db"));
    let serve = format!("exec '{program}' serve '{db}' --listen 127.0.0.1:0 --memory-budget 2GiB");
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("ulimit -v 1500000; {serve}")]).stderr(std::process::Stdio::piped());
    let served = Served::of(shell);
    let line = served.line("memory_budget is 2.00 GiB");
    assert!(
        line.contains("limited to 1.4") && line.contains(" GiB by the rest of RLIMIT_AS"),
        "{line}"
    );
}
