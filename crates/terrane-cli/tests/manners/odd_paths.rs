//! Paths that are not UTF-8, and arguments that no other process may read.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{Talk, done, path, run_to_end};

fn run(dir: &Path, args: &[&OsStr]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_terrane"));
    command.args(args).current_dir(dir).stdin(Stdio::null()).output().unwrap()
}

fn words<'a>(text: &'a str, db: &'a OsStr) -> Vec<&'a OsStr> {
    text.split(' ').map(|word| if word == "DB" { db } else { OsStr::new(word) }).collect()
}

/// Opening a database panicked if any argument of the process was not UTF-8.
#[test]
fn every_command_takes_a_path_that_is_not_utf8() {
    let dir = tempfile::tempdir().unwrap();
    let db = OsStr::from_bytes(b"od\xff");
    if std::fs::create_dir(dir.path().join(db)).is_err() {
        // Some file systems accept only UTF-8.
        return;
    }
    std::fs::write(dir.path().join("in.tsv"), "c\t3\n").unwrap();
    let succeed = |line: &str| {
        let output = run(dir.path(), &words(line, db));
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{line}: {error}");
        String::from_utf8(output.stdout).unwrap()
    };
    for line in [
        "shell DB --create -c count",
        "load DB in.tsv",
        "load DB in.tsv --json",
        "shell DB --read-only -c scan --json",
        "compact DB --json",
        "verify DB",
        "verify DB --json",
        "dump DB",
        "inspect tree DB",
        "inspect tree DB --json",
        "inspect log DB",
        "inspect manifest DB",
        "inspect jobs DB --json",
        "inspect deletes DB --json",
        "inspect key DB c --json",
        "design show DB",
        "design set DB tiering --dry-run",
        "design set DB tiering",
        "repair DB",
        "checkpoint DB copy",
        "backup create DB repository",
        "backup create DB repository --json",
    ] {
        succeed(line);
    }
    assert!(dir.path().join(OsStr::from_bytes(b"od\xff.repaired")).exists());
    assert_eq!(succeed("dump DB"), "c\t3\n");
    for file in std::fs::read_dir(dir.path().join(db)).unwrap() {
        let name = file.unwrap().file_name();
        let mut path = OsString::from("od");
        path.push(OsStr::from_bytes(b"\xff/"));
        path.push(&name);
        let command = match name.to_str().unwrap() {
            name if name.ends_with(".sst") => "inspect table DB --json",
            name if name.ends_with(".log") => "inspect log DB --json",
            name if name.starts_with("MANIFEST") => "inspect manifest DB --json",
            _ => continue,
        };
        let output = run(dir.path(), &words(command, &path));
        assert_eq!(output.status.code(), Some(0), "{command}: {output:?}");
    }
    // Errors print such a path too.
    std::fs::remove_file(dir.path().join(db).join("CURRENT")).unwrap();
    for line in ["verify DB --json", "verify DB", "shell DB -c count", "dump DB"] {
        let output = run(dir.path(), &words(line, db));
        assert_eq!(output.status.code(), Some(4), "{line}: {output:?}");
    }
}

/// The command line refused such bytes without a remedy, before the shell could say how to write them.
#[test]
fn the_shell_says_of_an_argument_what_it_says_of_a_line_that_is_not_utf8() {
    let dir = tempfile::tempdir().unwrap();
    let line = b"put caf\xe9 1";
    let db = path(dir.path(), "db");
    let words = ["shell", &db, "-c", "put a 1\r\nput b 2\n", "-c"].map(OsStr::new);
    let output = run(dir.path(), &[&words[..], &[OsStr::from_bytes(line)]].concat());
    let by_argument = String::from_utf8(output.stderr).unwrap();
    let remedy = "byte 8 is not UTF-8; write bytes as \"\\xff\" or 0xff";
    assert!(output.status.code() == Some(1) && by_argument.contains(remedy), "{by_argument}");
    let by_line = crate::support::run(&["shell", &db], line);
    assert_eq!(by_line.status.code(), Some(1));
    assert!(String::from_utf8(by_line.stderr).unwrap().contains(remedy));
    // The commands before it were carried out, with the line ends of any system.
    assert_eq!(done(&["dump", &db], ""), "a\t1\nb\t2\n");
}

/// The lock file, which other users may read, held the first eight arguments of the process.
#[test]
fn the_lock_names_the_process_but_not_its_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let db = path(dir.path(), "db");
    let mut shell =
        Talk::with(&["shell", &db, "-c", "put password hunter2", "-c", "count"], dir.path());
    assert_eq!(shell.answer(), "ok");
    assert_eq!(shell.answer(), "1");
    assert!(shell.child.wait().unwrap().success());
    let lock = std::fs::read_to_string(Path::new(&db).join("LOCK")).unwrap();
    assert_eq!(lock, format!("process {} (terrane)", shell.child.id()));

    let mut shell = Talk::with(&["shell", &db], dir.path());
    shell.say("count");
    assert_eq!(shell.answer(), "1");
    let (code, _, error) = run_to_end(&["shell", &db, "-c", "count"], "");
    let holder = format!("in use by process {} (terrane)", shell.child.id());
    assert!(code == 5 && error.contains(&holder), "{code} {error}");
    drop(shell);
    assert_eq!(done(&["shell", &db, "-c", "get password"], ""), "hunter2\n");
}
