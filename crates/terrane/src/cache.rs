//! The block cache: heap blocks by table and offset.
//!
//! It contains the blocks that are not read in place from a mapping: all blocks of tables read by
//! system calls, and decompressed blocks of mapped tables. Data, index and filter blocks share its
//! capacity.

use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use quick_cache::{OptionsBuilder, Weighter, sync::Cache};

use crate::block_ref::HeapBlock;

/// The identity of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockKey {
    /// The number of the table, which is never reused.
    pub(crate) table: u64,
    /// The offset of the block in the table.
    pub(crate) offset: u64,
}

/// The memory that a cache entry takes in addition to its block.
const ENTRY_OVERHEAD_BYTES: u64 = 64;

/// The smallest capacity of a shard. The cache divides its capacity evenly among shards and rejects
/// blocks that do not fit into one shard, so a shard must have room for many large blocks.
const SHARD_BYTES_MIN: u64 = 32 << 20;

/// A bounded cache of blocks, shared by all tables of a database.
pub(crate) struct BlockCache {
    cache: Cache<BlockKey, Arc<HeapBlock>, ByBytes, BuildHasherDefault<BlockKeyHasher>>,
}

#[derive(Debug, Clone, Default)]
struct ByBytes;

impl Weighter<BlockKey, Arc<HeapBlock>> for ByBytes {
    fn weight(&self, _key: &BlockKey, block: &Arc<HeapBlock>) -> u64 {
        block.len() as u64 + ENTRY_OVERHEAD_BYTES
    }
}

/// Hashes a [`BlockKey`] by mixing its two numbers. Each pair of numbers is unique, so the hash
/// only has to distribute the pairs evenly.
#[derive(Debug, Default)]
pub(crate) struct BlockKeyHasher(u64);

impl Hasher for BlockKeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    fn write_u64(&mut self, number: u64) {
        let mixed = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl BlockCache {
    /// Returns a cache of at most `bytes`.
    pub(crate) fn new(bytes: u64) -> Self {
        let shards = (bytes / SHARD_BYTES_MIN).clamp(1, 64) as usize;
        let options = OptionsBuilder::new()
            .shards(shards)
            .estimated_items_capacity((bytes / 4096).max(16) as usize)
            .weight_capacity(bytes)
            .build();
        let hasher = BuildHasherDefault::default();
        let cache = match options {
            Ok(options) => Cache::with_options(
                options,
                ByBytes,
                hasher,
                quick_cache::sync::DefaultLifecycle::default(),
            ),
            // Cannot happen, because all required options are set; builds the same cache.
            Err(_) => Cache::with(
                (bytes / 4096).max(16) as usize,
                bytes,
                ByBytes,
                hasher,
                quick_cache::sync::DefaultLifecycle::default(),
            ),
        };
        Self { cache }
    }

    /// Returns the block with this key, if it is cached.
    #[inline]
    pub(crate) fn get(&self, key: &BlockKey) -> Option<Arc<HeapBlock>> {
        self.cache.get(key)
    }

    /// Returns true if the block is cached. This does not count as a use of the block.
    pub(crate) fn contains(&self, key: &BlockKey) -> bool {
        self.cache.contains_key(key)
    }

    /// Inserts a block, and evicts others to make room for it.
    pub(crate) fn insert(&self, key: BlockKey, block: Arc<HeapBlock>) {
        self.cache.insert(key, block);
    }

    /// Changes the capacity.
    pub(crate) fn set_capacity(&self, bytes: u64) {
        self.cache.set_capacity(bytes);
    }

    /// Returns the capacity in bytes.
    pub(crate) fn capacity(&self) -> u64 {
        self.cache.capacity()
    }

    /// Returns the bytes of the cached blocks, including overhead.
    pub(crate) fn used_bytes(&self) -> u64 {
        self.cache.weight()
    }
}

impl fmt::Debug for BlockCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlockCache({} of {} bytes)", self.used_bytes(), self.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_ledger::MemoryLedger;

    #[test]
    fn cache_keeps_within_its_room() {
        let ledger = Arc::new(MemoryLedger::default());
        let cache = BlockCache::new(1 << 20);
        for offset in 0..1000 {
            cache.insert(BlockKey { table: 1, offset }, HeapBlock::new(vec![0; 4096], &ledger));
        }
        assert!(cache.used_bytes() <= 1 << 20);
        let held = ledger.blocks.load(std::sync::atomic::Ordering::Relaxed) as u64;
        assert!(held <= 1 << 20 && held > 1 << 19, "{held}");
        cache.set_capacity(1 << 16);
        assert!(cache.used_bytes() <= 1 << 16);
        assert_eq!(cache.get(&BlockKey { table: 2, offset: 0 }).map(|block| block.len()), None);
    }
}
