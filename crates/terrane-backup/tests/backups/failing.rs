//! A repository that fails at each of its calls, and one whose disk is full.

use std::io::{self, Read};
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_backup::{
    CheckpointWith, CreateOptions, Error, Memory, PruneOptions, Repository, RestoreOptions,
    Retention, Stored, VerifyOptions, Which, create, list, prune, restore, verify,
};

use crate::support::{back_up, contents, fill, names, object_bytes, open, restored};

/// Fails one call, or every call from a given one on, and stores at most a given number of bytes.
struct Failing {
    inner: Memory,
    calls: AtomicU64,
    fails_at: AtomicU64,
    is_lasting: bool,
    capacity: AtomicU64,
}

impl Failing {
    fn new(inner: Memory, fails_at: u64, is_lasting: bool) -> Self {
        let capacity = AtomicU64::new(u64::MAX);
        Self { inner, calls: AtomicU64::new(0), fails_at: fails_at.into(), is_lasting, capacity }
    }

    fn call(&self) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let fails_at = self.fails_at.load(Ordering::Relaxed);
        if call == fails_at || (self.is_lasting && call > fails_at) {
            return Err(io::Error::other("the network is down"));
        }
        Ok(())
    }
}

impl Repository for Failing {
    fn location(&self) -> String {
        "failing".into()
    }

    fn put(&self, name: &str, contents: &mut dyn Read) -> io::Result<()> {
        self.call()?;
        let mut bytes = Vec::new();
        contents.read_to_end(&mut bytes)?;
        let used: u64 = self.inner.list("")?.iter().map(|stored| stored.bytes).sum();
        if used + bytes.len() as u64 > self.capacity.load(Ordering::Relaxed) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.inner.put(name, &mut &bytes[..])
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        self.call()?;
        self.inner.get(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Stored>> {
        self.call()?;
        self.inner.list(folder)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        self.call()?;
        self.inner.delete(name)
    }
}

/// Locks of this process would last for half an hour.
fn remove_locks(repository: &Memory) {
    for stored in repository.list("locks/").unwrap() {
        repository.delete(&stored.name).unwrap();
    }
}

/// Fails each call of a backup, a prune and a restore in turn: every backup that is listed is intact
/// afterwards, and the operation succeeds when it is repeated.
#[test]
fn each_call_may_fail() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..9, 0);
    let made = tempfile::tempdir().unwrap();
    let made = made.path().join("checkpoint");
    db.checkpoint(&made).unwrap();
    // Copies the files without syncing them, because the loop makes many checkpoints.
    let source = CheckpointWith::new(db.path(), |target| {
        std::fs::create_dir(target)?;
        for name in names(&made) {
            std::fs::copy(made.join(&name), target.join(&name))?;
        }
        Ok(())
    });
    let options = CreateOptions::new();
    for is_lasting in [false, true] {
        let repository = Memory::new();
        let mut failures = 0;
        for call in 0.. {
            let failing = Failing::new(repository.clone(), call, is_lasting);
            let target = dir.path().join("restored");
            let result = create(&source, &failing, &options)
                .and_then(|_| prune(&failing, &PruneOptions::new(Retention::last(2))))
                .and_then(|_| restore(&failing, &Which::Latest, &target, &RestoreOptions::new()));
            remove_locks(&repository);
            if let Err(error) = &result {
                failures += 1;
                // The lock of the backup may have remained.
                let is_expected = matches!(error, Error::Io { .. } | Error::InUse { .. });
                assert!(is_expected, "call {call}: {error}");
            }
            if !repository.list("").unwrap().is_empty() {
                assert!(verify(&repository, &VerifyOptions::new()).unwrap().is_intact());
                // Otherwise each round would have more to remove than the previous one.
                prune(&repository, &PruneOptions::new(Retention::last(1))).unwrap();
            }
            assert!(names(dir.path()).iter().all(|name| name == "db" || name == "restored"));
            if target.exists() {
                if let Ok(restored) = &result {
                    assert_eq!(restored.backup.sequence, db.snapshot().sequence_number());
                }
                std::fs::remove_dir_all(target).unwrap();
            }
            if failing.calls.load(Ordering::Relaxed) <= call {
                break;
            }
        }
        assert!(failures > 20, "{failures}");
        back_up(&db, &repository);
        let target = dir.path().join(format!("at last {is_lasting}"));
        assert_eq!(restored(&repository, &Which::Latest, &target), contents(&db));
        std::fs::remove_dir_all(target).unwrap();
    }
}

#[test]
fn a_full_disk_leaves_no_backup_and_the_next_one_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..1500, 0);
    let failing = Failing::new(Memory::new(), u64::MAX, false);
    let mut errors = 0;
    for capacity in (0..).map(|step| step * (64 << 10)) {
        failing.capacity.store(capacity, Ordering::Relaxed);
        match create(&db, &failing, &CreateOptions::new()) {
            Ok(created) => {
                assert!(created.stored_bytes < 160 << 10, "{}", created.stored_bytes);
                break;
            }
            Err(Error::Io { operation: "write", source, .. }) => {
                assert_eq!(source.kind(), io::ErrorKind::StorageFull);
                errors += 1;
            }
            Err(error) => panic!("{error}"),
        }
        let backups = list(&failing).map(|found| found.backups).unwrap_or_default();
        assert!(backups.is_empty() && object_bytes(&failing) <= capacity);
        assert_eq!(names(dir.path()), ["db"]);
    }
    assert!(errors > 2, "{errors}");
    assert_eq!(restored(&failing, &Which::Latest, &dir.path().join("new")), contents(&db));
}

/// A repository used by another process, which acts before some calls.
struct Shared<F> {
    inner: Memory,
    before: F,
}

impl<F: Fn(&'static str, &str) + Send + Sync> Repository for Shared<F> {
    fn location(&self) -> String {
        "shared".into()
    }

    fn put(&self, name: &str, contents: &mut dyn Read) -> io::Result<()> {
        (self.before)("put", name);
        self.inner.put(name, contents)
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        (self.before)("get", name);
        self.inner.get(name)
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Stored>> {
        (self.before)("list", folder);
        self.inner.list(folder)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        (self.before)("delete", name);
        self.inner.delete(name)
    }
}

/// A machine whose clock differs considers the lock stale at the last moment, and its prune does not see
/// the manifest.
#[test]
fn a_backup_that_loses_its_lock_while_it_stores_its_manifest_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..9, 0);
    let inner = Memory::new();
    let other = inner.clone();
    let before = move |call: &'static str, name: &str| {
        if call == "put" && name.starts_with("backups/") {
            remove_locks(&other);
        }
    };
    let repository = Shared { inner, before };
    let lost = create(&db, &repository, &CreateOptions::new()).unwrap_err().to_string();
    assert!(lost.contains("run the operation again"), "{lost}");
    assert!(list(&repository).unwrap().backups.is_empty());
}

/// When two databases were first backed up concurrently, one of them found a location with files.
#[test]
fn the_first_backups_of_two_databases_may_be_created_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (db, rival) = (open(&dir.path().join("db")), open(&dir.path().join("rival")));
    let inner = Memory::new();
    let other = inner.clone();
    let is_first = AtomicU64::new(1);
    let before = move |call: &'static str, name: &str| {
        if call == "list" && name.is_empty() && is_first.swap(0, Ordering::Relaxed) == 1 {
            back_up(&rival, &other);
        }
    };
    let repository = Shared { inner, before };
    back_up(&db, &repository);
    assert_eq!(list(&repository).unwrap().backups.len(), 2);
}

/// A backup read every manifest of the repository, of which there may be thousands.
#[test]
fn a_backup_reads_one_manifest_of_its_database_only() {
    let dir = tempfile::tempdir().unwrap();
    let (db, other) = (open(&dir.path().join("db")), open(&dir.path().join("other")));
    let inner = Memory::new();
    for _ in 0..3 {
        back_up(&db, &inner);
        back_up(&other, &inner);
    }
    let reads = AtomicU64::new(0);
    let before = |call: &'static str, name: &str| {
        reads
            .fetch_add(u64::from(call == "get" && name.starts_with("backups/")), Ordering::Relaxed);
    };
    let repository = Shared { inner, before };
    back_up(&db, &repository);
    assert_eq!(reads.load(Ordering::Relaxed), 1);
}
