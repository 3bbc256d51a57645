//! Two bytes of a hash of each key, in the order of arrival, for lookups that search all of them.
//!
//! A lookup compares tags, eight or more per instruction, and follows a pointer only if they are
//! equal, which happens for one in 65,536 other keys. It goes from the newest entry to the oldest,
//! one block at a time. Each block stores the newest sequence number of all entries before it; a
//! lookup that has found a version at least as new stops there, so a key that was written recently
//! is found early.

use crate::entry::SeqNo;
use crate::head::head_of;

/// The number of entries in a block. A lookup holds the lock while it compares this many tags,
/// which takes a tenth of a microsecond.
pub(super) const BLOCK: usize = 2048;

/// The number of tags that are compared before the result is tested.
const STEP: usize = 64;

const _: () = assert!(BLOCK.is_multiple_of(STEP));

/// A hash that is compared instead of a key.
pub(super) type Tag = u16;

/// Returns the tag of a key.
pub(super) fn tag_of(key: &[u8]) -> Tag {
    let mut hash = key.len() as u64;
    for bytes in key.chunks(8) {
        hash = (hash ^ head_of(bytes)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    }
    // The upper bits depend on all bytes.
    (hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48) as Tag
}

/// The tags of a list that grows at its end and is drained from its start.
#[derive(Default)]
pub(super) struct Tags {
    tags: Vec<Tag>,
    /// For each block, a bound: no entry before the block has a larger sequence number.
    before: Vec<SeqNo>,
    /// The largest sequence number ever pushed.
    newest: SeqNo,
}

impl Tags {
    /// Creates an empty list with capacity for `capacity` tags.
    pub(super) fn with_capacity(capacity: usize) -> Self {
        let mut tags = vec![0; capacity];
        tags.clear();
        Self { tags, before: Vec::with_capacity(capacity.div_ceil(BLOCK)), newest: 0 }
    }

    pub(super) fn push(&mut self, tag: Tag, seq: SeqNo) {
        if self.tags.len().is_multiple_of(BLOCK) {
            self.before.push(self.newest);
        }
        self.newest = self.newest.max(seq);
        self.tags.push(tag);
    }

    /// Removes the first `count` tags.
    pub(super) fn drain(&mut self, count: usize, keeps_memory: bool) {
        if count == self.tags.len() && !keeps_memory {
            (self.tags, self.before) = (Vec::new(), Vec::new());
            return;
        }
        self.tags.drain(..count);
        // Blocks start elsewhere now; this bound holds for all of them.
        self.before.clear();
        self.before.resize(self.tags.len().div_ceil(BLOCK), self.newest);
    }

    /// Returns a bound: no entry before the block at `block_start` has a larger sequence number.
    pub(super) fn newest_before(&self, block_start: usize) -> SeqNo {
        self.before.get(block_start / BLOCK).copied().unwrap_or(self.newest)
    }

    /// Calls `found` with every position in `start..end` that has this tag.
    pub(super) fn find(&self, tag: Tag, start: usize, end: usize, mut found: impl FnMut(usize)) {
        let Some(tags) = self.tags.get(start..end) else { return };
        for (step, tags) in tags.chunks(STEP).enumerate() {
            // Compared without branches, so that the compiler emits a few vector instructions.
            if !tags.iter().fold(false, |any, other| any | (*other == tag)) {
                continue;
            }
            let places = tags.iter().enumerate().filter(|(_, other)| **other == tag);
            places.for_each(|(place, _)| found(start + step * STEP + place));
        }
    }

    /// Returns the bytes in use and the bytes taken from the allocator.
    pub(super) fn usage(&self) -> (usize, usize) {
        let bytes = |tags, blocks| tags * size_of::<Tag>() + blocks * size_of::<SeqNo>();
        (
            bytes(self.tags.len(), self.before.len()),
            bytes(self.tags.capacity(), self.before.capacity()),
        )
    }
}

#[cfg(all(test, not(any(loom, miri))))] // No unsafe code, and much arithmetic.
mod tests {
    use super::*;

    #[test]
    fn every_equal_tag_is_found_once() {
        let mut tags = Tags::with_capacity(10);
        (0..5000u64).for_each(|number| tags.push((number % 7) as Tag, number + 1));
        for (start, end) in [(0, 5000), (0, 0), (63, 66), (2048, 4096), (4999, 5000)] {
            let mut found = Vec::new();
            tags.find(3, start, end, |place| found.push(place));
            assert_eq!(found, (start..end).filter(|place| place % 7 == 3).collect::<Vec<_>>());
        }
    }

    #[test]
    fn nothing_before_a_block_is_newer_than_it_says() {
        let mut tags = Tags::default();
        let seqs: Vec<SeqNo> = (0..9000).map(|number| number ^ 5).collect();
        seqs.iter().for_each(|&seq| tags.push(0, seq));
        for gone in [0, 100, 3000] {
            tags.drain(gone, false);
        }
        let left = &seqs[3100..];
        for start in (0..left.len()).step_by(BLOCK) {
            let newest = seqs[..3100 + start].iter().max().unwrap();
            assert!(tags.newest_before(start) >= *newest);
        }
        tags.drain(left.len(), false);
        let newest = seqs.iter().copied().max().unwrap();
        assert_eq!((tags.usage(), tags.newest_before(0)), ((0, 0), newest));
    }

    #[test]
    fn tags_are_spread_evenly() {
        let mut counts = [0; 16];
        for number in 0..16_000u32 {
            counts[usize::from(tag_of(format!("user{number:08}").as_bytes()) >> 12)] += 1;
        }
        assert!(counts.iter().all(|count| (800..1200).contains(count)), "{counts:?}");
    }
}
