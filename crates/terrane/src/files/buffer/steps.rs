//! The steps in which a pool evicts blocks and releases memory, and the waits for readers between them.

use std::time::Duration;

/// The maximum number of bytes evicted at once. A batch shares the cost of waiting for readers.
pub(super) const BATCH_BYTES_MAX: usize = if cfg!(miri) { 1 << 10 } else { 256 << 10 };

/// The reason why an allocation must wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// Readers still use the evicted blocks, or the pool is full and can evict nothing.
    Readers,
    /// Mapped memory of this size, which the caller takes from the system without the lock.
    Pages(usize),
}

/// The result of a step of `State::shrink`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shrinking {
    /// There is more to do.
    Goes,
    /// Readers still use the evicted blocks.
    Waits,
    /// The pool is within its capacity, or the rest is in use.
    Ends,
}

/// The number of waits that spin, and then of waits that yield the processor.
const SPINS: u32 = 4;
const YIELDS: u32 = 3;

/// Waits of increasing length. Readers are pinned for microseconds, unless they are preempted.
#[derive(Debug, Default)]
pub(super) struct Backoff(u32);

impl Backoff {
    /// Returns true if the readers were probably preempted.
    pub(super) fn is_long(&self) -> bool {
        self.0 >= SPINS + YIELDS
    }

    pub(super) fn wait(&mut self) {
        match self.0 {
            0..SPINS => (0..50 << self.0).for_each(|_| std::hint::spin_loop()),
            waits if waits < SPINS + YIELDS => std::thread::yield_now(),
            waits => {
                let doublings = (waits - SPINS - YIELDS).min(5);
                std::thread::sleep(Duration::from_micros(50 << doublings));
            }
        }
        self.0 = self.0.saturating_add(1);
    }
}
