//! Threads that share syncs.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::super::requests::HeaderSync;
use super::*;
use crate::base::stats::Counter;
use crate::files::storage::Syncer;

/// A sync panicked, and all later syncs waited forever for it to end.
#[test]
fn a_sync_that_panics_fails_the_others() {
    #[derive(Debug)]
    struct Panics;
    impl Syncer for Panics {
        fn sync(&self) -> io::Result<()> {
            panic!("a sync that panics on purpose");
        }
    }
    let sync = LogSync::new(Arc::default());
    sync.begin_segment(PathBuf::from("1.log"), Arc::new(Panics), Lsn(0));
    std::thread::scope(|scope| {
        assert!(scope.spawn(|| sync.sync(Lsn(1), |_| ())).join().is_err());
    });
    assert_eq!(sync.sync(Lsn(1), |_| ()).unwrap_err().kind(), ErrorKind::Poisoned);
}

/// Threads request syncs of different positions, some of them beyond the position written so far, as
/// while a slice is open. Each sync must cover all that wait for it.
#[test]
fn every_request_for_a_sync_is_served() {
    const THREADS: u64 = 8;
    #[derive(Debug)]
    struct Slow;
    impl Syncer for Slow {
        fn sync(&self) -> io::Result<()> {
            std::thread::sleep(Duration::from_micros(50));
            Ok(())
        }
    }
    let counters = Arc::new(Counters::default());
    let sync = Arc::new(LogSync::new(Arc::clone(&counters)));
    sync.begin_segment(PathBuf::from("1.log"), Arc::new(Slow), Lsn(0));
    let (next, (done, served)) = (Arc::new(AtomicU64::new(1)), channel());
    for _ in 0..THREADS {
        let (sync, next, done) = (Arc::clone(&sync), Arc::clone(&next), done.clone());
        #[allow(clippy::disallowed_methods, reason = "a writer is a thread of the caller")]
        std::thread::spawn(move || {
            for _ in 0..2000 {
                let number = next.fetch_add(1, Ordering::Relaxed);
                // The last request of a sync need not be the one for the highest position.
                let upto = Lsn(number + 100 * (number % 3));
                sync.sync(upto, |_| ()).unwrap();
                assert!(sync.synced() >= upto);
            }
            done.send(()).unwrap();
        });
    }
    for _ in 0..THREADS {
        served.recv_timeout(Duration::from_secs(60)).expect("a thread waits for ever");
    }
    let syncs = counters.get(Counter::LogSyncs);
    assert!(syncs < 2000 * THREADS / 2, "{syncs} syncs");
}

/// A sync failed after another one had made the records durable.
#[test]
fn what_is_durable_stays_so_after_a_failed_sync() {
    #[derive(Debug, Default)]
    struct FailsLater(AtomicU64);
    impl Syncer for FailsLater {
        fn sync(&self) -> io::Result<()> {
            match self.0.fetch_add(1, Ordering::Relaxed) {
                0 => Ok(()),
                _ => Err(io::ErrorKind::Other.into()),
            }
        }
    }
    let sync = LogSync::new(Arc::default());
    sync.begin_segment(PathBuf::from("1.log"), Arc::new(FailsLater::default()), Lsn(0));
    sync.sync(Lsn(8), |_| ()).unwrap();
    assert!(sync.sync(Lsn(9), |_| ()).is_err());
    sync.sync(Lsn(8), |_| ()).unwrap();
    assert!(sync.sync(Lsn(9), |_| ()).is_err());
}

/// A writer that filled a segment waited for the sync of all segments before it, with the lock of all writers.
#[test]
fn a_header_waits_for_one_segment_of_a_sync_only() {
    /// Waits for a permit, unless only the start of the file is synced.
    #[derive(Debug)]
    struct Permitted(Mutex<Receiver<()>>);
    impl Syncer for Permitted {
        fn sync(&self) -> io::Result<()> {
            self.0.lock().unwrap().recv().map_err(io::Error::other)
        }
        fn sync_start(&self, _: u64) -> io::Result<()> {
            Ok(())
        }
    }
    let sync = LogSync::new(Arc::default());
    let (mut permits, mut last) = (Vec::new(), None);
    for number in 0..3 {
        let (permit, permitted) = channel();
        permits.push(permit);
        let syncer: Arc<dyn Syncer> = Arc::new(Permitted(Mutex::new(permitted)));
        last = Some(Arc::clone(&syncer));
        sync.begin_segment(PathBuf::from("1.log"), syncer, Lsn(100 * number));
    }
    let header = Arc::new(HeaderSync::new(PathBuf::from("1.log"), last.unwrap()));
    std::thread::scope(|scope| {
        let all = scope.spawn(|| sync.sync(Lsn(250), |_| ()));
        let wait_until = |condition: &dyn Fn() -> bool| {
            let begin = Instant::now();
            while !condition() && begin.elapsed() < Duration::from_secs(10) {
                std::thread::yield_now();
            }
        };
        wait_until(&|| sync.is_syncing());
        let (done, served) = channel();
        let (waits, of) = (&sync, &header);
        scope.spawn(move || done.send(waits.sync_header(of)).unwrap());
        wait_until(&|| sync.waiting_headers() > 0);
        permits[0].send(()).unwrap();
        // Two segments are still to be synced.
        let served = served.recv_timeout(Duration::from_secs(10));
        drop(permits);
        served.expect("the header waits for all segments").unwrap();
        assert!(header.is_durable());
        assert!(all.join().unwrap().is_err());
        assert!(sync.sync_header(&header).is_err(), "a failed sync is final");
    });
}

/// The thread that waits for a header may lose the race for the next sync, which may take long as well.
#[test]
fn a_sync_begins_with_the_headers_that_the_last_one_has_left() {
    /// Counts the syncs of the start of the file.
    #[derive(Debug, Default)]
    struct Counts(AtomicU64);
    impl Syncer for Counts {
        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
        fn sync_start(&self, _: u64) -> io::Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }
    let sync = LogSync::new(Arc::default());
    let syncer = Arc::new(Counts::default());
    sync.begin_segment(PathBuf::from("1.log"), Arc::clone(&syncer) as Arc<dyn Syncer>, Lsn(0));
    let of = Arc::clone(&syncer) as Arc<dyn Syncer>;
    let header = Arc::new(HeaderSync::new(PathBuf::from("1.log"), of));
    for upto in [8, 16] {
        // A thread that wakes early lists its header twice.
        sync.list_header(&header);
        sync.list_header(&header);
        sync.sync(Lsn(upto), |_| ()).unwrap();
        assert!(header.is_durable() && sync.waiting_headers() == 0);
    }
    assert_eq!(syncer.0.load(Ordering::Relaxed), 1, "a durable header needs no sync");
}
