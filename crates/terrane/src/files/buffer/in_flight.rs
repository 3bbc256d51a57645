//! Reads of blocks in progress, so that threads which miss the same block read it once.
//!
//! 1. The first thread that misses a block reads it; the others wait until the block is in its slot, or
//!    until the read has failed.
//! 2. A thread waits once: if the block is then not in memory, it reads the block itself, at the same time
//!    as the others that have waited. A failure is thus reported to each of them, and a pool without room
//!    does not make them read one after the other.
//! 3. A thread that reads blocks waits for no other block, so that waits form no cycle. No thread
//!    that waits is pinned.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::epoch;

/// The number of parts, so that misses of different blocks rarely share a lock.
const PARTS: usize = 16;

/// The blocks that are being read.
#[derive(Debug, Default)]
pub(super) struct InFlight([Part; PARTS]);

#[derive(Debug, Default)]
struct Part {
    /// The addresses of the slots whose blocks are being read, and whether another thread waits for each.
    reads: Mutex<Vec<(usize, bool)>>,
    done: Condvar,
}

impl Part {
    fn lock(&self) -> MutexGuard<'_, Vec<(usize, bool)>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlight {
    /// Begins the read of a block whose slot has this address. If another thread reads the block, waits for
    /// it instead and returns `None`.
    pub(super) fn begin(&self, slot: usize) -> Option<Reading<'_>> {
        debug_assert!(!epoch::is_pinned(), "a pinned reader must not wait");
        let part = self.part(slot);
        let mut reads = part.lock();
        if place_of(slot, &reads).is_none() {
            reads.push((slot, false));
            return Some(Reading { part, slot });
        }
        while let Some(at) = place_of(slot, &reads) {
            reads[at].1 = true;
            reads = part.done.wait(reads).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }

    /// Begins the read of a block, unless another thread reads it.
    pub(super) fn try_begin(&self, slot: usize) -> Option<Reading<'_>> {
        let part = self.part(slot);
        let mut reads = part.lock();
        if place_of(slot, &reads).is_some() {
            return None;
        }
        reads.push((slot, false));
        Some(Reading { part, slot })
    }

    fn part(&self, slot: usize) -> &Part {
        // The low bits of the address are the same for all slots.
        &self.0[slot / size_of::<usize>() % PARTS]
    }
}

fn place_of(slot: usize, reads: &[(usize, bool)]) -> Option<usize> {
    reads.iter().position(|(other, _)| *other == slot)
}

/// The read of a block. Others that wait for it continue when this is dropped.
#[derive(Debug)]
pub(super) struct Reading<'a> {
    part: &'a Part,
    slot: usize,
}

impl Drop for Reading<'_> {
    fn drop(&mut self) {
        let mut reads = self.part.lock();
        let at = reads.iter().position(|(slot, _)| *slot == self.slot);
        let is_awaited = at.is_some_and(|at| reads.swap_remove(at).1);
        drop(reads);
        if is_awaited {
            self.part.done.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use crate::files::buffer::{BlockRef, BufferPool, Priority, Slots, pin};

    const THREADS: usize = 6;

    /// Has several threads read a block at the same time, of which the first `failures` fail. Returns how many
    /// read it, and how many got an error.
    fn read_at_once(slots: &Slots, pool: &BufferPool, failures: usize) -> (usize, usize) {
        let reads = AtomicUsize::new(0);
        let read = || -> Result<BlockRef, ()> {
            let number = reads.fetch_add(1, Ordering::Relaxed);
            // The others miss the block meanwhile.
            std::thread::sleep(Duration::from_millis(20));
            let mut block = pool.allocate(100);
            block.fill(7);
            if number < failures { Err(()) } else { Ok(block.freeze()) }
        };
        let errors = std::thread::scope(|scope| {
            let begun: Vec<_> = (0..THREADS)
                .map(|_| scope.spawn(|| slots.load_once(3, Priority::Data, read)))
                .collect();
            let results = begun.into_iter().map(|thread| thread.join().unwrap());
            results
                .filter(|block| block.as_ref().map_or(true, |block| block[..] != [7; 100]))
                .count()
        });
        (reads.into_inner(), errors)
    }

    #[test]
    fn threads_that_miss_the_same_block_read_it_once() {
        let pool = BufferPool::new(1 << 20);
        let slots = Slots::new(&pool, 5);
        assert_eq!(read_at_once(&slots, &pool, 0), (1, 0));
        assert!(slots.get(3, &pin()).is_some());
    }

    #[test]
    fn a_failed_read_fails_no_other() {
        let pool = BufferPool::new(1 << 20);
        let slots = Slots::new(&pool, 5);
        let (reads, errors) = read_at_once(&slots, &pool, 1);
        assert!(errors == 1 && (2..=THREADS).contains(&reads), "{reads} reads");
        assert!(slots.get(3, &pin()).is_some());
    }

    #[test]
    fn threads_read_a_block_for_which_there_is_no_room() {
        let pool = BufferPool::new(0);
        let slots = Slots::new(&pool, 5);
        let (reads, errors) = read_at_once(&slots, &pool, 0);
        assert!(errors == 0 && reads > 0, "{reads} reads");
    }
}
