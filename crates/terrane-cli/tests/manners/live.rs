//! The live picture and recordings: `top --web`, `top --record`, `serve --web`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;
use terrane_testkit::HANG_LIMIT;

use crate::support::{Talk, path, run_to_end};

/// The address of a picture.
struct Address {
    port: u16,
    token: String,
}

impl Address {
    fn of(text: &str) -> Self {
        let rest = text.split("http://127.0.0.1:").nth(1).unwrap();
        let (port, token) = rest.split_once("/#live&token=").unwrap();
        Self { port: port.parse().unwrap(), token: token.trim().to_owned() }
    }

    fn send(&self, request: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(HANG_LIMIT)).unwrap();
        let (port, len) = (self.port, body.len());
        let head =
            format!("{request} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Length: {len}\r\n");
        write!(stream, "{head}{headers}\r\n{body}").unwrap();
        stream
    }

    /// Returns the whole answer.
    fn ask(&self, request: &str, headers: &str, body: &str) -> String {
        let mut answer = String::new();
        self.send(request, headers, body).read_to_string(&mut answer).unwrap();
        answer
    }

    /// Returns the data of the events of the stream, line by line.
    fn stream(&self) -> impl Iterator<Item = Value> + use<> {
        let stream = self.send(&format!("GET /live/stream?token={}", self.token), "", "");
        let lines = BufReader::new(stream).lines().map_while(Result::ok);
        lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
    }
}

/// Returns the next line of a kind.
fn item(lines: &mut impl Iterator<Item = Value>, kind: &str) -> Value {
    lines.find(|line| line["item"] == kind).unwrap()
}

/// A shell that has a database with one table open.
fn holder(place: &str, dir: &Path) -> Talk {
    let mut shell = Talk::with(&["shell", place], dir);
    shell.say("put held 1");
    assert_eq!(shell.answer(), "ok");
    shell
}

#[test]
fn a_picture_follows_the_database_through_processes() {
    let dir = tempfile::tempdir().unwrap();
    let place = path(dir.path(), "db");
    drop(holder(&place, dir.path()));
    let mut top =
        Talk::with(&["top", &place, "--web", "--no-browser", "--interval", "100ms"], dir.path());
    let address = Address::of(&top.answer());
    let mut lines = address.stream();

    // Without a process, the files are shown once.
    let connected = item(&mut lines, "connected");
    assert!(connected["database"] == *place && connected["process"].is_null(), "{connected}");
    let sample = item(&mut lines, "sample");
    assert_eq!(sample["trees"][0]["keyspace"], "default");
    let gone = item(&mut lines, "disconnected");
    assert!(gone["text"].as_str().unwrap().contains("no process serves"), "{gone}");

    let mut shell = holder(&place, dir.path());
    let connected = item(&mut lines, "connected");
    assert_eq!(connected["process"]["pid"], shell.child.id());
    assert_eq!(connected["options"]["durability"], "process");
    shell.say("flush");
    let tables = item(&mut lines, "tables");
    assert_eq!(tables["is_whole"], true);
    let is_put = |line: &Value| line["trees"][0]["added"][0]["start"] == "held";
    assert!(is_put(&tables) || lines.any(|line| is_put(&line)));
    assert!(lines.any(|line| line["item"] == "event" && line["event"] == "flush-ended"));

    // The process is killed; another one takes over.
    drop(shell);
    let gone = item(&mut lines, "disconnected");
    assert!(gone["text"].as_str().unwrap().contains("lost process"), "{gone}");
    let shell = holder(&place, dir.path());
    let connected = item(&mut lines, "connected");
    assert_eq!(connected["process"]["pid"], shell.child.id());
    // A page that comes later receives all of it.
    let pids: Vec<Value> = address
        .stream()
        .take_while(|line| {
            line["item"] != "connected" || line["process"]["pid"] != shell.child.id()
        })
        .filter(|line| line["item"] == "connected")
        .collect();
    assert_eq!(pids.len(), 2);
    let recording = format!("GET /live/recording?token={}", address.token);
    let recording = address.ask(&recording, "", "");
    assert!(recording.matches(r#"{"item":"connected""#).count() == 3, "{recording:.300}");
}

#[test]
fn a_picture_is_for_those_with_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let place = path(dir.path(), "db");
    let _shell = holder(&place, dir.path());
    let mut top = Talk::with(&["top", &place, "--web", "--no-browser"], dir.path());
    let address = Address::of(&top.answer());
    let page = address.ask("GET /", "", "");
    assert!(page.starts_with("HTTP/1.1 200 OK") && page.ends_with("</html>\n"), "{page:.300}");
    for (request, headers) in [
        ("GET /live/stream".to_owned(), ""),
        (format!("GET /live/stream?token={}0", address.token), ""),
        (format!("GET /live/stream?token={}", address.token), "Origin: http://evil.example\r\n"),
        (
            format!("POST /live/design?token={}", address.token),
            "Content-Type: application/json\r\n",
        ),
    ] {
        let answer = address.ask(&request, headers, "");
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden"), "{request}: {answer}");
    }
    // A second picture has another token.
    let mut other = Talk::with(&["top", &place, "--web", "--no-browser"], dir.path());
    assert_ne!(Address::of(&other.answer()).token, address.token);
}

#[test]
fn a_served_database_shows_its_picture_and_changes_its_design() {
    const LEVELING: &str = r#"{"keyspace":"default","design":"leveling"}"#;
    let dir = tempfile::tempdir().unwrap();
    let place = path(dir.path(), "db");
    let arguments = [
        "serve",
        &place,
        "--listen",
        "127.0.0.1:0",
        "--design",
        "tiering",
        "--web",
        "--allow-changes",
    ];
    let mut serve = Talk::with(&arguments, dir.path());
    let address = loop {
        let line = serve.answer();
        if line.starts_with("picture ") {
            break Address::of(&line);
        }
    };
    let mut lines = address.stream();
    assert_eq!(lines.next().unwrap()["allows_changes"], true);
    let connected = item(&mut lines, "connected");
    assert_eq!(connected["process"]["pid"], serve.child.id());
    let headers =
        format!("X-Terrane-Token: {}\r\nContent-Type: application/json\r\n", address.token);
    let answer = address.ask("POST /live/design", &headers, LEVELING);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let is_leveling = |line: &Value| {
        let design = &line["trees"][0]["design"];
        line["item"] == "sample"
            && design.as_str().is_some_and(|design| design.starts_with("leveling"))
    };
    assert!(lines.any(|line| is_leveling(&line)));
    // The server ends although a page is open, and the database is closed.
    crate::support::interrupt(&serve.child);
    let begun = Instant::now();
    while serve.child.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < HANG_LIMIT, "the server does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(lines.all(|line| line["item"] != "connected"));
}

#[test]
fn a_recording_survives_its_command() {
    let dir = tempfile::tempdir().unwrap();
    let place = path(dir.path(), "db");
    let _shell = holder(&place, dir.path());
    let file = path(dir.path(), "incident.jsonl");
    let top = Talk::with(&["top", &place, "--record", &file, "--interval", "100ms"], dir.path());
    let begun = Instant::now();
    let text = loop {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        if text.matches(r#"{"item":"sample""#).count() > 2 {
            break text;
        }
        assert!(begun.elapsed() < HANG_LIMIT, "{text}");
        std::thread::sleep(Duration::from_millis(20));
    };
    drop(top);
    let kinds: Vec<String> = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .map(|line| line["item"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds.get(..2).unwrap(), ["connected", "tables"], "{kinds:?}");
    assert!(kinds.iter().any(|kind| kind == "sample"));
    // A recording is not replaced by another one.
    let (code, _, error) = run_to_end(&["top", &place, "--record", &file], "");
    assert!(code == 1 && error.contains("cannot write") && error.contains(&file), "{code} {error}");
    assert!(std::fs::read_to_string(&file).unwrap().starts_with(&text));
}

#[test]
fn flags_of_a_picture_need_one() {
    let dir = tempfile::tempdir().unwrap();
    let place = path(dir.path(), "db");
    for arguments in [
        &["top", &place, "--allow-changes"][..],
        &["top", &place, "--no-browser"],
        &["serve", &place, "--web-port", "7000"],
        &["top", &place, "--web", "--json"],
        &["top", &place, "--record", "x", "--count", "3"],
    ] {
        let (code, _, error) = run_to_end(arguments, "");
        assert_eq!(code, 2, "{arguments:?}: {error}");
    }
    let (code, _, error) = run_to_end(&["top", &place, "--web"], "");
    assert!(code == 1 && error.contains(&place), "{code} {error}");
    assert!(!Path::new(&place).exists());
}
