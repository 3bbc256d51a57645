//! What a memtable's memory is used for.

/// Bytes of memory by use. Their sum is what was taken from the allocator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Keys and values, as long as the user gave them.
    pub data_bytes: usize,
    /// Links, lengths, sequence numbers, padding, range tombstones, and the structure itself.
    pub metadata_bytes: usize,
    /// Allocated and not handed out yet.
    pub unused_bytes: usize,
}

impl MemoryUse {
    /// Data and metadata: what counts against the size of the buffer.
    pub fn used_bytes(&self) -> usize {
        self.data_bytes + self.metadata_bytes
    }

    /// Everything taken from the allocator.
    pub fn total_bytes(&self) -> usize {
        self.used_bytes() + self.unused_bytes
    }
}
