//! Bytes of a table that are in memory: part of a mapping, or a block on the heap.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::memory::{Charge, MemoryLedger};
use crate::storage::Mapping;

/// A block that was read or decompressed, and charges for its memory.
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

/// Bytes that stay in memory as long as this does.
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
            // Made only with ranges that lie in the mapping.
            Self::Mapped(map, range) => map.get(range.clone()).unwrap_or_default(),
            Self::Heap(block) => block,
        }
    }
}
