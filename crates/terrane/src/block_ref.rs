//! A block of a table in memory: part of a mapping, or a heap allocation.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::memory_ledger::{Charge, MemoryLedger};
use crate::storage::Mapping;

/// A block that was read or decompressed, charged to the memory ledger.
pub(crate) struct HeapBlock {
    bytes: Box<[u8]>,
    _charge: Charge,
}

impl HeapBlock {
    pub(crate) fn new(bytes: Vec<u8>, ledger: &Arc<MemoryLedger>) -> Arc<Self> {
        let bytes = bytes.into_boxed_slice();
        let charge = Charge::new(ledger, |ledger| &ledger.blocks, bytes.len());
        Arc::new(Self { bytes, _charge: charge })
    }
}

impl Deref for HeapBlock {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for HeapBlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HeapBlock({} bytes)", self.bytes.len())
    }
}

/// A reference that pins the bytes of a block.
#[derive(Debug, Clone)]
pub(crate) enum BlockRef {
    /// Part of a mapped table.
    Mapped(Mapping, Range<usize>),
    /// All of a block on the heap.
    Heap(Arc<HeapBlock>),
}

impl Deref for BlockRef {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            // The range lies within the mapping, as checked when the reference was created.
            Self::Mapped(map, range) => map.get(range.clone()).unwrap_or_default(),
            Self::Heap(block) => block,
        }
    }
}
