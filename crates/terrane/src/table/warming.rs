//! Blocks of a new table, put into the block cache while it is written.
//!
//! A compaction replaces tables, and with them blocks that readers have in the cache; the first
//! reads of what takes their place would go to storage. The job has the new blocks in memory
//! already, so it can put them in (compaction paper, take-aways V and VII: what compactions read
//! and write keeps filters and indexes warm). It does so only where the old ones were in the cache:
//! index and filter if those of at least half of the tables that it reads were, a data block if at
//! least half of the blocks that were read since the data block before it were. A flush has no
//! inputs, and what was just written is read soon: its blocks are put in.
//!
//! The cache keeps to its room: what is put in drives out what was used less. Mapped tables are not
//! read through the cache, and nothing is put in for them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::reader::{ReadPath, Table, TableEnvironment};
use crate::block_ref::HeapBlock;
use crate::cache::BlockKey;
use crate::error::Result;
use crate::stats::Counter;

/// Which blocks of a job's tables are put into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CacheWarming {
    /// None of them.
    None,
    /// Indexes and filters.
    Meta,
    /// Data blocks, too.
    All,
}

/// Puts blocks of the tables of one job into the cache.
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

/// How many of the data blocks that a compaction reads are in the cache.
#[derive(Debug, Default)]
pub(crate) struct Heat {
    /// Blocks that were read since the last answer, and those of them that were cached.
    read: AtomicU32,
    cached: AtomicU32,
    /// The last answer, for blocks that are made of the same.
    was_hot: AtomicU32,
}

impl Heat {
    /// Notes that a data block of an input is read.
    pub(super) fn note(&self, table: &Table, offset: u64) {
        let is_cached = table.is_cached(offset);
        // Relaxed, as all here: one thread reads and writes them.
        self.read.fetch_add(1, Ordering::Relaxed);
        self.cached.fetch_add(u32::from(is_cached), Ordering::Relaxed);
    }

    /// Whether at least half of what was read since the last answer was in the cache.
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
    /// For a flush.
    pub(crate) fn of_flush(
        environment: &Arc<TableEnvironment>,
        warming: CacheWarming,
    ) -> Option<Self> {
        let data = if warming == CacheWarming::All { Data::All } else { Data::None };
        let warmer = Self { environment: Arc::clone(environment), index: true, filter: true, data };
        (warming != CacheWarming::None && environment.is_cached()).then_some(warmer)
    }

    /// For a compaction that reads `tables`.
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

    /// What the job should tell of the data blocks that it reads.
    pub(crate) fn heat(&self) -> Option<&Arc<Heat>> {
        match &self.data {
            Data::As(heat) => Some(heat),
            Data::None | Data::All => None,
        }
    }

    /// Whether the data block that is written now belongs into the cache.
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

    /// Puts a block into the cache: its bytes as readers want them.
    pub(super) fn put(&self, table: u64, offset: u64, bytes: Vec<u8>) {
        let TableEnvironment { cache, counters, ledger, .. } = &*self.environment;
        counters.add(Counter::CacheWarmed, 1);
        counters.add(Counter::CacheWarmedBytes, bytes.len() as u64);
        cache.insert(BlockKey { table, offset }, HeapBlock::new(bytes, ledger));
    }
}

impl TableEnvironment {
    /// Whether tables are read through the cache.
    fn is_cached(&self) -> bool {
        matches!(self.read_path, ReadPath::Cached(_))
    }
}
