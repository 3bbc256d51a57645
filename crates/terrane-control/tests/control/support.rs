//! Databases, clients, and processes that have databases open.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use terrane::{Db, IoBudget, Options};
use terrane_control::{
    Client, ControlSocket, Failure, Interest, Item, Progress, Reply, Request, Watch,
};

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The variable with the role of a child process: `hold DIR` or `compact DIR`.
const ROLE: &str = "TERRANE_CONTROL_TEST_ROLE";

/// An open database that is served.
pub(crate) struct Served {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) db: Db,
    pub(crate) control: Option<ControlSocket>,
}

pub(crate) fn served() -> Served {
    let dir = tempfile::tempdir().unwrap();
    let db = small(dir.path());
    let control = Some(ControlSocket::serve(&db).unwrap());
    Served { dir, db, control }
}

impl Served {
    pub(crate) fn client(&self) -> Client {
        Client::connect(self.dir.path()).unwrap().unwrap()
    }

    pub(crate) fn ask(&self, request: &Request) -> Result<Reply, Failure> {
        self.client().ask(request, &mut Vec::new())
    }

    /// Fills the database with runs whose compaction takes minutes.
    pub(crate) fn make_slow(&self) {
        for round in 0..3 {
            for number in 0..400u32 {
                self.db.put(format!("{number:05}"), [round; 2000]).unwrap();
            }
            self.db.flush().unwrap();
        }
        self.db.set_io_budget(IoBudget::Total(64 << 10)).unwrap();
    }

    /// Waits until this many jobs are running.
    pub(crate) fn wait_for_jobs(&self, jobs: usize) {
        let maintenance = terrane::Maintenance::of(&self.db);
        wait(|| maintenance.jobs().len() == jobs);
    }
}

fn small(dir: &Path) -> Db {
    Options::new().design("tiering T=10 L0=10; buffer=1MiB".parse().unwrap()).open(dir).unwrap()
}

/// Waits until `holds` returns true.
pub(crate) fn wait(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < DEADLINE, "nothing happened");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Cancels after some reports of progress, or some items.
#[derive(Debug, Default)]
pub(crate) struct CancelAfter {
    pub(crate) reports: usize,
    pub(crate) items: Vec<Item>,
    pub(crate) seen: Vec<Progress>,
}

impl Watch for CancelAfter {
    fn item(&mut self, item: Item) {
        self.items.push(item);
    }

    fn progress(&mut self, progress: &Progress) {
        self.seen.push(progress.clone());
    }

    fn interest(&mut self) -> Interest {
        let seen = self.seen.len() + self.items.len();
        if seen >= self.reports { Interest::Cancelled } else { Interest::Waiting }
    }
}

/// A connection without the client of the library.
pub(crate) struct Raw {
    pub(crate) stream: UnixStream,
    pub(crate) lines: BufReader<UnixStream>,
}

impl Raw {
    /// Connects, and reads the first message.
    pub(crate) fn connect(dir: &Path) -> Self {
        let mut raw = Self::without_greeting(dir);
        let hello = raw.line();
        assert!(hello.starts_with(r#"{"message":"hello","protocol":1,"#), "{hello}");
        raw
    }

    pub(crate) fn without_greeting(dir: &Path) -> Self {
        let stream = UnixStream::connect(dir.join("control.sock")).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        let lines = BufReader::new(stream.try_clone().unwrap());
        Self { stream, lines }
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
        self.stream.write_all(b"\n").unwrap();
    }

    /// Returns the next line, or an empty string at the end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    pub(crate) fn ask(&mut self, text: &str) -> String {
        self.send(text);
        self.line()
    }
}

/// Another process of this test program.
pub(crate) struct Process {
    pub(crate) child: Child,
    /// The process ends when this is closed.
    pub(crate) input: Option<ChildStdin>,
}

impl Process {
    pub(crate) fn begin(role: &str, dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "support::other_process", "--test-threads=1"])
            .env(ROLE, format!("{role} {}", dir.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        Self { child, input }
    }

    /// Begins a process that writes a database and serves it.
    pub(crate) fn hold(dir: &Path) -> Self {
        let process = Self::begin("hold", dir);
        wait(|| Client::connect(dir).is_ok_and(|client| client.is_some()));
        process
    }

    /// Ends the process as `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Makes the process end by itself, and waits for it.
    pub(crate) fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

/// Does nothing unless [`ROLE`] is set, as it is in a child process.
#[test]
fn other_process() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let (role, dir) = role.split_once(' ').unwrap();
    let dir = PathBuf::from(dir);
    match role {
        "hold" => hold(&dir),
        "compact" => {
            let request = Request::Compact { keyspace: None, from: None, to: None };
            let mut client = Client::connect(&dir).unwrap().unwrap();
            // The test kills this process before the request ends.
            client.ask(&request, &mut Vec::new()).unwrap();
        }
        other => panic!("{other}"),
    }
}

/// Writes to a database and serves it, until standard input ends.
fn hold(dir: &Path) {
    let db = small(dir);
    let control = ControlSocket::serve(&db).unwrap();
    let writer = {
        let db = db.clone();
        thread::spawn(move || {
            for number in 0..u64::MAX {
                let key = format!("{:08}", number % 50_000);
                if db.put(key, number.to_le_bytes().repeat(10)).is_err() {
                    return;
                }
                if number % 100 == 0 {
                    thread::sleep(Duration::from_millis(1));
                }
            }
        })
    };
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    drop(control);
    db.close().unwrap();
    writer.join().unwrap();
}
