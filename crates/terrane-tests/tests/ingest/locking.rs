//! Writers that come between the moments at which an ingest takes its numbers and becomes visible.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use terrane::storage::{MemoryStorage, Segment, Storage, Syncer};
use terrane::{Background, KeyspaceOptions, Options, WriteBatch};
use terrane_testkit::run_guarded;

/// What happens before each sync of the log.
type Hook = Arc<Mutex<Option<Arc<dyn Fn() + Send + Sync>>>>;

/// Files in memory, with a hook before each sync of the log.
#[derive(Clone)]
struct HookedStorage {
    inner: MemoryStorage,
    before_sync: Hook,
}

struct HookedSegment(Box<dyn Segment>, Hook);

struct HookedSyncer(Arc<dyn Syncer>, Hook);

macro_rules! debug_by_name {
    ($($name:ident)*) => { $(impl std::fmt::Debug for $name {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str(stringify!($name))
        }
    })* };
}

debug_by_name! { HookedStorage HookedSegment HookedSyncer }

impl Storage for HookedStorage {
    terrane_tests::forward_storage! {
        create_dir_all list len create open rename hard_link remove sync_dir lock boot_id entropy
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        let segment = self.inner.create_segment(path, len)?;
        Ok(Box::new(HookedSegment(segment, Arc::clone(&self.before_sync))))
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        let segment = self.inner.open_segment(path)?;
        Ok(Box::new(HookedSegment(segment, Arc::clone(&self.before_sync))))
    }
}

impl Segment for HookedSegment {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(offset, bytes)
    }
    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(HookedSyncer(self.0.syncer(), Arc::clone(&self.1)))
    }
}

impl Syncer for HookedSyncer {
    fn sync(&self) -> io::Result<()> {
        let hook = self.1.lock().unwrap().clone();
        hook.into_iter().for_each(|hook| hook());
        self.0.sync()
    }
}

/// A FloDB memtable gets its Membuffer once all writes before are inserted. A writer that came while an ingest of
/// another keyspace had its numbers waited for this with the lock, which the ingest needs to become visible.
#[test]
fn no_writer_waits_for_an_ingest_with_the_lock() {
    let storage = HookedStorage { inner: MemoryStorage::new(1), before_sync: Arc::default() };
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Threads)
        .design("1-leveling; buffer=1MiB; memtable=flodb".parse().unwrap());
    let db = options.open("db").unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    // Enough keys for a Membuffer, in one write: later ones will ask for it.
    let mut batch = WriteBatch::new();
    for key in 0..2000_u32 {
        batch.put_in(&other, key.to_be_bytes(), "value");
    }
    db.write(&batch).unwrap();
    db.put("before", "value").unwrap();
    let writers: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
    let syncs = AtomicUsize::new(0);
    let write = {
        let (db, writers) = (db.clone(), Arc::clone(&writers));
        move || {
            // This write makes the ingest sync the log once more, after it has taken its numbers.
            if syncs.fetch_add(1, Ordering::Relaxed) == 0 {
                return db.put("during", "value").unwrap();
            }
            for _ in 0..4 {
                let (other, mut writers) = (other.clone(), writers.lock().unwrap());
                let key = 5000 + writers.len() as u32;
                // Larger than the space that a thread may fill without looking at the memtable.
                let put = move || other.put(key.to_be_bytes(), vec![7; 32 << 10]).unwrap();
                writers.push(thread::spawn(put));
                drop(writers);
                // A drain thread prepares the Membuffer meanwhile.
                thread::sleep(Duration::from_millis(40));
            }
        }
    };
    let mut ingest = db.default_keyspace().begin_ingest().unwrap();
    ingest.put("ingested", "value").unwrap();
    *storage.before_sync.lock().unwrap() = Some(Arc::new(write));
    let (db, written) = run_guarded(move || {
        ingest.commit().unwrap();
        let written = writers.lock().unwrap().drain(..).map(|one| one.join().unwrap()).count();
        (db, written)
    });
    assert!(written > 0, "no writer came during the ingest");
    *storage.before_sync.lock().unwrap() = None;
    assert_eq!(db.iter().unwrap().count(), 3);
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    assert_eq!(other.iter().unwrap().count(), 2000 + written);
}
