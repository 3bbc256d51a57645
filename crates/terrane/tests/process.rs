//! Limits and signals of the process: a limit, or a program that shortens the log under its writer, is
//! an error and never ends the process.
//!
//! Each case runs in a process of its own: this program, which runs one test and gets the case in a
//! variable.
#![cfg(target_os = "linux")]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the cases change files as other programs do")]
#![allow(clippy::disallowed_types, reason = "the cases change files as other programs do")]

use std::ffi::c_int;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, setrlimit};
use terrane::{Db, Error, ErrorKind, Event, LoggedEvent, Options};

const CASE: &str = "TERRANE_PROCESS_CASE";
const DIR: &str = "TERRANE_PROCESS_DIR";

/// The exit code of the handler that a case installs.
const HANDLED: c_int = 42;

/// The process of a case; does nothing when it is not started by another test.
#[test]
fn the_process() {
    let (Some(case), Some(dir)) = (std::env::var_os(CASE), std::env::var_os(DIR)) else { return };
    let dir = PathBuf::from(dir);
    match case.to_str().unwrap() {
        "shortened" => drop(write_to_shortened_log(&dir)),
        "unread" => sync_shortened_log(&dir),
        "other map" => {
            drop(write_to_shortened_log(&dir));
            store_behind_the_end(&dir);
        }
        "sent" => {
            // The standard library has a handler that ignores the first signal that is sent.
            // SAFETY: the default is valid for every signal.
            unsafe { libc::signal(libc::SIGBUS, libc::SIG_DFL) };
            let _db = Options::new().open(&dir).unwrap();
            // SAFETY: this call has no preconditions.
            unsafe { libc::raise(libc::SIGBUS) };
        }
        "handled" => {
            install_handler();
            drop(write_to_shortened_log(&dir));
            store_behind_the_end(&dir);
        }
        "no maps" => write_without_address_space(&dir),
        "small files" => write_small_files(&dir),
        "smaller than the reserve" => write_files_smaller_than_the_reserve(&dir),
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

/// A directory on the file system of temporary files, and one in memory if there is one: the log is
/// mapped on both.
fn parents() -> Vec<PathBuf> {
    let memory = PathBuf::from("/dev/shm");
    let memory = Some(memory).filter(|dir| tempfile::tempdir_in(dir).is_ok());
    memory.into_iter().chain([std::env::temp_dir()]).collect()
}

/// Returns the first log file. The next one may have been prepared already.
fn log_file(dir: &Path) -> PathBuf {
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|name| name == "log")).min().unwrap()
}

fn shorten(path: &Path) {
    File::options().write(true).open(path).unwrap().set_len(0).unwrap();
}

fn is_mapped(path: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains(path.to_str().unwrap())
}

/// Shortens the log while four threads write. Each must get an error that names the file.
fn write_to_shortened_log(dir: &Path) -> Db {
    let db = Options::new().open(dir).unwrap();
    db.put("before", "1").unwrap();
    let log = log_file(dir);
    if !is_mapped(&log) {
        // Writes with system calls make the file longer again.
        return db;
    }
    let is_shortened = AtomicBool::new(false);
    let write = |thread: u64| {
        let mut numbers = 0..1_000_000u64;
        let failed = numbers.find_map(|number| {
            // On a busy machine the log would otherwise go on in another file before this one is shortened.
            if number > 1000 && !is_shortened.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_micros(20));
            }
            db.put((number << 8 | thread).to_be_bytes(), [7; 100]).err()
        });
        assert!(failed.is_some(), "every write was acknowledged");
        failed.unwrap()
    };
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4).map(|thread| scope.spawn(move || write(thread))).collect();
        std::thread::sleep(Duration::from_millis(5));
        shorten(&log);
        is_shortened.store(true, Ordering::Relaxed);
        for writer in writers {
            check(&writer.join().unwrap(), &log);
        }
    });
    check(&db.put("after", "2").unwrap_err(), &log);
    check(&db.sync().unwrap_err(), &log);
    check(&db.stats().error.unwrap(), &log);
    assert_eq!(db.get("before").unwrap().unwrap(), "1", "reads continue");
    db
}

fn check(error: &Error, log: &Path) {
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
    let Error::LogLost { path, .. } = error else { panic!("{error}") };
    assert_eq!(&**path, log);
    assert!(error.to_string().contains("open it again"), "{error}");
}

/// No store follows, so that only the sync can find that the log was shortened.
fn sync_shortened_log(dir: &Path) {
    let db = Options::new().open(dir).unwrap();
    db.put("lost", "1").unwrap();
    let log = log_file(dir);
    shorten(&log);
    check(&db.sync().unwrap_err(), &log);
}

/// Stores to a map behind the end of its file.
fn store_behind_the_end(dir: &Path) {
    let path = dir.join("other");
    let file = File::options().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(1 << 16).unwrap();
    let map = memmap2::MmapOptions::new().map_raw(&file).unwrap();
    file.set_len(0).unwrap();
    // SAFETY: the map is longer than that.
    let place = unsafe { map.as_mut_ptr().add(1 << 15) };
    // SAFETY: the pointer is within the map; that the page has no file behind it is the test.
    unsafe { place.write_volatile(1) };
}

fn install_handler() {
    extern "C" fn handle(_: c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: this call has no preconditions.
        unsafe { libc::_exit(HANDLED) };
    }
    // SAFETY: an action of zeros is valid.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_flags = libc::SA_SIGINFO;
    action.sa_sigaction = handle as *const () as usize;
    // SAFETY: the action is valid, and the handler has the signature of SA_SIGINFO.
    assert_eq!(0, unsafe {
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut())
    });
}

/// Returns the bytes of address space that the process uses when they have not changed for 20 ms. The allocator maps
/// 128 MiB for the first allocation of a thread and returns half of it at once.
fn address_space() -> u64 {
    let now = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmSize:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    };
    let mut used = now();
    let mut equal = 0;
    while equal < 20 {
        std::thread::sleep(Duration::from_millis(1));
        let before = std::mem::replace(&mut used, now());
        equal = if used == before { equal + 1 } else { 0 };
    }
    used
}

/// Fills segments of 4, 16 and 64 MiB when there is room for none of 64 MiB.
fn write_without_address_space(dir: &Path) {
    let options = Options::new().memory_budget(8 << 20);
    let db = options.clone().open(dir).unwrap();
    db.put("warm", "up").unwrap();
    let is_reported = |event: &LoggedEvent| matches!(event.event, Event::LogNotMapped { .. });
    assert!(!db.events().iter().any(is_reported));
    let used = address_space();
    let limit = Some(used + (48 << 20));
    setrlimit(Resource::As, Rlimit { current: limit, maximum: limit }).unwrap();
    for number in 0..26_000u64 {
        db.put(number.to_be_bytes(), [number as u8; 1000]).unwrap();
    }
    assert!(db.stats().log_bytes_written > 20 << 20);
    db.flush().unwrap();
    let events = db.events();
    let reported: Vec<&LoggedEvent> = events.iter().filter(|event| is_reported(event)).collect();
    let [LoggedEvent { event: Event::LogNotMapped { path, error, .. }, .. }] = &reported[..] else {
        panic!("{reported:?}")
    };
    assert!(*path == dir.display().to_string() && error.contains("annot allocate"), "{error}");
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

/// The limit is smaller than the disk reserve should be.
fn write_files_smaller_than_the_reserve(dir: &Path) {
    const LIMIT: u64 = 64 << 10;
    setrlimit(Resource::Fsize, Rlimit { current: Some(LIMIT), maximum: None }).unwrap();
    let design = "balanced; buffer=32KiB; table=32KiB; compression=none";
    let options = Options::new().log_segment_bytes(LIMIT).design(design.parse().unwrap());
    let put = |db: &Db| (0..200u64).try_for_each(|n| db.put(n.to_be_bytes(), [n as u8; 1000]));
    for _ in 0..2 {
        let db = options.clone().open(dir).unwrap();
        put(&db).unwrap();
        let error = db.put("large", [7; LIMIT as usize]).unwrap_err();
        assert!(error.to_string().contains("ulimit -f"), "{error}");
        put(&db).unwrap();
        db.flush().unwrap();
        put(&db).unwrap();
        db.close().unwrap();
    }
    assert_eq!(std::fs::metadata(dir.join("RESERVE")).unwrap().len(), LIMIT);
}

/// A writer died of SIGBUS when another program shortened the log.
#[test]
fn a_shortened_log_is_an_error() {
    for parent in parents() {
        assert!(run("shortened", &parent).success(), "{}", parent.display());
        assert!(run("unread", &parent).success(), "{}", parent.display());
    }
}

#[test]
fn other_bus_errors_end_the_process() {
    for case in ["other map", "sent"] {
        let status = run(case, &std::env::temp_dir());
        assert_eq!(status.signal(), Some(libc::SIGBUS), "{case}: {status}");
    }
}

#[test]
fn other_bus_errors_reach_the_handler_of_the_program() {
    let status = run("handled", &std::env::temp_dir());
    assert_eq!(status.code(), Some(HANDLED), "{status}");
}

/// A log segment was refused for which the address space had no room, although a log needs no map.
#[test]
fn a_log_that_cannot_be_mapped_is_written_with_system_calls() {
    let status = run("no maps", &std::env::temp_dir());
    assert!(status.success(), "{status}");
}

/// A database that could not have a reserve of the right length, or that had refused one write, accepted
/// only deletes, although the disk had space.
#[test]
fn a_limit_below_the_disk_reserve_refuses_no_write() {
    let status = run("smaller than the reserve", &std::env::temp_dir());
    assert!(status.success(), "{status}");
}

/// SIGXFSZ ended the process.
#[test]
fn a_limit_of_the_size_of_files_is_an_error() {
    let status = run("small files", &std::env::temp_dir());
    assert!(status.success(), "{status}");
}
