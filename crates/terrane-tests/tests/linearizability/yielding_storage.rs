//! Files in memory, whose log makes writers pause between taking their sequence number and inserting.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::storage::{MemoryStorage, RecordWriter, Segment, Storage, Syncer};
use terrane_testkit::Rng;

/// The number of times that a writer offers its processor to other threads while none of them makes
/// progress.
const YIELDS_MAX: u32 = 50;

/// Counts the operations of all threads, and pauses writers until other threads have made progress.
#[derive(Debug, Default)]
pub struct Progress(AtomicU64);

impl Progress {
    /// Returns a moment later than all moments returned so far.
    pub fn moment(&self) -> u64 {
        self.0.fetch_add(1, Ordering::SeqCst)
    }

    /// Pauses some callers until a few other operations have begun or ended, but only for a bounded
    /// number of steps, because all other threads may be waiting for this one.
    fn pause(&self, rng: &mut Rng) {
        let until = self.0.load(Ordering::SeqCst) + rng.below(7).saturating_sub(1);
        for _ in 0..YIELDS_MAX {
            if self.0.load(Ordering::SeqCst) >= until {
                break;
            }
            std::thread::yield_now();
        }
    }
}

/// The storage.
#[derive(Debug)]
pub struct YieldingStorage {
    pub inner: MemoryStorage,
    pub progress: Arc<Progress>,
}

#[derive(Debug)]
struct YieldingSegment(Box<dyn Segment>, Arc<Progress>);

#[derive(Debug)]
struct YieldingWriter(Arc<dyn RecordWriter>, Arc<Progress>);

impl Storage for YieldingStorage {
    terrane_tests::forward_storage! {
        create_dir_all list len create open rename hard_link remove sync_dir lock boot_id
        entropy
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        let segment = self.inner.create_segment(path, len)?;
        Ok(Box::new(YieldingSegment(segment, Arc::clone(&self.progress))))
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        let segment = self.inner.open_segment(path)?;
        Ok(Box::new(YieldingSegment(segment, Arc::clone(&self.progress))))
    }
}

impl Segment for YieldingSegment {
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write(offset, bytes)?;
        self.1.pause(&mut Rng::new(offset));
        Ok(())
    }
    fn syncer(&self) -> Arc<dyn Syncer> {
        self.0.syncer()
    }
    fn record_writer(&self) -> Option<Arc<dyn RecordWriter>> {
        let writer = self.0.record_writer()?;
        Some(Arc::new(YieldingWriter(writer, Arc::clone(&self.1))))
    }
}

impl RecordWriter for YieldingWriter {
    fn write_record(&self, offset: u64, record: &[&[u8]]) -> io::Result<()> {
        self.0.write_record(offset, record)?;
        // The writer has its sequence numbers but has not inserted its operations yet. Later writers
        // insert theirs meanwhile, so that versions of a key arrive out of order.
        self.1.pause(&mut Rng::new(offset));
        Ok(())
    }
    fn write_zeros(&self, offset: u64, len: u64) -> io::Result<()> {
        self.0.write_zeros(offset, len)
    }
}
