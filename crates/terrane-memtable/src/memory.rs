//! The memory of a memtable, by use.

/// Bytes of memory by use. Their sum is the memory taken from the allocator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// User bytes: the lengths of keys and values as passed in.
    pub data_bytes: usize,
    /// Links, lengths, sequence numbers, padding, range tombstones, and the structure itself.
    pub metadata_bytes: usize,
    /// Allocated but not used yet.
    pub unused_bytes: usize,
}

impl MemoryUse {
    /// Returns data plus metadata, which count against the size of the buffer.
    pub fn used_bytes(&self) -> usize {
        self.data_bytes + self.metadata_bytes
    }

    /// Returns all bytes taken from the allocator.
    pub fn total_bytes(&self) -> usize {
        self.used_bytes() + self.unused_bytes
    }
}
