//! The Membuffer of a memtable as its front level.

use super::membuffer::Membuffer;
use super::partition::Partition;
use super::{DrainScope, FloDb, SAMPLE_KEYS_MIN};
use crate::entry::SeqNo;
use crate::readers::Readers;
use crate::scan_pause::FrontPause;
use crate::structure::FrontLevel;
use crate::sync::{Ordering, lock};

impl FrontLevel for FloDb {
    fn needs_enabling(&self) -> bool {
        self.buckets > 0
            && self.membuffer.get().is_none()
            && self.entries.load(Ordering::Relaxed) >= SAMPLE_KEYS_MIN
    }

    fn is_prepared(&self) -> bool {
        self.prepared_bytes.load(Ordering::Relaxed) > 0
    }

    fn request(&self) {
        self.is_wanted.store(true, Ordering::Relaxed);
    }

    fn prepare(&self) {
        // Locked while it is created, so that there is one.
        let mut prepared = lock(&self.prepared);
        if self.needs_enabling() && !self.is_prepared() {
            let membuffer = Membuffer::new(self.buckets, self.partitions, self.span());
            self.prepared_bytes.store(membuffer.bytes(), Ordering::Relaxed);
            *prepared = Some(Box::new(membuffer));
        }
    }

    fn enable(&self) {
        self.prepare();
        if self.needs_enabling()
            && let Some(prepared) = lock(&self.prepared).take()
        {
            // It is not set: nothing else sets it, and whoever took the prepared one first did so.
            self.membuffer.get_or_init(|| *prepared);
        }
    }

    #[inline]
    fn prefetch(&self, key: &[u8]) {
        if let Some(membuffer) = self.membuffer.get() {
            membuffer.prefetch(key);
        }
    }

    #[inline]
    fn prefetch_version(&self, key: &[u8]) {
        if let Some(membuffer) = self.membuffer.get() {
            membuffer.prefetch_version(key);
        }
    }

    fn drain(&self) -> usize {
        let Some(membuffer) = self.membuffer.get() else {
            if self.is_wanted.load(Ordering::Relaxed) {
                self.prepare();
            }
            return 0;
        };
        if self.pause.is_paused() {
            return 0;
        }
        let mut drained = 0;
        for (number, partition) in membuffer.partitions.iter().enumerate() {
            // A quarter: includes partitions that will be due soon.
            if partition.dirty() * 4 > partition.slots() {
                drained += self.drain_partition(membuffer, number, DrainScope::Cold);
                if partition.dirty() * 4 > partition.slots() * 3 {
                    drained += self.drain_partition(membuffer, number, DrainScope::All);
                }
            }
        }
        drained
    }

    fn needs_drain(&self) -> bool {
        let Some(front) = self.membuffer.get() else {
            let is_wanted = self.is_wanted.load(Ordering::Relaxed);
            return is_wanted && self.needs_enabling() && !self.is_prepared();
        };
        let is_due =
            || self.reclaiming.steps() > 0 || front.partitions.iter().any(Partition::needs_drain);
        !self.pause.is_paused() && is_due()
    }

    fn drain_all(&self) {
        if let Some(membuffer) = self.membuffer.get() {
            for number in 0..membuffer.partitions.len() {
                self.drain_partition(membuffer, number, DrainScope::All);
            }
        }
    }

    fn pause(&self) -> FrontPause<'_> {
        self.pause.begin()
    }

    fn drain_up_to(&self, seq: SeqNo) {
        self.pause.ask_for_help(seq);
        for partition in 0..self.partition_count() {
            self.drain_partition_up_to(partition, seq);
        }
    }

    fn begin_reclaiming(&self, left: usize) -> usize {
        self.begin_pass(left)
    }

    fn reclaiming_steps(&self) -> usize {
        self.reclaiming.steps()
    }

    fn reclaim_step(&self, readers: &dyn Readers) -> usize {
        self.step_pass(readers)
    }

    fn drained(&self) -> usize {
        self.drained.load(Ordering::Relaxed)
    }

    fn take_overwritten(&self) -> usize {
        self.lower.take_overwritten()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use crate::FrontLevel;
    use crate::entry::{Entry, EntryKind};
    use crate::flodb::{DrainInsert, FloDb, FloDbConfig, LowerLevel};
    use crate::key_span::KeySpan;
    use crate::pool::Pool;
    use crate::readers::ReaderView;
    use crate::structure::Structure;

    /// A scan that paused writers would meet newer versions in the lower level, and restart for ever.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "the test gives the writer time")]
    fn a_writer_that_finds_no_room_waits_while_writers_are_paused() {
        // Many times what the Membuffer takes.
        const KEYS: u64 = 2000;
        // After this many looks without progress, the writer counts as waiting.
        const UNCHANGED: usize = 50;
        let config = FloDbConfig::of(600, 2, LowerLevel::SkipList, DrainInsert::Multi);
        let memtable = FloDb::new(config, Some(KeySpan::all()), Pool::new(0));
        let written = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let pause = memtable.pause();
            let writer = scope.spawn(|| {
                for seq in 1..=KEYS {
                    let key = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
                    let version = Entry { key: &key, seq, kind: EntryKind::Value, value: b"value" };
                    let readers = || 0;
                    memtable.insert(&version, &ReaderView::new(&readers));
                    written.store(seq, Ordering::Relaxed);
                }
            });
            // It waits until the pause ends, or writes all keys; a busy machine only makes it slower.
            let (mut last, mut unchanged) = (0, 0);
            while unchanged < UNCHANGED && !writer.is_finished() {
                std::thread::sleep(Duration::from_millis(10));
                let now = written.load(Ordering::Relaxed);
                unchanged = if now == last { unchanged + 1 } else { 0 };
                last = now;
            }
            let before = written.load(Ordering::Relaxed);
            assert!(before < KEYS, "no writer waits");
            drop(pause);
        });
        assert_eq!(written.into_inner(), KEYS);
    }
}
