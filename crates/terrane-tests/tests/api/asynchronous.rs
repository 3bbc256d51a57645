//! Tests futures and streams: on a runtime with one thread, on one with several, and on a minimal
//! executor.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use terrane::storage::{FaultStorage, MemoryStorage};
use terrane::{
    AsyncDb, AsyncLimits, Background, CacheWarming, Db, Durability, ErrorKind, KeyspaceOptions,
    Options, WriteBatch, WriteOptions,
};
use terrane_testkit::wait_until;

use crate::support::{DIR, fill, in_memory, small_design, value};

/// Runs a future on tokio, in this thread only.
fn on_one_thread<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future)
}

/// Polls a future once.
fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

fn is_send<T: Send>(value: T) -> T {
    value
}

/// A door at which functions on threads of the database wait.
#[derive(Clone, Default)]
struct Door(Arc<(Mutex<bool>, Condvar, AtomicUsize)>);

impl Door {
    fn pass(&self) {
        let (is_open, opened, waiting) = &*self.0;
        waiting.fetch_add(1, Ordering::SeqCst);
        let _open = opened.wait_while(is_open.lock().unwrap(), |is_open| !*is_open).unwrap();
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    /// Waits until this many functions have arrived at the door.
    fn wait_for(&self, count: usize) {
        let arrived = || self.0.2.load(Ordering::SeqCst);
        wait_until(|| arrived() >= count, || format!("{} of {count} came", arrived()));
    }
}

fn memory() -> AsyncDb {
    AsyncDb::from(in_memory().0.design(small_design()).open(DIR).unwrap())
}

/// A database whose data is all in tables, on a device whose reads take `delay`, and not in memory.
fn on_slow_device(delay: Duration, limits: AsyncLimits) -> (AsyncDb, FaultStorage) {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Threads)
        .cache_warming(CacheWarming::None)
        .memory_budget(16 << 20)
        .log_segment_bytes(64 << 10);
    let db = options.design(small_design()).open(DIR).unwrap();
    fill(&db, 200, 0);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    storage.delay_reads(delay);
    (AsyncDb::new(db, limits), storage)
}

async fn use_all_operations(db: AsyncDb) {
    db.put("a", "1").await.unwrap();
    db.put_with("b", "2", WriteOptions::new().durability(Durability::Sync)).await.unwrap();
    let people = db.keyspace("people", KeyspaceOptions::new()).await.unwrap();
    let snapshot = db.snapshot();
    let mut batch = WriteBatch::new();
    batch.put("c", "3").put_in(people.keyspace(), "ada", "7").delete("a");
    db.commit(batch, WriteOptions::new()).await.unwrap();

    assert_eq!(db.get("b").await.unwrap().unwrap(), "2");
    assert!(db.get("a").await.unwrap().is_none() && !db.contains("a").await.unwrap());
    assert_eq!(snapshot.get("a").await.unwrap().unwrap(), "1");
    assert!(snapshot.get_in(&people, "ada").await.unwrap().is_none());
    let values = db.multi_get(["a", "c"]).await.unwrap();
    assert!(values[0].is_none() && values[1].as_deref() == Some(b"3"));
    assert_eq!(snapshot.multi_get(["a"]).await.unwrap()[0].as_deref(), Some(&b"1"[..]));
    assert_eq!(people.get("ada").await.unwrap().unwrap(), "7");
    assert!(people.contains("ada").await.unwrap());
    assert_eq!(text(&mut db.iter()).await, "b=2 c=3");
    assert_eq!(text(&mut db.range("a"..="b")).await, "b=2");
    assert_eq!(text(&mut people.prefix("a")).await, "ada=7");
    assert_eq!(text(&mut snapshot.iter()).await, "a=1 b=2");
    assert_eq!(text(&mut snapshot.prefix("b")).await, "b=2");
    assert_eq!(text(&mut snapshot.range_in(&people, ..)).await, "");

    let counted = db.transaction(|tx| {
        let count = tx.get("count")?.map_or(0, |count| count.len());
        tx.put("count", "x".repeat(count + 1));
        Ok(count + 1)
    });
    assert_eq!(counted.await.unwrap(), 1);
    people.delete("ada").await.unwrap();
    db.sync().await.unwrap();
    db.flush().await.unwrap();
    assert!(people.get("ada").await.unwrap().is_none());
    assert_eq!(db.run(|db| Ok(db.iter()?.count())).await.unwrap(), 3);
    let other = db.clone();
    db.close().await.unwrap();
    assert_eq!(other.get("b").await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(other.put("b", "").await.unwrap_err().kind(), ErrorKind::Closed);
    let mut entries = other.iter();
    assert_eq!(entries.next().await.unwrap().unwrap_err().kind(), ErrorKind::Closed);
    assert!(entries.next().await.is_none());
}

async fn text(iter: &mut terrane::AsyncIter) -> String {
    let mut entries = Vec::new();
    while let Some((key, value)) = iter.next().await.transpose().unwrap() {
        entries.push(format!("{}={}", key.escape_ascii(), value.escape_ascii()));
    }
    entries.join(" ")
}

#[test]
fn every_operation_works_on_every_executor() {
    pollster::block_on(use_all_operations(memory()));
    on_one_thread(use_all_operations(memory()));
    let several = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    several.block_on(several.spawn(is_send(use_all_operations(memory())))).unwrap();
}

#[test]
fn opening_reports_its_errors_and_closing_unlocks() {
    on_one_thread(async {
        let dir = tempfile::tempdir().unwrap();
        let db = AsyncDb::open(Options::new(), dir.path()).await.unwrap();
        let second = AsyncDb::open(Options::new(), dir.path()).await;
        assert_eq!(second.unwrap_err().kind(), ErrorKind::Locked);
        db.put("key", "value").await.unwrap();
        db.close().await.unwrap();
        let db = AsyncDb::open(Options::new(), dir.path()).await.unwrap();
        assert_eq!(db.get("key").await.unwrap().unwrap(), "value");
    });
}

#[test]
fn slow_reads_and_commits_do_not_block_the_executor() {
    let (db, storage) = on_slow_device(Duration::from_millis(40), AsyncLimits::new());
    on_one_thread(async {
        let reader = db.clone();
        let read = tokio::spawn(async move {
            let one = reader.get("150").await.unwrap().unwrap();
            let mut entries = reader.range("020".."025");
            let mut count = 0;
            while entries.next().await.transpose().unwrap().is_some() {
                count += 1;
            }
            (one, count)
        });
        // A slow commit, on a thread of the database.
        let door = Door::default();
        let at_door = door.clone();
        let slow = db.transaction(move |tx| {
            at_door.pass();
            tx.put("slow", "done");
            Ok(())
        });
        let mut slow = pin!(slow);
        assert!(poll(slow.as_mut()).is_pending());
        door.wait_for(1);
        let mut ticks = 0;
        let begin = Instant::now();
        while !read.is_finished() {
            tokio::time::sleep(Duration::from_millis(1)).await;
            ticks += 1;
        }
        let took = begin.elapsed();
        // With blocking reads, each poll would have taken 40 ms, and allowed one tick.
        assert!(took >= Duration::from_millis(40) && ticks >= 10, "{ticks} ticks in {took:?}");
        let (one, count) = read.await.unwrap();
        assert_eq!((one, count), (value(150, 0).as_bytes().into(), 5));
        assert!(db.get("slow").await.unwrap().is_none());
        door.open();
        slow.await.unwrap();
        assert_eq!(db.get("slow").await.unwrap().unwrap(), "done");
    });
    assert!(storage.take_most_reads_at_once() > 0);
}

#[test]
fn lookups_in_memory_are_answered_by_the_first_poll() {
    let (db, _storage) = on_slow_device(Duration::from_millis(1), AsyncLimits::new());
    db.db().put("new", "memtable").unwrap();
    let Poll::Ready(found) = poll(pin!(db.get("new"))) else { panic!("a memtable has it") };
    assert_eq!(found.unwrap().unwrap(), "memtable");
    let mut from_table = pin!(db.get("150"));
    assert!(poll(from_table.as_mut()).is_pending(), "no block is in memory");
    assert_eq!(pollster::block_on(from_table).unwrap().unwrap(), value(150, 0).as_bytes());
    // Now its block is in memory, and so are the filters and indexes.
    let Poll::Ready(found) = poll(pin!(db.get("150"))) else { panic!("a block has it") };
    assert_eq!(found.unwrap().unwrap(), value(150, 0).as_bytes());

    // Each answer equals that of a blocking lookup: for existing, deleted and missing keys.
    db.db().delete_range("100".."120").unwrap();
    db.db().flush().unwrap();
    db.db().wait_for_compactions().unwrap();
    db.db().delete("130").unwrap();
    let mut ready = 0;
    for _ in 0..2 {
        for number in 0..400 {
            let key = format!("{number:03}");
            let expected = db.db().get(&key).unwrap();
            let mut lookup = pin!(db.get(&key));
            let found = match poll(lookup.as_mut()) {
                Poll::Ready(found) => {
                    ready += 1;
                    found
                }
                Poll::Pending => pollster::block_on(lookup),
            };
            assert_eq!(found.unwrap(), expected, "{key}");
        }
    }
    assert!(ready >= 700, "{ready} of 800 lookups were answered by the first poll");
}

#[test]
fn writes_that_no_thread_has_begun_are_cancelled_and_others_are_completed() {
    let db = AsyncDb::new(memory().db().clone(), AsyncLimits::new().writes(1));
    let door = Door::default();
    let at_door = door.clone();
    let began = db.transaction(move |tx| {
        at_door.pass();
        tx.put("began", "");
        Ok(())
    });
    let mut began = Box::pin(began);
    assert!(poll(began.as_mut()).is_pending());
    door.wait_for(1);
    let mut waiting = Box::pin(db.put("waiting", ""));
    assert!(poll(waiting.as_mut()).is_pending());
    let never_polled = db.put("never polled", "");
    drop((waiting, never_polled, began));
    door.open();
    // The only thread runs this write after the one that had already begun.
    pollster::block_on(db.put("last", "")).unwrap();
    let keys: Vec<_> = db.db().keys().unwrap().map(Result::unwrap).collect();
    assert_eq!(keys, ["began", "last"]);
}

#[test]
fn operations_wait_for_threads_in_order_and_within_the_limits() {
    let (db, storage) = on_slow_device(Duration::from_millis(2), AsyncLimits::new().reads(3));
    storage.take_most_reads_at_once();
    let running = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    on_one_thread(async {
        let reads: Vec<_> = (0..60)
            .map(|number| {
                let db = db.clone();
                tokio::spawn(async move { db.get(format!("{:03}", number * 3)).await })
            })
            .collect();
        for read in reads {
            assert!(read.await.unwrap().unwrap().is_some());
        }
        let limited = AsyncDb::new(db.db().clone(), AsyncLimits::new().writes(2));
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let (db, running) = (limited.clone(), Arc::clone(&running));
                tokio::spawn(async move {
                    db.run(move |_| {
                        let now = running.0.fetch_add(1, Ordering::SeqCst) + 1;
                        running.1.fetch_max(now, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(5));
                        running.0.fetch_sub(1, Ordering::SeqCst);
                        Ok(())
                    })
                    .await
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap().unwrap();
        }
    });
    let most = storage.take_most_reads_at_once();
    assert!((2..=3).contains(&most), "{most} reads at once");
    assert_eq!(running.1.load(Ordering::SeqCst), 2);
}

#[test]
fn a_stream_reads_no_further_than_its_consumer_asks() {
    let db = memory();
    for number in 0..2000 {
        db.db().put(format!("{number:04}"), "x").unwrap();
    }
    pollster::block_on(async {
        let mut entries = db.iter();
        assert_eq!(entries.next().await.unwrap().unwrap().0, "0000");
        let read = |db: &AsyncDb| db.db().stats().scan_entries;
        // A future that is dropped loses no entry.
        for _ in 0..15 {
            entries.next().await.unwrap().unwrap();
        }
        {
            let mut next = pin!(entries.next());
            assert!(poll(next.as_mut()).is_pending(), "the next chunk is not read yet");
        }
        assert_eq!(entries.next().await.unwrap().unwrap().0, "0016");
        drop(entries);
        // Entries are counted when the iterator is dropped.
        wait_until(|| read(&db) > 0, || "the scan continues".to_owned());
        assert_eq!(read(&db), 16 + 256);

        // Reads the iterator as a `Stream`, to its end.
        let mut entries = pin!(db.iter());
        let mut count = 0;
        let next = |context: &mut Context<'_>, entries: Pin<&mut terrane::AsyncIter>| {
            futures_core::Stream::poll_next(entries, context)
        };
        while let Some(entry) = poll_fn(|context| next(context, entries.as_mut())).await {
            assert_eq!(entry.unwrap().0, format!("{count:04}"));
            count += 1;
        }
        assert_eq!(count, 2000);
    });
}

#[test]
fn panics_are_resumed_where_the_future_is_awaited() {
    let db = AsyncDb::new(memory().db().clone(), AsyncLimits::new().writes(1));
    on_one_thread(async {
        let panicking = db.clone();
        let task = tokio::spawn(async move {
            let transaction = panicking.transaction(|tx| -> terrane::Result<()> {
                tx.put("key", "value");
                panic!("on purpose")
            });
            transaction.await
        });
        let panic = task.await.unwrap_err().into_panic();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
        // The only thread still runs, and the transaction changed nothing.
        assert!(db.get("key").await.unwrap().is_none());
        db.put("key", "later").await.unwrap();
    });
}

#[test]
fn the_last_handle_is_dropped_by_a_thread() {
    let (options, _storage) = in_memory();
    let is_dropped = Arc::new(AtomicBool::new(false));
    let on_this_thread = Arc::new(AtomicBool::new(false));
    struct Listener(Arc<AtomicBool>, Arc<AtomicBool>, std::thread::ThreadId);
    impl Listener {
        fn check(&self) {
            assert!(!self.0.load(Ordering::SeqCst));
        }
    }
    impl Drop for Listener {
        fn drop(&mut self) {
            self.1.store(std::thread::current().id() == self.2, Ordering::SeqCst);
            self.0.store(true, Ordering::SeqCst);
        }
    }
    let listener =
        Listener(Arc::clone(&is_dropped), Arc::clone(&on_this_thread), std::thread::current().id());
    let db: Db = options.on_event(move |_| listener.check()).open(DIR).unwrap();
    let db = AsyncDb::from(db);
    pollster::block_on(db.put("key", "value")).unwrap();
    let snapshot = db.snapshot();
    let mut entries = db.iter();
    pollster::block_on(entries.next()).unwrap().unwrap();
    drop(db);
    assert_eq!(pollster::block_on(snapshot.get("key")).unwrap().unwrap(), "value");
    drop(snapshot);
    drop(entries);
    wait_until(|| is_dropped.load(Ordering::SeqCst), || "the database stays open".to_owned());
    assert!(!on_this_thread.load(Ordering::SeqCst));
}

#[test]
fn concurrent_synced_commits_share_syncs() {
    let dir = tempfile::tempdir().unwrap();
    let db = AsyncDb::from(Db::open(dir.path()).unwrap());
    let before = db.db().stats().log_syncs;
    on_one_thread(async {
        let commits: Vec<_> = (0..256)
            .map(|number: u32| {
                let db = db.clone();
                tokio::spawn(async move {
                    let mut batch = WriteBatch::new();
                    batch.put(number.to_be_bytes(), "value");
                    let sync = WriteOptions::new().durability(Durability::Sync);
                    db.commit(batch, sync).await
                })
            })
            .collect();
        for commit in commits {
            commit.await.unwrap().unwrap();
        }
    });
    let syncs = db.db().stats().log_syncs - before;
    assert!(syncs < 200, "{syncs} syncs of 256 commits");
    assert_eq!(db.db().iter().unwrap().count(), 256);
}
