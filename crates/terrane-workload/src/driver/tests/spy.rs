//! A store that counts its calls, and can return wrong answers on purpose.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::error::StoreError;
use crate::mem_store::MemStore;
use crate::store::{Direction, Store};

/// How the store misbehaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    None,
    LosesEveryTenth,
    AnswersWithTheKey,
    CutsValues,
    FindsEverything,
    SkipsEveryTenth,
    RepeatsEntries,
    ForgetsDeletes,
    FailsAfter(u64),
    /// After this many calls, every call waits until the first progress update.
    WaitsForProgressAfter(u64),
}

/// The number of calls of each method.
#[derive(Debug, Default, PartialEq, Eq, Clone, Copy)]
pub(super) struct Calls {
    pub(super) puts: u64,
    pub(super) synced_puts: u64,
    pub(super) batches: u64,
    pub(super) deletes: u64,
    pub(super) gets: u64,
    pub(super) multi_gets: u64,
    pub(super) scans: u64,
    pub(super) scanned: u64,
    pub(super) settles: u64,
}

pub(super) struct Spy {
    inner: MemStore,
    fault: Fault,
    counts: [AtomicU64; 9],
    /// The number of progress updates so far, counted by the test.
    pub(super) updates: AtomicU64,
    /// The number of entries requested so far, for faults that affect every n-th entry.
    asked: AtomicU64,
}

impl Spy {
    pub(super) fn over(inner: MemStore, fault: Fault) -> Self {
        let (counts, updates, asked) = Default::default();
        Self { inner, fault, counts, updates, asked }
    }

    pub(super) fn calls(&self) -> Calls {
        let [puts, synced_puts, batches, deletes, gets, multi_gets, scans, scanned, settles] =
            [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|at: usize| self.counts[at].load(Ordering::Relaxed));
        Calls { puts, synced_puts, batches, deletes, gets, multi_gets, scans, scanned, settles }
    }

    fn count(&self, at: usize) -> Result<(), StoreError> {
        let calls = self.counts[at].fetch_add(1, Ordering::Relaxed);
        match self.fault {
            Fault::FailsAfter(limit) if calls >= limit => {
                Err(StoreError::new("be lucky", "out of luck"))
            }
            Fault::WaitsForProgressAfter(limit) if calls >= limit => {
                while self.updates.load(Ordering::Relaxed) == 0 {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn is_every_tenth(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) % 10 == 9
    }

    fn get_wrongly(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        match self.fault {
            Fault::LosesEveryTenth if self.is_every_tenth() => Ok(false),
            Fault::AnswersWithTheKey => {
                visit(&key.repeat(8)[..100]);
                Ok(true)
            }
            Fault::CutsValues => self.inner.get(key, &mut |value| visit(&value[..99])),
            Fault::FindsEverything => Ok(true),
            _ => self.inner.get(key, visit),
        }
    }
}

impl Store for Spy {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.count(0)?;
        self.inner.put(key, value)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.count(1)?;
        self.inner.put(key, value)
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        self.count(2)?;
        self.inner.write_batch(puts)
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.count(3)?;
        if self.fault == Fault::ForgetsDeletes {
            return Ok(());
        }
        self.inner.delete(key)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        self.count(4)?;
        self.get_wrongly(key, visit)
    }

    fn multi_get(
        &self,
        keys: &[Vec<u8>],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<usize, StoreError> {
        self.count(5)?;
        let mut found = 0;
        for (position, key) in keys.iter().enumerate() {
            found += usize::from(self.get_wrongly(key, &mut |value| visit(position, value))?);
        }
        Ok(found)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        self.count(6)?;
        let mut shown = 0;
        self.inner.scan(start, direction, usize::MAX, &mut |key, value| {
            if shown == limit || (self.fault == Fault::SkipsEveryTenth && self.is_every_tenth()) {
                return;
            }
            let times = if self.fault == Fault::RepeatsEntries { 2 } else { 1 };
            for _ in 0..times.min(limit - shown) {
                visit(key, value);
                shown += 1;
            }
        })?;
        self.counts[7].fetch_add(shown as u64, Ordering::Relaxed);
        Ok(shown)
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.count(8)?;
        self.inner.settle()
    }
}
