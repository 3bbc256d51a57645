//! How commands end: with pipes, full disks, signals.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;

use terrane_testkit::wait_until;

use crate::support::{Talk, command, done, interrupt, path, run, run_to_end};

/// A reader that waits for each answer hung, because the command buffered answers.
#[test]
fn answers_are_flushed_before_more_input_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut shell = Talk::with(&["shell", &db], dir.path());
    let mut cs265 = Talk::with(&["cs265"], dir.path());
    for number in 0..20 {
        shell.say(&format!("put k{number} v{number}"));
        assert_eq!(shell.answer(), "ok");
        shell.say("count");
        assert_eq!(shell.answer(), (number + 1).to_string());
        cs265.say(&format!("p {number} 7"));
        cs265.say(&format!("g {number}"));
        assert_eq!(cs265.answer(), "7");
    }
}

#[test]
fn answered_writes_survive_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut shell = Talk::with(&["shell", &db], dir.path());
    for number in 0..100 {
        shell.say(&format!("put k{number} {number}"));
        assert_eq!(shell.answer(), "ok");
    }
    // SIGKILL: nothing is flushed, nothing is closed.
    drop(shell);
    assert_eq!(done(&["shell", &db, "-c", "count", "-c", "get k99"], ""), "100\n99\n");
    assert!(done(&["verify", &db], "").starts_with("ok: "));
}

/// Like `| head`: the reader exits once it has seen enough.
#[test]
fn a_reader_that_goes_away_ends_a_command_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut entries = String::new();
    for number in 0..30_000 {
        writeln!(entries, "key{number}\tvalue{number}").unwrap();
    }
    done(&["load", &db, "-"], &entries);
    for args in [
        &["dump", &db][..],
        &["shell", &db, "--read-only", "-c", "scan"],
        &["shell", &db, "--read-only", "-c", "scan", "--json"],
    ] {
        let mut child = command(args).spawn().unwrap();
        drop(child.stdin.take());
        let mut some = [0; 100];
        child.stdout.as_mut().unwrap().read_exact(&mut some).unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &error[..]), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn an_unknown_page_of_the_manual_is_a_usage_error() {
    for args in [&["man", "nothing"][..], &["man", "inspect", "nothing"]] {
        let (code, out, error) = run_to_end(args, "");
        assert_eq!((code, &out[..]), (2, ""), "{args:?}: {error}");
        assert!(error.contains("unknown subcommand 'nothing'"), "{args:?}: {error}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    for args in [&["options"][..], &["design", "list"], &["completions", "zsh"], &["man"]] {
        let out = std::fs::OpenOptions::new().write(true).open(full).unwrap();
        let mut child = command(args).stdout(out).spawn().unwrap();
        drop(child.stdin.take());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {error}");
        let place = "cannot write to standard output: No space left";
        assert!(error.contains(place), "{args:?}: {error}");
    }
}

#[test]
fn an_interrupted_load_leaves_a_whole_database() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut child = command(&["load", &db, "-"]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let lines: String = (0..5000).map(|number| format!("key{number}\tvalue\n")).collect();
    stdin.write_all(lines.as_bytes()).unwrap();
    stdin.flush().unwrap();
    // Another process may read during the load, and sees when all lines are loaded.
    let is_loaded = || run(&["shell", &db, "--read-only", "-c", "count"], b"").stdout == b"5000\n";
    wait_until(is_loaded, || "the load never ends".into());
    interrupt(&child);
    assert!(!child.wait().unwrap().success());
    drop(stdin);
    assert!(done(&["verify", &db], "").starts_with("ok: "));
    assert_eq!(done(&["shell", &db, "-c", "count"], ""), "5000\n");
}

#[test]
fn an_interrupted_cs265_removes_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let mut started = command(&["cs265"]);
    let mut child = started.env("TMPDIR", dir.path()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "p 1 2\ng 1").unwrap();
    let mut answer = [0; 2];
    child.stdout.as_mut().unwrap().read_exact(&mut answer).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// The flags exist in every build, so that a build without TLS can report what it lacks.
#[test]
fn a_server_for_tls_names_what_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let (db, file) = (path(dir.path(), "db"), path(dir.path(), "none.pem"));
    let listen = ["serve", &db, "--tls-listen", "127.0.0.1:0"];
    let (code, _, error) = run_to_end(&listen, "");
    assert!(code == 2 && error.contains("--tls-cert") && error.contains("--tls-key"), "{error}");
    let files = [&listen[..], &["--tls-cert", &file, "--tls-key", &file]].concat();
    let (code, _, error) = run_to_end(&files, "");
    let expected = if cfg!(feature = "tls") { &*file } else { "feature 'tls'" };
    assert!(code == 1 && error.contains(expected), "{error}");
}
