//! The keys whose lookups have read a block lately.
//!
//! A table of 16-bit fingerprints, in which each key has one place. A key is forgotten when another key takes
//! its place, that is, after about as many lookups as there are places.

use crate::files::buffer::{BlockMut, BufferPool};

const FINGERPRINT_BYTES: usize = 2;

/// Fingerprints of recent keys.
pub(super) struct Recent(BlockMut);

impl Recent {
    /// Allocates `count` empty places.
    pub(super) fn allocate(pool: &BufferPool, count: usize) -> BlockMut {
        let mut places = pool.allocate(count * FINGERPRINT_BYTES);
        places.fill(0);
        places
    }

    pub(super) fn new(places: BlockMut) -> Self {
        Self(places)
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Notes a key, and returns whether it was noted before and not forgotten since.
    pub(super) fn note(&mut self, hash: u64) -> bool {
        let (places, _) = self.0.as_chunks_mut::<FINGERPRINT_BYTES>();
        // The high bits choose the place, so the low bits distinguish the keys of a place. 0 marks an empty place.
        let number = (u128::from(hash) * places.len() as u128) >> 64;
        let fingerprint = ((hash as u16) | 1).to_le_bytes();
        places
            .get_mut(number as usize)
            .is_some_and(|place| std::mem::replace(place, fingerprint) == fingerprint)
    }
}
