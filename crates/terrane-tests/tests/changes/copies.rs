//! Copies that followers begin with: a checkpoint has every write up to the position at which its
//! follower continues, including writes that are not in the log.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use terrane::storage::{MemoryStorage, RecordWriter, Segment, Storage, Syncer};
use terrane::{
    Background, Change, Db, Durability, Event, KeepChanges, KeyspaceOptions, Options, WriteOptions,
    WritePath,
};

use crate::all;

fn options(storage: &MemoryStorage) -> Options {
    Options::new().storage(Arc::new(storage.clone())).keep_changes(KeepChanges::bytes(64 << 20))
}

fn unlogged() -> WriteOptions {
    WriteOptions::new().durability(Durability::None)
}

/// Returns a copy, and the position after which it continues.
fn copy(db: &Db, storage: &MemoryStorage, dir: impl AsRef<Path>) -> (Db, u64) {
    db.checkpoint(&dir).unwrap();
    db.sync().unwrap();
    let copy = options(storage).background(Background::Inline).open(dir).unwrap();
    let position = copy.snapshot().sequence_number();
    (copy, position)
}

/// The writes come after the flush of the checkpoint and before its end.
#[test]
fn unlogged_writes_while_a_checkpoint_is_made_are_in_it() {
    for path in [WritePath::Concurrent, WritePath::Queue] {
        let storage = MemoryStorage::new(1);
        let leader: Arc<OnceLock<Db>> = Arc::default();
        let is_copying = Arc::new(AtomicBool::new(false));
        let (writer, copying) = (Arc::clone(&leader), Arc::clone(&is_copying));
        let options = options(&storage).background(Background::Inline).write_path(path);
        let options = options.on_event(move |event| {
            let Event::FlushEnded { .. } = event.event else { return };
            if !copying.swap(false, Ordering::Relaxed) {
                return;
            }
            let db = writer.get().unwrap();
            let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
            db.put_with("unlogged", "1", unlogged()).unwrap();
            other.put_with("unlogged", "1", unlogged()).unwrap();
            db.transaction(|transaction| {
                transaction.put("in a transaction", "1");
                Ok(())
            })
            .unwrap();
            db.put("logged", "1").unwrap();
        });
        let db = leader.get_or_init(|| options.open("db").unwrap());
        db.keyspace("other", KeyspaceOptions::new()).unwrap();
        db.put_with("before", "1", unlogged()).unwrap();
        is_copying.store(true, Ordering::Relaxed);
        let (copy, position) = copy(db, &storage, "copy");
        assert!(!is_copying.load(Ordering::Relaxed));
        assert_eq!(position, db.snapshot().sequence_number());
        assert_eq!(all(&mut db.changes(position).unwrap()), []);
        let names = ["before", "in a transaction", "logged", "unlogged"];
        let keys = |db: &Db| -> Vec<_> { db.keys().unwrap().map(Result::unwrap).collect() };
        assert_eq!((keys(db).len(), keys(&copy)), (names.len(), keys(db)));
        assert!(
            copy.keyspace("other", KeyspaceOptions::new()).unwrap().contains("unlogged").unwrap()
        );
        // Afterwards they are not logged again.
        db.put_with("later", "1", unlogged()).unwrap();
        db.put("last", "1").unwrap();
        let found = all(&mut db.changes(position).unwrap());
        assert_eq!(found[0], (position + 1, position + 1, "not logged".to_owned()));
    }
}

/// A storage whose next sync of the log takes long once it is armed.
#[derive(Debug)]
struct PausedLog {
    inner: MemoryStorage,
    pause: Arc<Pause>,
}

#[derive(Debug, Default)]
struct Pause {
    is_armed: AtomicBool,
    has_begun: AtomicBool,
}

#[derive(Debug)]
struct PausedSegment(Box<dyn Segment>, Arc<Pause>);

#[derive(Debug)]
struct PausedSyncer(Arc<dyn Syncer>, Arc<Pause>);

impl Storage for PausedLog {
    terrane_tests::forward_storage! {
        create_dir_all list len create open open_segment rename hard_link remove sync_dir lock
        boot_id entropy
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        let segment = self.inner.create_segment(path, len)?;
        Ok(Box::new(PausedSegment(segment, Arc::clone(&self.pause))))
    }
}

impl Segment for PausedSegment {
    fn len(&self) -> u64 {
        self.0.len()
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(PausedSyncer(self.0.syncer(), Arc::clone(&self.1)))
    }

    fn record_writer(&self) -> Option<Arc<dyn RecordWriter>> {
        self.0.record_writer()
    }
}

impl Syncer for PausedSyncer {
    fn sync(&self) -> io::Result<()> {
        if self.1.is_armed.swap(false, Ordering::SeqCst) {
            self.1.has_begun.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(300));
        }
        self.0.sync()
    }
}

/// An ingest takes its numbers before its tables are added, and writes in between get later ones.
#[test]
fn an_ingest_while_a_checkpoint_is_made_is_in_it_or_after_it() {
    let (storage, pause) = (MemoryStorage::new(1), Arc::<Pause>::default());
    let leader: Arc<OnceLock<Db>> = Arc::default();
    let is_copying = Arc::new(AtomicBool::new(false));
    let (writer, copying, paused) =
        (Arc::clone(&leader), Arc::clone(&is_copying), Arc::clone(&pause));
    let paused_log = PausedLog { inner: storage.clone(), pause: Arc::clone(&pause) };
    let options = options(&storage).storage(Arc::new(paused_log)).background(Background::Inline);
    let options = options.on_event(move |event| {
        let Event::FlushEnded { .. } = event.event else { return };
        if !copying.swap(false, Ordering::SeqCst) {
            return;
        }
        // The flush of the checkpoint is over. The ingest syncs the log before its tables are added.
        let db = writer.get().unwrap().clone();
        db.put("before the ingest", "1").unwrap();
        paused.is_armed.store(true, Ordering::SeqCst);
        let ingesting = db.keyspace("ingested", KeyspaceOptions::new()).unwrap();
        std::thread::spawn(move || ingesting.ingest([("key", "1")]).unwrap());
        while !paused.has_begun.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        std::thread::spawn(move || db.put("after the ingest", "1").unwrap());
        std::thread::sleep(Duration::from_millis(50));
    });
    let db = leader.get_or_init(|| options.open("db").unwrap());
    db.keyspace("ingested", KeyspaceOptions::new()).unwrap();
    db.put("before", "1").unwrap();
    is_copying.store(true, Ordering::SeqCst);
    let (copy, position) = copy(db, &storage, "copy");
    while !db.contains("after the ingest").unwrap() {
        std::thread::yield_now();
    }
    let ingested = copy.keyspace("ingested", KeyspaceOptions::new()).unwrap();
    let is_copied = ingested.contains("key").unwrap();
    let is_reported =
        all(&mut db.changes(position).unwrap()).iter().any(|(.., t)| t == "not logged");
    assert!(is_copied != is_reported, "{is_copied}, {is_reported}");
}

const WRITERS: u64 = 3;

fn text_key(writer: u64, number: u64) -> String {
    format!("{writer} {number:06}")
}

/// Alternates between unlogged writes, logged writes and ingests. Each write has its own key.
fn write(db: &Db, writer: u64, number: u64) {
    let key = text_key(writer, number);
    match number % 16 {
        5 => {
            let ingested = db.keyspace(&format!("{writer}"), KeyspaceOptions::new()).unwrap();
            ingested.ingest([(key, "1")]).unwrap();
        }
        n if n % 2 == 0 => db.put_with(key, "1", unlogged()).unwrap(),
        n if n % 4 == 3 => {
            db.keyspace("other", KeyspaceOptions::new()).unwrap().put(key, "1").unwrap();
        }
        _ => db.put(key, "1").unwrap(),
    }
}

fn keys(db: &Db) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for name in db.keyspaces() {
        let keyspace = db.keyspace(&name, KeyspaceOptions::new()).unwrap();
        for key in keyspace.keys().unwrap() {
            found.insert(String::from_utf8(key.unwrap().to_vec()).unwrap());
        }
    }
    found
}

/// A copy that lacks one of its leader's writes from before its position would differ from the leader
/// permanently.
#[test]
fn copies_next_to_unlogged_writers_and_ingests_lack_nothing() {
    let storage = MemoryStorage::new(1);
    let db = options(&storage).open("db").unwrap();
    let (is_over, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut copies = Vec::new();
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, is_over, written) = (&db, &is_over, &written);
            scope.spawn(move || {
                for number in (0..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    write(db, writer, number);
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for number in 0..12 {
            let before = written.load(Ordering::Relaxed);
            while written.load(Ordering::Relaxed) < before + 40 {
                std::thread::yield_now();
            }
            let (copy, position) = copy(&db, &storage, format!("copy {number}"));
            copies.push((keys(&copy), position));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let leader = keys(&db);
    for (number, (copied, position)) in copies.into_iter().enumerate() {
        for writer in 0..WRITERS {
            // Each writer waits for each write, so a copy of a single moment has a prefix of them.
            let count = copied.iter().filter(|key| key.starts_with(&format!("{writer} "))).count();
            let missing =
                (0..count as u64).map(|n| text_key(writer, n)).find(|key| !copied.contains(key));
            assert_eq!(missing, None, "copy {number} has {count} of writer {writer}");
        }
        let mut followed = copied.clone();
        for batch in db.changes(position).unwrap() {
            for change in batch.unwrap().iter() {
                if let Change::Put { key, .. } = change {
                    let is_new = followed.insert(String::from_utf8(key.to_vec()).unwrap());
                    assert!(is_new, "copy {number} has a change after its position {position}");
                }
            }
        }
        let logged = |key: &&String| key[2..].parse::<u64>().unwrap() % 2 == 1 && !is_ingested(key);
        let lost = leader.iter().filter(logged).find(|key| !followed.contains(*key));
        assert_eq!(lost, None, "copy {number}");
    }
}

fn is_ingested(key: &str) -> bool {
    key[2..].parse::<u64>().unwrap() % 16 == 5
}
