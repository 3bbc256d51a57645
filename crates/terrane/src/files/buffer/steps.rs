//! The steps in which a pool evicts blocks and gives memory back.

/// The most bytes that are evicted at once. A batch shares the cost of waiting for readers.
pub(super) const BATCH_BYTES_MAX: usize = 256 << 10;

/// What an allocation waits for.
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
