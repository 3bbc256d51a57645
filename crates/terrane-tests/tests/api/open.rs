//! Tests opening: locks, modes, and reading while another process writes.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use terrane::{Db, Error, ErrorKind, OpenMode, Options};
use terrane_testkit::StopOnDrop;

use crate::support::{DIR, fill, in_memory, keys, pairs, small_design};

const HOLD_VARIABLE: &str = "TERRANE_HOLD_DIR";

/// This is not a test of its own: another test runs it as a process that holds a database.
#[test]
fn child_holds_a_database() {
    let Some(dir) = std::env::var_os(HOLD_VARIABLE) else { return };
    let db = Db::open(dir).unwrap();
    db.put("held", "yes").unwrap();
    println!("\nholding");
    std::io::stdout().flush().unwrap();
    // This call returns when the parent closes the pipe.
    let _ = std::io::stdin().lines().next();
}

fn hold(dir: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "open::child_holds_a_database", "--nocapture", "--test-threads=1"])
        .env(HOLD_VARIABLE, dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "holding"), "the child ended");
    child
}

#[test]
fn a_database_open_in_another_process_names_that_process() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = hold(dir.path());
    let error = Db::open(dir.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    let text = error.to_string();
    assert!(text.contains(&format!("process {}", child.id())), "{text}");
    let program = std::env::current_exe().unwrap();
    let program = program.file_name().unwrap().to_str().unwrap();
    assert!(text.contains(program), "the program is named: {text}");
    assert!(!text.contains("child_holds_a_database"), "its arguments are not: {text}");
    assert!(text.contains("read-only"), "the remedy is named: {text}");
    let Error::Locked { path, .. } = error else { panic!("{text}") };
    assert_eq!(&*path, dir.path());
    // Reading is possible while the other process holds the lock.
    let reader = Db::open_read_only(dir.path()).unwrap();
    assert_eq!(reader.get("held").unwrap().unwrap(), "yes");
    // The lock ends with the process, even if the process is killed.
    child.kill().unwrap();
    child.wait().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.get("held").unwrap().unwrap(), "yes");
}

#[test]
fn a_database_that_this_process_has_open_is_locked_until_the_last_handle_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let clone = db.clone();
    let error = Db::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains(&format!("process {}", std::process::id())), "{error}");
    drop(db);
    assert_eq!(Db::open(dir.path()).unwrap_err().kind(), ErrorKind::Locked);
    drop(clone);
    Db::open(dir.path()).unwrap();
}

#[test]
fn iterators_and_snapshots_keep_the_lock_as_handles_do() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    db.put("a", "1").unwrap();
    let iter = db.iter().unwrap();
    let snapshot = db.snapshot();
    drop(db);
    assert_eq!(options.open(DIR).unwrap_err().kind(), ErrorKind::Locked);
    assert_eq!(keys(iter), ["a"]);
    assert_eq!(options.open(DIR).unwrap_err().kind(), ErrorKind::Locked);
    drop(snapshot);
    options.open(DIR).unwrap();
}

#[test]
fn open_modes_accept_or_refuse_an_existing_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("deep").join("down");
    let must_exist = Options::new().open_mode(OpenMode::MustExist);
    let must_be_new = Options::new().open_mode(OpenMode::MustBeNew);
    let error = must_exist.open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(
        error.to_string().contains("no database") && error.to_string().contains("down"),
        "{error}"
    );
    assert!(!path.exists(), "looking for a database makes no directory");
    must_be_new.open(&path).unwrap().put("a", "1").unwrap();
    let error = must_be_new.open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("already contains"), "{error}");
    assert_eq!(must_exist.open(&path).unwrap().get("a").unwrap().unwrap(), "1");
}

#[test]
fn a_missing_database_is_the_same_error_to_readers_and_writers() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_owned(), dir.path().join("missing")] {
        let error = Db::open_read_only(&path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert!(error.to_string().contains("no database"), "{error}");
    }
}

#[test]
fn a_read_only_database_refuses_every_change_and_leaves_every_file() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    fill(&db, 50, 0);
    db.flush().unwrap();
    db.put("later", "in the log").unwrap();
    drop(db);
    let files = |dir: &Path| {
        let mut all: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.clone(), std::fs::read(path).unwrap()))
            .collect();
        all.sort();
        all
    };
    let before = files(dir.path());
    let reader = Db::open_read_only(dir.path()).unwrap();
    assert_eq!(pairs(reader.iter().unwrap()).len(), 51);
    for refused in [
        reader.put("a", "1"),
        reader.delete("a"),
        reader.delete_range("a".."b"),
        reader.flush(),
        reader.sync(),
        reader.compact_range(..),
        reader.set_design(small_design()),
        reader.drop_keyspace("x").map(drop),
        reader.keyspace("new", terrane::KeyspaceOptions::new()).map(drop),
    ] {
        assert!(matches!(refused, Err(Error::ReadOnly)), "{refused:?}");
    }
    let copy = tempfile::tempdir().unwrap();
    reader.checkpoint(copy.path()).unwrap();
    reader.close().unwrap();
    assert!(files(dir.path()) == before, "a reader changed a file");
}

/// A thread writes numbers in order, so every reader must see a prefix of them.
#[test]
fn a_reader_of_a_database_being_written_sees_a_prefix() {
    let dir = tempfile::tempdir().unwrap();
    let design = "1-leveling T=4 L0=2 base=256KiB; buffer=64KiB; table=64KiB".parse().unwrap();
    let options = Options::new().log_segment_bytes(128 << 10).log_bytes_max(1 << 20);
    let db = options.design(design).open(dir.path()).unwrap();
    let written = std::sync::atomic::AtomicU64::new(0);
    let is_done = std::sync::atomic::AtomicBool::new(false);
    let order = std::sync::atomic::Ordering::SeqCst;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut number = 0u64;
            while !is_done.load(order) {
                // Keys are scattered, so that compactions replace tables that readers have open.
                let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                db.put(key, [&number.to_be_bytes()[..], &[7; 40]].concat()).unwrap();
                number += 1;
                written.store(number, order);
            }
        });
        let stop = StopOnDrop(&is_done);
        let mut seen_before = 0;
        for _ in 0..15 {
            let promised = written.load(order);
            let reader = Db::open_read_only(dir.path()).unwrap();
            let count = reader.iter().unwrap().map(Result::unwrap).count() as u64;
            for number in (0..count).step_by(97).chain(count.checked_sub(1)) {
                let key = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                let value =
                    reader.get(key).unwrap().unwrap_or_else(|| panic!("{number} of {count}"));
                assert_eq!(value[..8], number.to_be_bytes());
            }
            assert!(count >= promised, "{count} seen, {promised} were written before");
            assert!(count >= seen_before);
            seen_before = count;
        }
        drop(stop);
    });
}

/// The lock file used to stay in the directory, so the directory was no longer empty.
#[test]
fn a_failed_opening_with_must_exist_leaves_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().open_mode(OpenMode::MustExist);
    assert_eq!(options.open(dir.path()).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    Options::new().open(dir.path()).unwrap().put("key", "value").unwrap();
    // This simulates a directory that was copied without its lock file.
    std::fs::remove_file(dir.path().join("LOCK")).unwrap();
    assert_eq!(options.open(dir.path()).unwrap().get("key").unwrap().unwrap(), "value");
}

/// Removes all files except a manifest, and cuts its first snapshot down to `part`.
fn interrupt_creation(dir: &Path, part: std::ops::RangeTo<usize>) {
    for entry in std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap()) {
        let name = entry.file_name().into_string().unwrap();
        if !name.starts_with("MANIFEST") {
            std::fs::remove_file(entry.path()).unwrap();
            continue;
        }
        let bytes = std::fs::read(entry.path()).unwrap();
        let payload = u32::from_le_bytes(bytes[8..12].try_into().unwrap()) as usize;
        let snapshot = &bytes[..2 * (16 + payload)];
        let part = part.end.min(snapshot.len());
        std::fs::write(dir.join("MANIFEST-000001"), &snapshot[..part]).unwrap();
        std::fs::write(dir.join("MANIFEST-000002"), &snapshot[..part / 2]).unwrap();
        std::fs::write(dir.join("CURRENT.new"), "MANI").unwrap();
    }
}

/// The second manifest used to be mistaken for one that had lost its `CURRENT`.
#[test]
fn a_creation_that_was_interrupted_twice_is_no_database_and_can_be_opened() {
    for part in [..0, ..100, ..usize::MAX] {
        let dir = tempfile::tempdir().unwrap();
        Options::new().open(dir.path()).unwrap();
        interrupt_creation(dir.path(), part);
        let must_exist = Options::new().open_mode(OpenMode::MustExist);
        let target = dir.path().join("repaired");
        for error in [
            must_exist.open(dir.path()).unwrap_err(),
            Db::open_read_only(dir.path()).unwrap_err(),
            terrane::inspect::verify(dir.path(), &mut |_| {}).unwrap_err(),
            terrane::inspect::manifest(dir.path()).unwrap_err(),
            terrane::inspect::repair(dir.path(), &target).unwrap_err(),
        ] {
            assert!(matches!(error, Error::NoDatabase { .. }), "{error}");
        }
        let must_be_new = Options::new().open_mode(OpenMode::MustBeNew);
        must_be_new.open(dir.path()).unwrap().put("key", "value").unwrap();
        assert_eq!(Db::open(dir.path()).unwrap().get("key").unwrap().unwrap(), "value");
    }
}

#[test]
fn files_with_the_highest_number_do_not_shut_a_database() {
    let dir = tempfile::tempdir().unwrap();
    for round in 0..3 {
        for name in ["MANIFEST-18446744073709551615", "18446744073709551615.log"] {
            std::fs::write(dir.path().join(name), "from elsewhere").unwrap();
        }
        if round == 0 {
            std::fs::remove_file(dir.path().join("18446744073709551615.log")).unwrap();
        }
        let db = Db::open(dir.path()).unwrap();
        db.put(format!("{round}"), "value").unwrap();
        assert_eq!(keys(db.iter().unwrap()).len(), round + 1);
    }
}

/// A mistyped path used to create a database among documents.
#[test]
fn a_database_is_not_created_among_other_files_unless_the_caller_allows_it() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join(".hidden"), "").unwrap();
    std::fs::create_dir(dir.path().join("directory")).unwrap();
    Db::open(dir.path()).unwrap().close().unwrap();
    // An existing or half-created database may have other files next to it.
    std::fs::write(dir.path().join("holiday.jpg"), "").unwrap();
    Db::open(dir.path()).unwrap().close().unwrap();
    let names = |dir: &Path| std::fs::read_dir(dir).unwrap().count();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("holiday.jpg"), "").unwrap();
    for mode in [OpenMode::CreateIfMissing, OpenMode::MustBeNew] {
        let error = Options::new().open_mode(mode).open(dir.path()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("such as 'holiday.jpg'"), "{error}");
        assert_eq!(names(dir.path()), 1, "a file was created");
    }
    Options::new().among_other_files().open(dir.path()).unwrap().close().unwrap();
    Db::open(dir.path()).unwrap().close().unwrap();
}
