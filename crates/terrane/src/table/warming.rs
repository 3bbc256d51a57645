//! Cache warming: inserts blocks of new tables into the block cache while they are written.
//!
//! A compaction replaces tables and thereby invalidates cached blocks, so the first reads of the
//! new tables would go to storage. The job has the new blocks in memory and can insert them
//! (compaction paper, take-aways V and VII). It does so only where the old blocks were cached: it
//! inserts the index and filter if at least half of its input tables had theirs cached, and a data
//! block if at least half of the input blocks read since the previous data block were cached. A flush
//! has no inputs, and new data is read soon, so it always inserts its blocks.
//!
//! The cache evicts less used blocks to make room. Mapped tables are not read through the cache, so
//! nothing is inserted for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::reader::{ReadPath, Table, TableEnvironment};
use crate::block_ref::HeapBlock;
use crate::cache::BlockKey;
use crate::error::Result;
use crate::stats::Counter;

/// The blocks of a job's tables that are inserted into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheWarming {
    /// No blocks.
    None,
    /// Indexes and filters.
    Meta,
    /// Indexes, filters and data blocks.
    All,
}

/// Inserts blocks of the tables of one job into the cache.
#[derive(Debug, Clone)]
pub(crate) struct Warmer {
    environment: Arc<TableEnvironment>,
    index: bool,
    filter: bool,
    data: Data,
}

#[derive(Debug, Clone)]
enum Data {
    None,
    All,
    As(Arc<Heat>),
}

/// Counts how many of the data blocks that a compaction reads are cached.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    /// The number of blocks read since the last decision.
    read: AtomicU32,
    cached: AtomicU32,
    /// The last decision, which also applies to further output blocks from the same input blocks.
    was_hot: AtomicU32,
}

impl Heat {
    /// Records that a data block of an input is read.
    pub(super) fn note(&self, table: &Table, offset: u64) {
        let is_cached = table.is_cached(offset);
        // Relaxed, as everywhere here: only one thread uses them.
        self.read.fetch_add(1, Ordering::Relaxed);
        self.cached.fetch_add(u32::from(is_cached), Ordering::Relaxed);
    }

    /// Returns true if at least half of the blocks read since the last decision were cached.
    fn is_hot(&self) -> bool {
        let (read, cached) =
            (self.read.swap(0, Ordering::Relaxed), self.cached.swap(0, Ordering::Relaxed));
        if read > 0 {
            self.was_hot.store(u32::from(cached * 2 >= read), Ordering::Relaxed);
        }
        self.was_hot.load(Ordering::Relaxed) != 0
    }
}

impl Warmer {
    /// Returns a warmer for the tables of a flush.
    pub(crate) fn of_flush(
        environment: &Arc<TableEnvironment>,
        warming: CacheWarming,
    ) -> Option<Self> {
        let data = if warming == CacheWarming::All { Data::All } else { Data::None };
        let warmer = Self { environment: Arc::clone(environment), index: true, filter: true, data };
        (warming != CacheWarming::None && environment.is_cached()).then_some(warmer)
    }

    /// Returns a warmer for the tables of a compaction that reads `tables`.
    ///
    /// # Errors
    /// A table cannot be opened.
    pub(crate) fn of_compaction<'a>(
        environment: &Arc<TableEnvironment>,
        warming: CacheWarming,
        tables: impl IntoIterator<Item = &'a Arc<Table>>,
    ) -> Result<Option<Self>> {
        if warming == CacheWarming::None || !environment.is_cached() {
            return Ok(None);
        }
        let (mut count, mut indexes, mut filters) = (0, 0, 0);
        for table in tables {
            let footer = &table.opened()?.footer;
            count += 1;
            indexes += u64::from(table.is_cached(footer.index.offset));
            filters += u64::from(footer.filter.is_none() || table.is_cached(footer.filter.offset));
        }
        let data = match warming {
            CacheWarming::All => Data::As(Arc::default()),
            _ => Data::None,
        };
        let (index, filter) = (indexes * 2 >= count, filters * 2 >= count);
        Ok(Some(Self { environment: Arc::clone(environment), index, filter, data }))
    }

    /// Returns the counter to which the job reports its reads of data blocks.
    pub(crate) fn heat(&self) -> Option<&Arc<Heat>> {
        match &self.data {
            Data::As(heat) => Some(heat),
            Data::None | Data::All => None,
        }
    }

    /// Returns true if the data block that is being written should be inserted.
    pub(super) fn wants_data(&self) -> bool {
        match &self.data {
            Data::None => false,
            Data::All => true,
            Data::As(heat) => heat.is_hot(),
        }
    }

    pub(super) fn wants_index(&self) -> bool {
        self.index
    }

    pub(super) fn wants_filter(&self) -> bool {
        self.filter
    }

    /// Inserts a block, in the form that readers use.
    pub(super) fn put(&self, table: u64, offset: u64, bytes: Vec<u8>) {
        let TableEnvironment { cache, counters, ledger, .. } = &*self.environment;
        counters.add(Counter::CacheWarmed, 1);
        counters.add(Counter::CacheWarmedBytes, bytes.len() as u64);
        cache.insert(BlockKey { table, offset }, HeapBlock::new(bytes, ledger));
    }
}

impl TableEnvironment {
    /// Returns true if tables are read through the cache.
    fn is_cached(&self) -> bool {
        matches!(self.read_path, ReadPath::Cached(_))
    }
}
