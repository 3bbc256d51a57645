//! Limits of the process: a limit is an error, and never ends the process.
//!
//! Each case runs in a process of its own: this program, which runs one test and gets the case in a
//! variable.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the cases change files as other programs do")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use rustix::process::{Resource, Rlimit, setrlimit};
use terrane::{Db, Error, Options};

const CASE: &str = "TERRANE_PROCESS_CASE";
const DIR: &str = "TERRANE_PROCESS_DIR";

/// The process of a case; does nothing when it is not started by another test.
#[test]
fn the_process() {
    let (Some(case), Some(dir)) = (std::env::var_os(CASE), std::env::var_os(DIR)) else { return };
    let dir = PathBuf::from(dir);
    match case.to_str().unwrap() {
        "no maps" => write_without_address_space(&dir),
        "small files" => write_small_files(&dir),
        case => panic!("no case '{case}'"),
    }
}

/// Runs a case in a directory of its own.
fn run(case: &str, parent: &Path) -> ExitStatus {
    let dir = tempfile::tempdir_in(parent).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_process", "--nocapture"])
        .env(CASE, case)
        .env(DIR, dir.path().join("db"))
        .output()
        .unwrap();
    if output.status.code() == Some(101) {
        panic!("{case}: {}", String::from_utf8_lossy(&output.stderr));
    }
    output.status
}

/// Fills segments of 4, 16 and 64 MiB when there is room for none of 64 MiB.
fn write_without_address_space(dir: &Path) {
    let db = Options::new().memory_budget(8 << 20).open(dir).unwrap();
    db.put("warm", "up").unwrap();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
    let used = line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10;
    let limit = Some(used + (48 << 20));
    setrlimit(Resource::As, Rlimit { current: limit, maximum: limit }).unwrap();
    for number in 0..26_000u64 {
        db.put(number.to_be_bytes(), [number as u8; 1000]).unwrap();
    }
    assert!(db.stats().log_bytes_written > 20 << 20);
    db.close().unwrap();
}

/// The limit is smaller than the files of the default options.
fn write_small_files(dir: &Path) {
    let limit = Rlimit { current: Some(1 << 20), maximum: None };
    setrlimit(Resource::Fsize, limit).unwrap();
    let put = |db: &Db| (0..2000u64).try_for_each(|n| db.put(n.to_be_bytes(), [n as u8; 1000]));
    let error = Options::new().open(dir).and_then(|db| put(&db)).unwrap_err();
    assert!(matches!(error, Error::DiskFull(_)), "{error}");
    assert!(error.to_string().contains("ulimit -f"), "{error}");
    let options = Options::new().log_segment_bytes(256 << 10);
    let open = |name: &str, design: &str| {
        options.clone().design(design.parse().unwrap()).open(dir.with_extension(name)).unwrap()
    };
    let db = open("small", "balanced; buffer=256KiB; table=256KiB");
    put(&db).unwrap();
    db.flush().unwrap();
    assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), 2000);
    let db = open("large", "balanced; buffer=4MiB; table=4MiB");
    put(&db).unwrap();
    let error = db.flush().unwrap_err();
    assert!(error.to_string().contains("ulimit -f"), "{error}");
    setrlimit(Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    db.flush().unwrap();
}

/// A log segment was refused for which the address space had no room, although a log needs no map.
#[test]
fn a_log_that_cannot_be_mapped_is_written_with_system_calls() {
    let status = run("no maps", &std::env::temp_dir());
    assert!(status.success(), "{status}");
}

/// SIGXFSZ ended the process.
#[test]
fn a_limit_of_the_size_of_files_is_an_error() {
    let status = run("small files", &std::env::temp_dir());
    assert!(status.success(), "{status}");
}
