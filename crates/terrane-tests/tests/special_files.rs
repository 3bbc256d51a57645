//! Links, FIFOs, sockets and directories in place of the files of a database.
//!
//! Whoever can create files in the directory of a database must not be able to make its user overwrite
//! another file, or wait forever.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have files of their own")]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use terrane::{Db, Error, Options, WrongFileType};
use terrane_testkit::run_guarded;

/// Creates a database with a table, a value file, and a log that opening replays.
fn create(dir: &Path) {
    let design = "balanced; values=separate(512)".parse().unwrap();
    let db = Options::new().log_segment_bytes(64 << 10).design(design).open(dir).unwrap();
    db.put("a", "small").unwrap();
    db.put("b", [b'x'; 1000]).unwrap();
    db.flush().unwrap();
    db.put("c", "logged").unwrap();
    drop(db);
}

/// Copies a database to a new directory.
fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    fs::create_dir(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

type Replace = fn(&Path, &Path);

/// What replaces a file, with the type that an error names. The second path is that of the moved file.
const KINDS: [(WrongFileType, Replace); 4] = [
    (WrongFileType::SymbolicLink, |path, moved| symlink(moved, path).unwrap()),
    (WrongFileType::Directory, |path, _| fs::create_dir(path).unwrap()),
    (WrongFileType::Socket, |path, _| drop(UnixListener::bind(path).unwrap())),
    (WrongFileType::Fifo, |path, _| {
        mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    }),
];

fn use_database(dir: &Path) -> terrane::Result<()> {
    let db = Db::open(dir)?;
    assert_eq!(db.get("a")?.unwrap(), "small");
    assert_eq!(db.get("b")?.unwrap().len(), 1000);
    assert_eq!(db.get("c")?.unwrap(), "logged");
    db.put("d", "new")?;
    db.flush()?;
    db.compact_range(..)?;
    db.close()
}

/// Opening a database through a link wrote into its target, and waited forever for a FIFO.
#[test]
fn nothing_in_place_of_a_file_is_overwritten_or_waited_for() {
    run_guarded(|| {
        let home = tempfile::tempdir().unwrap();
        let (original, dir) = (home.path().join("original"), home.path().join("db"));
        let moved = home.path().join("moved");
        create(&original);
        let names: Vec<PathBuf> =
            fs::read_dir(&original).unwrap().map(|file| file.unwrap().file_name().into()).collect();
        assert!(names.len() >= 7, "{names:?}");
        for name in &names {
            for (kind, replace) in KINDS {
                copy(&original, &dir);
                let path = dir.join(name);
                fs::rename(&path, &moved).unwrap();
                let before = fs::read(&moved).unwrap();
                replace(&path, &moved);
                let name = name.to_str().unwrap();
                check(&dir, name, kind);
                assert_eq!(fs::read(&moved).unwrap(), before, "{name} as {kind}");
            }
        }
    });
}

fn check(dir: &Path, name: &str, kind: WrongFileType) {
    let _ = terrane::inspect::verify(dir, &mut |_| {});
    let is_link = kind == WrongFileType::SymbolicLink;
    let is_written = name == "LOCK" || name.ends_with(".log");
    let reader = Db::open_read_only(dir).map(drop);
    let opened = use_database(dir);
    // Without `READERS`, readers try more often. The disk reserve is not needed. A file that is only read
    // may be a link.
    let is_optional = name == "READERS" || name.starts_with("RESERVE");
    if is_optional || is_link && !is_written {
        return opened.unwrap_or_else(|error| panic!("{name} as {kind}: {error}"));
    }
    let error = opened.unwrap_err();
    // Other files with wrong types count as missing.
    if ["LOCK", "CURRENT"].contains(&name) || name.starts_with("MANIFEST") {
        let text = error.to_string();
        assert!(text.contains(name) && text.contains(&kind.to_string()), "{text}");
        assert!(
            matches!(error, Error::WrongFileType { found, .. } if found == kind),
            "{name} as {kind}: {error:?}"
        );
        assert_eq!(reader.is_ok(), name == "LOCK", "{name} as {kind}");
    }
}

/// A copy of a directory made with `cp -al` shares its lock file with the original.
#[test]
fn a_lock_file_with_other_names_keeps_its_contents() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    fs::create_dir(&dir).unwrap();
    let victim = home.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    fs::hard_link(&victim, dir.join("LOCK")).unwrap();
    let db = Db::open(&dir).unwrap();
    db.put("a", "1").unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert!(matches!(Db::open(&dir), Err(Error::Locked { .. })));
}
