//! A forked process and the database of its parent: every operation is an error, nothing of the parent
//! changes, and the lock ends with its owner.
//!
//! Each test runs itself in a process of its own, which forks, because the other tests of this process
//! have threads. Children report through their exit status or a file, and end without destructors.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(
    clippy::disallowed_methods,
    reason = "users have files, threads and variables of their own"
)]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use terrane::{AsyncDb, Db, Error, IoBudget, KeepChanges, KeyspaceOptions, Options, WriteBatch};

const HOME: &str = "TERRANE_FORKS_HOME";

/// A child that waits for ever is killed after this time.
const CHILD_SECONDS: u32 = 60;

/// Forks. Returns the child, and `None` in the child.
fn fork() -> Option<i32> {
    // SAFETY: the child uses what this file uses: memory, files and the engine, whose behaviour in a
    // child is tested here.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: the default action of the signal ends the child.
            unsafe { libc::alarm(CHILD_SECONDS) };
            None
        }
        child if child > 0 => Some(child),
        _ => panic!("cannot fork"),
    }
}

/// Ends this process without running destructors.
fn end(code: i32) -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(code) }
}

/// Waits until a child has ended, and asserts that it succeeded.
fn join(child: i32) {
    let mut status = 0;
    // SAFETY: `status` lives during the call.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!((waited, status), (child, 0), "the child hung, panicked or failed");
}

/// Runs this test alone in a new process with `HOME` set to `home`.
fn rerun(name: &str, home: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(HOME, home)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Returns the directory of a process that [`rerun`] started.
fn home() -> Option<PathBuf> {
    env::var_os(HOME).map(PathBuf::from)
}

fn options() -> Options {
    Options::new()
        .memory_budget(16 << 20)
        .log_segment_bytes(256 << 10)
        .keep_changes(KeepChanges::bytes(1 << 20))
        .design_if_new("1-leveling T=4; buffer=64KiB; table=64KiB".parse().unwrap())
}

/// The operations whose result was not [`Error::Forked`].
#[derive(Default)]
struct Findings(Vec<String>);

impl Findings {
    fn check<T>(&mut self, what: &str, result: terrane::Result<T>) {
        match result {
            Err(Error::Forked) => {}
            Ok(_) => self.0.push(format!("{what} succeeded")),
            Err(error) => self.0.push(format!("{what}: {error}")),
        }
    }

    /// Writes the findings, and ends the child.
    fn end(self, home: &Path) -> ! {
        fs::write(home.join("findings.new"), self.0.join("\n")).unwrap();
        fs::rename(home.join("findings.new"), home.join("findings")).unwrap();
        end(0)
    }
}

fn check_db(found: &mut Findings, db: &Db) {
    found.check("put", db.put("child", "1"));
    found.check("delete", db.delete("parent"));
    found.check("delete_range", db.delete_range("a".."z"));
    let mut batch = WriteBatch::new();
    batch.put("child", "2");
    found.check("write", db.write(&batch));
    found.check("get", db.get("parent"));
    found.check("multi_get", db.multi_get(["parent"]));
    found.check("iter", db.iter());
    found.check("flush", db.flush());
    found.check("sync", db.sync());
    found.check("compact", db.compact_range(..));
    found.check("checkpoint", db.checkpoint("/nonexistent/copy"));
    found.check("keyspace", db.keyspace("new", KeyspaceOptions::new()));
    found.check("drop_keyspace", db.drop_keyspace("other"));
    found.check("set_design", db.set_design("tiering".parse().unwrap()));
    found.check("set_io_budget", db.set_io_budget(IoBudget::default()));
    found.check("begin_ingest", db.default_keyspace().begin_ingest());
    found.check("changes", db.changes(0));
    found.check("snapshot", db.snapshot().get("parent"));
    let mut transaction = db.begin();
    found.check("transaction get", transaction.get("parent"));
    transaction.put("child", "3");
    found.check("transaction commit", transaction.commit());
    if !matches!(db.stats().error, Some(Error::Forked)) {
        found.0.push("the statistics do not say why the database does not work".to_owned());
    }
    let _ = (db.events(), db.tree(), db.keyspaces(), db.remembered_operations(), db.io_budget());
    let _ = db.default_keyspace().design_before();
}

/// A child acknowledged thousands of writes that were lost, and its close panicked.
#[test]
fn every_operation_of_a_child_is_an_error_and_leaves_the_parent_alone() {
    let name = "every_operation_of_a_child_is_an_error_and_leaves_the_parent_alone";
    let Some(home) = home() else {
        let home = tempfile::tempdir().unwrap();
        assert!(rerun(name, home.path()).wait().unwrap().success());
        return;
    };
    let dir = home.join("db");
    let db = options().open(&dir).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    for number in 0..5_000_u32 {
        db.put(format!("parent{number:05}"), "p".repeat(50)).unwrap();
    }
    let mut iter = db.iter().unwrap();
    assert!(iter.advance().unwrap() && iter.next_back().is_some());
    let (snapshot, mut changes) = (db.snapshot(), db.changes(0).unwrap());
    let mut transaction = db.begin();
    transaction.put("transaction", "parent");
    let mut ingest = other.begin_ingest().unwrap();
    ingest.put("a", "i".repeat(100_000)).unwrap();
    let asynchronous = AsyncDb::from(db.clone());
    let read = asynchronous.get("parent00000");
    let value = db.get("parent00001").unwrap().unwrap();

    let Some(child) = fork() else {
        let mut found = Findings::default();
        check_db(&mut found, &db);
        found.check("keyspace put", other.put("child", "4"));
        found.check("next_back", iter.next_back().unwrap());
        found.check("seek", iter.seek("parent01000"));
        found.check("snapshot", snapshot.get("parent00000"));
        found.check("changes", changes.next().unwrap());
        found.check("wait", changes.wait(Duration::from_secs(30)));
        found.check("transaction", transaction.commit());
        found.check("ingest", ingest.put("b", "child"));
        found.check("commit", ingest.commit());
        found.check("await", pollster::block_on(read));
        drop((iter, snapshot, changes, asynchronous, other, value));
        found.check("close", db.clone().close());
        drop(db);
        match options().open(&dir) {
            Err(Error::Locked { .. }) => {}
            opened => found.0.push(format!("opened the parent's database: {opened:?}")),
        }
        found.end(&home)
    };
    join(child);
    assert_eq!(fs::read_to_string(home.join("findings")).unwrap(), "");
    // The parent goes on with all of its handles.
    assert_eq!(pollster::block_on(read).unwrap().unwrap().len(), 50);
    assert!(iter.advance().unwrap());
    assert_eq!(snapshot.get("parent00000").unwrap().unwrap().len(), 50);
    assert!(changes.next().unwrap().is_ok());
    transaction.commit().unwrap();
    ingest.commit().unwrap();
    db.put("later", "1").unwrap();
    drop((iter, snapshot, changes, asynchronous, other, value));
    db.close().unwrap();
    let db = options().open(&dir).unwrap();
    assert_eq!(db.iter().unwrap().count(), 5_002);
    assert_eq!(db.keyspace("other", KeyspaceOptions::new()).unwrap().iter().unwrap().count(), 1);
}

/// Returns the rest of the first line of a process after `mark`.
fn line_after(process: &mut Child, mark: &str) -> String {
    let lines = BufReader::new(process.stdout.as_mut().unwrap()).lines();
    let mut found = lines.filter_map(|line| Some(line.ok()?.split_once(mark)?.1.to_owned()));
    found.next().unwrap()
}

/// The lock stayed with a worker after its parent had been killed, until the worker ended.
#[test]
fn the_lock_ends_with_its_owner_although_a_child_lives() {
    let name = "the_lock_ends_with_its_owner_although_a_child_lives";
    if let Some(home) = home() {
        let _db = options().open(home.join("db")).unwrap();
        let Some(worker) = fork() else {
            thread::sleep(Duration::from_secs(600));
            end(0)
        };
        println!("worker={worker}");
        thread::sleep(Duration::from_secs(600));
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let mut owner = rerun(name, home.path());
    let worker: i32 = line_after(&mut owner, "worker=").parse().unwrap();
    let error = options().open(home.path().join("db")).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    owner.kill().unwrap();
    owner.wait().unwrap();
    let opened = options().open(home.path().join("db"));
    // SAFETY: the signal ends the worker, which exists.
    let killed = unsafe { libc::kill(worker, libc::SIGKILL) };
    assert_eq!(killed, 0, "the worker had ended");
    drop(opened.unwrap());
}

/// A daemon, whose parent ends, waited for ever in its first flush, and could not open the database.
#[test]
fn a_daemon_opens_the_database_of_its_parent() {
    let name = "a_daemon_opens_the_database_of_its_parent";
    let Some(home) = home() else {
        let home = tempfile::tempdir().unwrap();
        let findings = home.path().join("findings");
        assert!(rerun(name, home.path()).wait().unwrap().success());
        let until = Instant::now() + Duration::from_secs(u64::from(CHILD_SECONDS));
        while !findings.exists() && Instant::now() < until {
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(fs::read_to_string(findings).unwrap(), "");
        let db = options().open(home.path().join("db")).unwrap();
        assert_eq!(db.get("parent").unwrap().unwrap(), "1");
        assert_eq!(db.get("daemon").unwrap().unwrap(), "2");
        return;
    };
    let db = options().open(home.join("db")).unwrap();
    db.put("parent", "1").unwrap();
    if fork().is_some() {
        end(0);
    }
    let mut found = Findings::default();
    found.check("put", db.put("daemon", "1"));
    drop(db);
    let until = Instant::now() + Duration::from_secs(20);
    let reopened = loop {
        match options().open(home.join("db")) {
            // The parent has not ended yet.
            Err(Error::Locked { .. }) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(5));
            }
            opened => break opened,
        }
    };
    let work = |db: Db| -> terrane::Result<()> {
        for _ in 0..2_000 {
            db.put("daemon", [b'x'; 100])?;
        }
        db.put("daemon", "2")?;
        db.flush()?;
        db.compact_range(..)?;
        db.get("parent")?;
        db.close()
    };
    if let Err(error) = reopened.and_then(work) {
        found.0.push(error.to_string());
    }
    found.end(&home)
}

struct SetOnDrop<'a>(&'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A fork may happen while other threads hold any lock of the engine.
#[test]
fn children_of_a_busy_process_never_wait_for_its_threads() {
    const FORKS: u32 = 25;
    let name = "children_of_a_busy_process_never_wait_for_its_threads";
    let Some(home) = home() else {
        let home = tempfile::tempdir().unwrap();
        assert!(rerun(name, home.path()).wait().unwrap().success());
        return;
    };
    let db = options().open(home.join("db")).unwrap();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        // The threads also end if an assertion fails.
        let done = SetOnDrop(&is_done);
        for seed in 0..2_u32 {
            let (db, is_done) = (&db, &is_done);
            scope.spawn(move || {
                let mut number = seed;
                while !is_done.load(Ordering::Relaxed) {
                    number = number.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
                    let key = format!("{:05}", number >> 18);
                    db.put(&key, [b'x'; 100]).unwrap();
                    let count = db.range(&key[..]..).unwrap().take(20).count();
                    let _ = (count, db.snapshot(), db.stats());
                }
            });
        }
        for number in 0..FORKS {
            let mut iter = db.iter().unwrap();
            let _ = iter.advance();
            let snapshot = db.snapshot();
            let Some(child) = fork() else {
                let mut found = Findings::default();
                check_db(&mut found, &db);
                drop((iter, snapshot));
                let own = options().open(home.join(format!("own-{number}"))).unwrap();
                own.put("a", "1").unwrap();
                own.flush().unwrap();
                assert_eq!(own.get("a").unwrap().unwrap(), "1");
                own.close().unwrap();
                end(i32::from(!found.0.is_empty()))
            };
            join(child);
        }
        drop(done);
    });
    db.close().unwrap();
}
