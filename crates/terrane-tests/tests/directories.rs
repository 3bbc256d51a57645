//! A database stays in the directory in which it was opened, wherever its path leads later.
//!
//! Each test turns the path of an open database and then makes the database write logs, tables, value
//! files, manifests and a checkpoint. Small segments and buffers make it replace all of them.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have files and variables of their own")]

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use terrane::{Db, Error, ErrorKind, Options};

const DESIGN: &str = "1-leveling T=4; buffer=64KiB; table=64KiB; values=separate(512,garbage=25%)";

/// Entries per round.
const COUNT: u32 = 1_000;

fn options() -> Options {
    Options::new()
        .log_segment_bytes(64 << 10)
        .memory_budget(8 << 20)
        .open_files(4)
        .design_if_new(DESIGN.parse().unwrap())
}

fn open(dir: &Path) -> Db {
    options().open(dir).unwrap()
}

/// Puts entries with small and large values, and replaces the earlier values of the same keys.
fn fill(db: &Db, owner: &str) -> terrane::Result<()> {
    for number in 0..COUNT {
        let len = if number % 10 == 0 { 600 } else { 100 };
        db.put(format!("{owner}-{number:05}"), owner.repeat(len))?;
    }
    Ok(())
}

/// Makes a database use all kinds of files.
fn exercise(db: &Db, owner: &str) {
    for _ in 0..2 {
        fill(db, owner).unwrap();
        db.flush().unwrap();
        db.compact_range(..).unwrap();
    }
    db.sync().unwrap();
    assert_is(db, owner);
}

/// Asserts that a database has the entries of its owner and no others.
fn assert_is(db: &Db, owner: &str) {
    let mut count = 0;
    for entry in db.iter().unwrap() {
        let (key, value) = entry.unwrap();
        assert!(key.starts_with(owner.as_bytes()) && value.starts_with(owner.as_bytes()));
        count += 1;
    }
    assert_eq!(count, COUNT, "{owner}");
}

/// Asserts that the files of a database are whole, and that it opens for writing.
fn assert_whole(dir: &Path, owner: &str) {
    let found = terrane::inspect::verify(dir, &mut |_| {}).unwrap();
    assert!(found.problems.is_empty(), "{owner}: {:?}", found.problems);
    assert_is(&Options::new().open(dir).unwrap(), owner);
}

/// Makes both databases work at the same time, and opens them again.
fn exercise_both(mine: (Db, &Path), other: (Db, &Path)) {
    std::thread::scope(|scope| {
        let (mine, other) = (&mine.0, &other.0);
        scope.spawn(|| exercise(mine, "mine"));
        scope.spawn(|| exercise(other, "other"));
    });
    mine.0.close().unwrap();
    other.0.close().unwrap();
    assert_whole(mine.1, "mine");
    assert_whole(other.1, "other");
}

/// The first database deleted, renamed and overwrote the log of the second one.
#[test]
fn a_database_whose_directory_was_moved_leaves_the_database_in_its_place_alone() {
    let home = tempfile::tempdir().unwrap();
    let (old, new) = (home.path().join("db"), home.path().join("moved"));
    let mine = open(&old);
    fill(&mine, "mine").unwrap();
    fs::rename(&old, &new).unwrap();
    // Not even an empty directory is in its place.
    exercise(&mine, "mine");
    assert!(!old.exists());
    let other = open(&old);
    exercise_both((mine, &new), (other, &old));
}

#[test]
fn a_database_opened_through_a_link_ignores_that_the_link_is_turned() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    fs::create_dir(at("v1")).unwrap();
    fs::create_dir(at("v2")).unwrap();
    symlink("v1", at("current")).unwrap();
    let mine = open(&at("current"));
    fill(&mine, "mine").unwrap();
    symlink("v2", at("next")).unwrap();
    fs::rename(at("next"), at("current")).unwrap();
    let other = open(&at("current"));
    exercise_both((mine, &at("v1")), (other, &at("v2")));
}

#[test]
fn a_log_directory_is_the_one_that_was_opened() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    let with_log = || options().log_dir("../log".into());
    let mine = with_log().open(at("db")).unwrap();
    fill(&mine, "mine").unwrap();
    fs::rename(at("db"), at("moved")).unwrap();
    fs::rename(at("log"), at("moved-log")).unwrap();
    let other = with_log().open(at("db")).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| exercise(&mine, "mine"));
        scope.spawn(|| exercise(&other, "other"));
    });
    mine.close().unwrap();
    other.close().unwrap();
    assert_whole(&at("db"), "other");
    // `LOGDIR` of the moved database names the other one's log.
    let error = Options::new().open(at("moved")).unwrap_err();
    assert!(matches!(error, Error::LogDirectoryTaken { .. }), "{error}");
    let mine = Options::new().log_dir("../moved-log".into()).open(at("moved")).unwrap();
    assert_is(&mine, "mine");
}

#[test]
fn a_read_only_database_and_a_checkpoint_come_from_the_moved_directory() {
    let home = tempfile::tempdir().unwrap();
    let (old, new) = (home.path().join("db"), home.path().join("moved"));
    let mine = open(&old);
    exercise(&mine, "mine");
    let reader = Options::new().open_read_only(&old).unwrap();
    fs::rename(&old, &new).unwrap();
    let other = open(&old);
    exercise(&other, "other");
    assert_is(&reader, "mine");
    let copy = home.path().join("copy");
    mine.checkpoint(&copy).unwrap();
    assert_whole(&copy, "mine");
    assert_eq!(mine.path(), old, "the path by which it was opened");
}

#[test]
fn a_removed_directory_is_an_error_that_says_so() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let db = open(&dir);
    exercise(&db, "mine");
    fs::remove_dir_all(&dir).unwrap();
    let error = fill(&db, "mine").and_then(|()| db.flush()).unwrap_err();
    assert!(matches!(error, Error::DirectoryRemoved { .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    let text = error.to_string();
    assert!(text.contains("was removed") && text.contains(dir.to_str().unwrap()), "{text}");
    for result in [db.put("a", "b"), db.flush(), db.clone().close()] {
        assert!(matches!(result, Err(Error::DirectoryRemoved { .. })), "{result:?}");
    }
    assert!(!dir.exists());
    // Another database can be in its place.
    exercise(&open(&dir), "other");
}

/// A log file that was moved into the directory of another database was removed by the next opening.
#[test]
fn a_log_of_another_database_is_neither_replayed_nor_removed() {
    let home = tempfile::tempdir().unwrap();
    let at = |name: &str| home.path().join(name);
    for (name, owner) in [("db", "mine"), ("other", "other")] {
        let db = Options::new().open(at(name)).unwrap();
        db.put(owner, "1").unwrap();
    }
    let files = fs::read_dir(at("other")).unwrap().map(|file| file.unwrap().path());
    let log = files.into_iter().find(|file| file.extension().is_some_and(|end| end == "log"));
    let (log, moved) = (log.unwrap(), at("db").join("999999.log"));
    fs::rename(&log, &moved).unwrap();
    let keys = |db: &Db| db.iter().unwrap().count();
    assert_eq!(keys(&Options::new().open_read_only(at("db")).unwrap()), 1);
    let error = Options::new().open(at("db")).unwrap_err();
    assert!(matches!(&error, Error::ForeignLog { path, .. } if **path == *moved), "{error}");
    fs::rename(&moved, &log).unwrap();
    for (name, owner) in [("db", "mine"), ("other", "other")] {
        let db = Options::new().open(at(name)).unwrap();
        assert_eq!(keys(&db), 1);
        assert_eq!(db.get(owner).unwrap().unwrap(), "1");
    }
}

const CHILD: &str = "TERRANE_DIRECTORIES_HOME";

/// After a change of the working directory, every write failed for ever.
#[test]
fn a_relative_path_counts_from_the_working_directory_of_the_opening() {
    if let Ok(home) = env::var(CHILD) {
        let home = Path::new(&home);
        env::set_current_dir(home).unwrap();
        let mine = open(Path::new("db"));
        assert_eq!(mine.path(), home.join("db"));
        fs::create_dir_all(home.join("elsewhere")).unwrap();
        env::set_current_dir(home.join("elsewhere")).unwrap();
        let other = open(Path::new("db"));
        exercise_both((mine, &home.join("db")), (other, &home.join("elsewhere/db")));
        return;
    }
    // The working directory belongs to the process, so a process of its own changes it.
    let home = tempfile::tempdir().unwrap();
    let home = fs::canonicalize(home.path()).unwrap();
    let name = "a_relative_path_counts_from_the_working_directory_of_the_opening";
    let child = Command::new(env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, &home)
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stdout));
    assert!(fs::read_dir(home.join("db")).unwrap().count() > 3);
}
