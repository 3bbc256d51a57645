//! Commands on a database that another process or no process has open.

use std::path::Path;
use std::process::Child;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use terrane_testkit::HANG_LIMIT;

use crate::support::{Talk, command, done, interrupt, path, run_to_end};

/// A database in three runs with a second keyspace, that no process has open.
fn filled(dir: &Path) -> String {
    let place = path(dir, "db");
    let design = "tiering T=10 L0=10; buffer=1MiB".parse().unwrap();
    let db = terrane::Options::new().design(design).open(&place).unwrap();
    for round in 0..3 {
        for number in 0..100u32 {
            db.put(format!("{number:05}"), [round; 2000]).unwrap();
        }
        db.flush().unwrap();
    }
    db.keyspace("users", terrane::KeyspaceOptions::new()).unwrap().put("ada", "1").unwrap();
    db.close().unwrap();
    place
}

/// A shell that has the database open.
fn holder(place: &str, dir: &Path) -> Talk {
    let mut shell = Talk::with(&["shell", place], dir);
    shell.say("put held 1");
    assert_eq!(shell.answer(), "ok");
    shell
}

/// Replaces the differences between two runs: times, the directory, and the names of tables.
fn plain(text: &str, dir: &Path) -> String {
    let text = text.replace(dir.to_str().unwrap(), "DIR");
    let word =
        |word: &str| if word.contains(".sst") { "TABLE".to_owned() } else { word.to_owned() };
    let mut text = text.split(' ').map(word).collect::<Vec<_>>().join(" ");
    if let Ok(Value::Object(mut object)) = serde_json::from_str(&text) {
        // The rate depends on the time that earlier compactions took.
        for name in ["seconds", "bytes_per_second"] {
            object.remove(name);
        }
        text = Value::Object(object).to_string();
    }
    text
}

/// The commands that change a database, in an order in which each of them has something to do.
const CHANGES: &[&[&str]] = &[
    &["flush", "DB"],
    &["flush", "DB", "--json"],
    &["flush", "DB", "--keyspace", "none"],
    &["compact", "DB", "a..b"],
    &["compact", "DB", "--json"],
    &["compact", "DB", "--keyspace", "none"],
    &["compact", "DB", "a..", "x y"],
    &["checkpoint", "DB", "DIR/copy", "--json"],
    &["checkpoint", "DB", "DIR/copy"],
    &["checkpoint", "DB", "DIR/copy2"],
    &["keyspace", "rename", "DB", "users", "people"],
    &["keyspace", "rename", "DB", "users", "people"],
    &["keyspace", "rename", "DB", "people", "default"],
    &["keyspace", "drop", "DB", "default"],
    &["keyspace", "drop", "DB", "people"],
    &["keyspace", "drop", "DB", "people"],
    &["design", "set", "DB", "leveling T=4", "--json"],
    &["design", "set", "DB", "--undo", "--converge"],
    &["design", "set", "DB", "levelling"],
    &["design", "set", "DB", "tiering", "--keyspace", "none"],
    &["design", "set", "DB", "tiering", "--dry-run"],
    &["keyspace", "list", "DB"],
    &["keyspace", "list", "DB", "--json"],
    &["verify", "DB"],
];

#[test]
fn commands_say_the_same_whether_or_not_a_process_has_the_database_open() {
    let answers = |is_open: bool| {
        let dir = tempfile::tempdir().unwrap();
        let place = filled(dir.path());
        let write = &["shell", &place, "-c", "put held 1"];
        let _shell = if is_open {
            Some(holder(&place, dir.path()))
        } else {
            done(write, "");
            None
        };
        let home = dir.path().to_str().unwrap();
        let answer = |args: &&[&str]| {
            let args: Vec<String> =
                args.iter().map(|arg| arg.replace("DB", &place).replace("DIR", home)).collect();
            let args: Vec<&str> = args.iter().map(String::as_str).collect();
            let (code, out, error) = run_to_end(&args, "");
            (code, plain(&out, dir.path()), plain(&error, dir.path()))
        };
        CHANGES.iter().map(answer).collect::<Vec<_>>()
    };
    let (closed, open) = (answers(false), answers(true));
    for ((args, mut closed), open) in CHANGES.iter().zip(closed).zip(open) {
        if args[0] == "flush" && closed.0 == 0 {
            // A shell flushes when it ends, so only the open database has something to flush.
            assert_eq!(closed.0, open.0, "{args:?}");
            continue;
        }
        if args[0] == "verify" {
            closed.1 = open.1.clone();
        }
        assert_eq!(closed, open, "{args:?}");
    }
}

#[test]
fn live_statistics_are_those_of_the_process() {
    let dir = tempfile::tempdir().unwrap();
    let place = filled(dir.path());
    let mut shell = holder(&place, dir.path());
    shell.say("get held");
    assert_eq!(shell.answer(), "1");
    let object: Value = serde_json::from_str(&done(&["stats", &place, "--json"], "")).unwrap();
    assert_eq!((&object["schema"], &object["source"]), (&1.into(), &"process".into()));
    assert_eq!((&object["gets"], &object["writes"]), (&1.into(), &1.into()));
    let metrics = done(&["stats", &place, "--openmetrics"], "");
    assert!(metrics.contains("terrane_gets_total 1\n") && metrics.ends_with("# EOF\n"));
    let text = done(&["stats", &place], "");
    assert!(text.contains("gets                1 (1 found)"), "{text}");
    let top = done(&["top", &place, "--interval", "100ms"], "");
    let pid = format!("process {} (terrane)", shell.child.id());
    assert!(top.contains(&pid) && top.contains("tree           default: memtable"), "{top}");
    assert!(top.contains("  level 0") && top.contains("3 runs"), "{top}");
    let json = done(&["top", &place, "--interval", "100ms", "--count", "2", "--json"], "");
    let samples: Vec<Value> =
        json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(samples.len(), 2);
    assert_eq!(
        (&samples[1]["schema"], &samples[1]["operations"]["writes"]),
        (&1.into(), &1.into())
    );
    let options = done(&["options", "set", &place, "io_budget", "50MiB"], "");
    assert!(options.contains("io_budget      50MiB"), "{options}");
    assert_eq!(done(&["options", "show", &place], ""), options);
    for (args, code) in [
        (&["options", "set", &place, "io_budget", "1"][..], 2),
        (&["options", "set", &place, "memory_budget", "1GiB"], 2),
        (&["options", "set", &place, "nonsense", "1"], 2),
        (&["top", &place, "--interval", "1ms"], 2),
    ] {
        assert_eq!(run_to_end(args, "").0, code, "{args:?}");
    }
}

#[test]
fn views_of_a_closed_database_are_those_of_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let place = filled(dir.path());
    done(&["compact", &place], "");
    let (code, out, error) = run_to_end(&["top", &place], "");
    assert!(code == 0 && error.contains("no process serves"), "{error}");
    assert!(out.contains("health         read-only") && out.contains("tree "), "{out}");
    let (code, out, error) = run_to_end(&["events", &place], "");
    assert!(code == 0 && error.contains("that its files record"), "{error}");
    assert!(out.contains("default: compacted L0"), "{out}");
    let json = done(&["events", &place, "--json", "--last", "1"], "");
    let event: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&event["event"], &event["schema"]), (&"job-ended".into(), &1.into()));
    for args in [
        &["events", &place, "--follow"][..],
        &["options", "show", &place],
        &["options", "set", &place, "io_budget", "50MiB"],
    ] {
        let (code, _, error) = run_to_end(args, "");
        assert!(code == 1 && error.contains("no process serves"), "{args:?}: {code} {error}");
    }
    let nothing = path(dir.path(), "nothing");
    for name in ["top", "events", "flush", "stats"] {
        let (code, _, error) = run_to_end(&[name, &nothing], "");
        assert!(code == 1 && error.contains("no database"), "{name}: {code} {error}");
    }
}

#[test]
fn events_are_followed() {
    let dir = tempfile::tempdir().unwrap();
    let place = filled(dir.path());
    let mut shell = holder(&place, dir.path());
    let mut events = Talk::with(&["events", &place, "--follow", "--json"], dir.path());
    shell.say("flush");
    assert_eq!(shell.answer(), "ok");
    let mut names = Vec::new();
    while names.last().is_none_or(|name| name != "flush-ended") {
        let event: Value = serde_json::from_str(&events.answer()).unwrap();
        assert!(event["number"].is_u64() && event["text"].is_string(), "{event}");
        names.push(event["event"].as_str().unwrap().to_owned());
    }
    interrupt(&events.child);
    assert_eq!(events.child.wait().unwrap().code(), Some(0));
    let text = done(&["events", &place, "--last", "1"], "");
    assert!(text.contains("default: flushed into 1 table"), "{text}");
}

/// Waits until a process has ended, and returns its exit code; `None` if it does not end.
fn ended(child: &mut Child) -> Option<i32> {
    let begun = std::time::Instant::now();
    while begun.elapsed() < HANG_LIMIT {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        thread::sleep(Duration::from_millis(10));
    }
    None
}

#[test]
fn an_interrupted_compaction_is_cancelled_in_the_process_that_runs_it() {
    let dir = tempfile::tempdir().unwrap();
    let place = filled(dir.path());
    let _shell = holder(&place, dir.path());
    done(&["options", "set", &place, "io_budget", "64KiB"], "");
    let jobs = || {
        let json = done(&["top", &place, "--interval", "100ms", "--count", "1", "--json"], "");
        let sample: Value = serde_json::from_str(&json).unwrap();
        sample["jobs"].as_array().unwrap().clone()
    };
    let mut compacting = command(&["compact", &place]).spawn().unwrap();
    let begun = std::time::Instant::now();
    while !jobs().iter().any(|job| job["job"] == "compaction") {
        assert!(begun.elapsed() < HANG_LIMIT, "no compaction");
    }
    interrupt(&compacting);
    assert_eq!(ended(&mut compacting), Some(130));
    while !jobs().is_empty() {
        assert!(begun.elapsed() < HANG_LIMIT, "the compaction goes on");
    }
}

#[test]
fn a_process_that_serves_no_socket_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let place = filled(dir.path());
    let mut shell = Talk::with(&["shell", &place, "--no-control"], dir.path());
    shell.say("put a 1");
    assert_eq!(shell.answer(), "ok");
    for args in [
        &["flush", &place][..],
        &["compact", &place],
        &["checkpoint", &place, &path(dir.path(), "copy")],
        &["design", "set", &place, "tiering"],
        &["keyspace", "drop", &place, "users"],
    ] {
        let (code, _, error) = run_to_end(args, "");
        assert_eq!(code, 5, "{args:?}: {error}");
        assert!(error.contains(&format!("process {}", shell.child.id())), "{error}");
        assert!(error.contains("or let that process serve a control socket"), "{error}");
    }
    let (code, out, error) = run_to_end(&["top", &place], "");
    assert!(
        code == 0 && out.contains("read-only") && error.contains("no process serves"),
        "{error}"
    );
}

#[test]
fn files_are_read_directly_while_a_writer_is_busy() {
    let dir = tempfile::tempdir().unwrap();
    let place = filled(dir.path());
    let input = (0..200_000).map(|number| format!("{number:08}\tvalue\n")).collect::<String>();
    let mut load = command(&["load", &place, "-", "--keyspace", "busy"]).spawn().unwrap();
    let mut stdin = load.stdin.take().unwrap();
    let writer = thread::spawn(move || {
        use std::io::Write;
        for chunk in input.as_bytes().chunks(100_000) {
            stdin.write_all(chunk).unwrap();
            thread::sleep(Duration::from_millis(20));
        }
    });
    thread::sleep(Duration::from_millis(200));
    for _ in 0..3 {
        assert_eq!(run_to_end(&["verify", &place], "").0, 0);
        assert!(done(&["dump", &place], "").starts_with("00000\t"));
        let stats = done(&["stats", &place, "--json"], "");
        assert!(serde_json::from_str::<Value>(&stats).unwrap()["source"].is_string());
    }
    writer.join().unwrap();
    assert_eq!(ended(&mut load), Some(0));
    assert!(!dir.path().join("db/control.sock").exists());
}
