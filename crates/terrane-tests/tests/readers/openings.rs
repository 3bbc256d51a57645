//! Openings in a loop alongside a writer in this process or in another one.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use terrane::inspect;
use terrane::storage::{MemoryStorage, Storage};
use terrane::{ErrorKind, Options, ReadMode};
use terrane_testkit::{HangGuard, StopOnDrop, wait_until};

use crate::workload::{Progress, THREADS, check, create, options, write_and_administer};

const DIR_VARIABLE: &str = "TERRANE_READERS_DIR";

/// How many batches each writing thread and the administering thread must finish, so that the log is
/// rotated and keyspaces are dropped many times.
const ENOUGH: (u64, u64) = (1000, 60);

fn is_enough(progress: &Progress) -> bool {
    let numbers = progress.load();
    numbers[..THREADS].iter().all(|number| *number >= ENOUGH.0) && numbers[THREADS] >= ENOUGH.1
}

/// Opens the database until the writer has done enough and enough openings succeeded. Returns the number
/// of openings, and how many failed because the writer moved on.
fn open_in_a_loop(options: &Options, dir: &Path, progress: &Progress, rounds: u64) -> (u64, u64) {
    let guard = HangGuard::new();
    let (mut openings, mut opened, mut moved_on) = (0, 0, 0);
    let mut before = progress.load();
    while opened < rounds || !is_enough(progress) {
        guard.check(|| format!("{openings} openings, {:?}", progress.load()));
        let mode = [ReadMode::Cached, ReadMode::Direct][openings as usize % 2];
        let promised = progress.load();
        let started = Instant::now();
        match options.clone().read_mode(mode).open_read_only(dir) {
            Ok(reader) => {
                let seen = check(&reader, &promised);
                let is_later = seen.iter().zip(&before).all(|(seen, before)| seen >= before);
                assert!(is_later, "{before:?} {seen:?}");
                before = seen;
                opened += 1;
            }
            // A writer waits for ten seconds, and a busy machine may take longer to open.
            Err(error) if error.kind() == ErrorKind::Busy => {
                moved_on += u64::from(started.elapsed() < Duration::from_secs(9));
            }
            Err(error) => panic!("opening {openings}: {error}"),
        }
        openings += 1;
    }
    (openings, moved_on)
}

#[test]
fn readers_next_to_a_writer_in_this_process_see_one_moment() {
    let storage = MemoryStorage::new(1);
    let options = options().storage(Arc::new(storage.clone()));
    let dir = Path::new("db");
    create(&options, dir);
    let (progress, is_done) = (Progress::default(), AtomicBool::new(false));
    let acknowledge =
        |thread: usize, number| progress.batches[thread].store(number, Ordering::SeqCst);
    let remove = |dir: &Path| {
        for name in storage.list(dir).unwrap() {
            storage.remove(&dir.join(name)).unwrap();
        }
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let is_done = || is_done.load(Ordering::SeqCst);
            write_and_administer(&options, dir, &remove, &acknowledge, &is_done);
        });
        let stop = StopOnDrop(&is_done);
        let reading = Options::new().storage(Arc::new(storage.clone()));
        let (openings, moved_on) = open_in_a_loop(&reading, dir, &progress, 40);
        assert_eq!(moved_on, 0, "of {openings}");
        drop(stop);
        writer.join().unwrap();
    });
}

/// Runs as the child. Does nothing unless the parent passes a directory.
#[test]
fn child_writes() {
    let Some(dir) = std::env::var_os(DIR_VARIABLE) else { return };
    let dir = Path::new(&dir);
    // Once the parent has ended, the pipe is broken and the child fails.
    let acknowledge = |thread: usize, number: u64| {
        let line = format!("batch {thread} {number}\n");
        std::io::stdout().write_all(line.as_bytes()).unwrap();
    };
    let remove = |dir: &Path| std::fs::remove_dir_all(dir).unwrap();
    loop {
        let opened = Instant::now();
        let is_done = || opened.elapsed() > Duration::from_millis(1500);
        write_and_administer(&options(), dir, &remove, &acknowledge, &is_done);
    }
}

/// A process that writes, and a thread that follows its progress.
struct Writer {
    child: Child,
    progress: Arc<Progress>,
}

impl Writer {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "openings::child_writes", "--nocapture", "--test-threads=1"])
            .env(DIR_VARIABLE, dir)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let progress = Arc::new(Progress::default());
        let (stdout, followed) = (child.stdout.take().unwrap(), Arc::clone(&progress));
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let Some((_, numbers)) = line.rsplit_once("batch ") else { continue };
                let mut numbers = numbers.split(' ').map(|number| number.parse::<u64>().unwrap());
                let (thread, number) = (numbers.next().unwrap(), numbers.next().unwrap());
                followed.batches[thread as usize].store(number, Ordering::SeqCst);
            }
            followed.has_ended.store(true, Ordering::SeqCst);
        });
        let writer = Self { child, progress };
        let has_begun = || writer.progress.load().iter().all(|number| *number > 0);
        wait_until(has_begun, || "the child does not write".to_owned());
        writer
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let ended = self.child.wait().unwrap();
        // A panic has an exit code of its own.
        assert!(std::thread::panicking() || ended.code().is_none(), "the child failed: {ended}");
    }
}

#[test]
fn readers_next_to_a_writer_in_another_process_see_one_moment() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    create(&options(), &path);
    let writer = Writer::start(&path);
    let (openings, moved_on) = open_in_a_loop(&Options::new(), &path, &writer.progress, 60);
    assert_eq!(moved_on, 0, "of {openings}");
}

/// A directory that an older version opened has no file to lock.
#[test]
fn readers_without_a_lock_see_one_moment_or_say_that_the_writer_moved_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    create(&options(), &path);
    let writer = Writer::start(&path);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let stop = StopOnDrop(&is_done);
        scope.spawn(|| {
            while !is_done.load(Ordering::SeqCst) {
                let _ = std::fs::remove_file(path.join("READERS"));
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        // How many openings fail depends on the machine. A hang guard ends the test if all do.
        open_in_a_loop(&Options::new(), &path, &writer.progress, 20);
        drop(stop);
    });
}

#[test]
fn inspection_next_to_a_writer_finds_no_problems() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    create(&options(), &path);
    let writer = Writer::start(&path);
    let guard = HangGuard::new();
    let mut rounds = 0;
    while rounds < 15 || !is_enough(&writer.progress) {
        guard.check(|| format!("{rounds} rounds, {:?}", writer.progress.load()));
        rounds += 1;
        let busy_is_fine = |result: terrane::Result<()>, what: &str| match result {
            Err(error) if error.kind() != ErrorKind::Busy => panic!("{what}: {error}"),
            _ => {}
        };
        busy_is_fine(inspect::jobs(&path).map(drop), "jobs");
        busy_is_fine(inspect::deletes(&path).map(drop), "deletes");
        busy_is_fine(inspect::manifest(&path).map(drop), "manifest");
        busy_is_fine(inspect::key(&path, b"c\0").map(drop), "key");
        let log = inspect::log(&path).map(|report| {
            let broken = report.segments.iter().filter(|segment| segment.ends_in_garbage);
            assert_eq!(broken.count(), 0, "a file that the writer fills looks damaged");
        });
        busy_is_fine(log, "log");
        let verified = inspect::verify(&path, &mut |_| {}).map(|verified| {
            let problems: Vec<String> = verified.problems.iter().map(ToString::to_string).collect();
            assert!(problems.is_empty(), "{problems:?}");
        });
        busy_is_fine(verified, "verify");
    }
}
