//! Notices reads of single blocks in the order of a table, such as those of gets of sorted keys, and announces
//! the following blocks.
//!
//! The operating system does not read ahead in tables by itself ([`super::open_table`]).

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// The number of consecutive blocks after which the next ones are announced.
const BLOCKS_IN_ORDER: u32 = 3;

/// The bytes that are announced first, and the bytes up to which they double.
const FIRST_BYTES: u64 = 32 << 10;
const BYTES_MAX: u64 = 1 << 20;

/// The last block of a table that was read alone from its file, and how many in order came before it.
// Relaxed everywhere: threads that read different parts of a table at worst announce too much or too little.
#[derive(Debug, Default)]
pub(super) struct InOrder {
    /// The block after the last one that was read.
    next: AtomicUsize,
    /// The number of consecutive blocks that were read.
    count: AtomicU32,
    /// The offset up to which the file was announced.
    announced: AtomicU64,
}

impl InOrder {
    /// Notes that a block at `place` is read, and returns the bytes of the file to announce.
    pub(super) fn note(&self, number: usize, place: &Range<u64>) -> Option<Range<u64>> {
        let is_next = self.next.load(Ordering::Relaxed) == number;
        self.next.store(number + 1, Ordering::Relaxed);
        let count = if is_next { self.count.load(Ordering::Relaxed).saturating_add(1) } else { 1 };
        self.count.store(count, Ordering::Relaxed);
        let doublings = count.checked_sub(BLOCKS_IN_ORDER)?;
        let ahead = FIRST_BYTES.checked_shl(doublings.min(8))?.min(BYTES_MAX);
        let announced = self.announced.load(Ordering::Relaxed);
        let is_ahead = (place.end..=place.end.saturating_add(BYTES_MAX)).contains(&announced);
        if is_ahead && announced - place.end > ahead / 2 {
            return None;
        }
        let from = if is_ahead { announced } else { place.end };
        let to = place.end.saturating_add(ahead);
        self.announced.store(to, Ordering::Relaxed);
        Some(from..to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 4096;

    fn note(seen: &InOrder, number: usize) -> Option<Range<u64>> {
        let start = number as u64 * BLOCK;
        seen.note(number, &(start..start + BLOCK))
    }

    #[test]
    fn lookups_in_order_have_what_follows_announced_once() {
        let seen = InOrder::default();
        let mut announced = 0;
        for number in 10..1000 {
            let place = number as u64 * BLOCK + BLOCK;
            if let Some(bytes) = note(&seen, number) {
                assert!(number >= 12, "block {number}");
                // Neither a gap nor a byte twice.
                assert_eq!(bytes.start, if announced == 0 { place } else { announced });
                announced = bytes.end;
            }
            assert!(number < 12 || (place..=place + BYTES_MAX).contains(&announced));
            assert!(number < 30 || announced >= place + BYTES_MAX / 2 - BLOCK);
        }
    }

    #[test]
    fn nothing_is_announced_for_other_lookups() {
        let seen = InOrder::default();
        for number in [0, 1, 7, 8, 9, 3, 4, 100, 99, 98] {
            assert_eq!(note(&seen, number).is_some(), number == 9, "block {number}");
        }
        // Later in the table.
        assert_eq!(
            [200, 201, 202].map(|number| note(&seen, number).is_some()),
            [false, false, true]
        );
    }
}
