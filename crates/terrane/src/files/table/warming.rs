//! Cache warming: keeps blocks of new tables in memory while they are written.
//!
//! A compaction replaces tables and thereby invalidates cached blocks, so the first reads of the new tables
//! would go to storage. The job has the new blocks in memory and can put them into the table's slots, which are
//! handed over when the table is opened (compaction paper, take-aways V and VII). It does so only where the old
//! blocks were cached: it inserts the index and filter if at least half of its input tables had their own
//! cached, and a data block if at least half of the input blocks read since the previous data block were
//! cached. A flush has no inputs. Where the database is read, new data is read soon, and the flush inserts its
//! blocks.
//!
//! A compaction also labels the hot records of its inputs with its tables ([`crate::files::hot_records`]).
//!
//! Less used blocks are evicted to make room, except for data blocks under [`CacheWarming::Read`]: where data
//! exceeds the cache, the blocks that readers chose are worth more than new ones.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::reader::{Table, TableEnvironment};
use super::slots::{FILTER_SLOT, INDEX_SLOT, data_slot};
use super::stored::TableFileId;
use crate::base::stats::Counter;
use crate::base::types::{EntryKind, SeqNo};
use crate::files::buffer::{Priority, Slots};
use crate::files::hot_records::{Carried, RecordKey};

/// The blocks of a job's tables that are inserted into the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CacheWarming {
    /// No blocks, and compactions carry no hot records over to the tables that they write.
    None,
    /// Indexes and filters.
    Meta,
    /// Indexes, filters and data blocks.
    All,
    /// As `All`, but data blocks are inserted only while the cache is not full, and by flushes only if the
    /// database is read.
    Read,
}

/// A flush inserts data blocks under [`CacheWarming::Read`] if the database was read at least once per this many
/// blocks that the memtable fills. Reading a block later costs about ten times as much as inserting it.
const BLOCKS_PER_READ: u64 = 4;

/// The reads of a database while a memtable was filled.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadsMeanwhile {
    /// The number of reads.
    pub(crate) reads: u64,
    /// The number of blocks that the memtable fills.
    pub(crate) blocks: u64,
}

impl ReadsMeanwhile {
    fn are_many(self) -> bool {
        self.reads > 0 && self.reads.saturating_mul(BLOCKS_PER_READ) >= self.blocks
    }
}

/// Inserts blocks of the tables of one job into the cache.
#[derive(Debug, Clone)]
pub(crate) struct Warmer {
    environment: Arc<TableEnvironment>,
    index: bool,
    filter: bool,
    data: Data,
    /// Other blocks may be evicted for the data blocks of the job.
    may_evict: bool,
    /// The numbers of the tables that a compaction reads, in ascending order.
    inputs: Arc<[u64]>,
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
    pub(super) fn note(&self, table: &Table, number: usize) {
        let is_cached = table.is_resident(data_slot(number));
        // Relaxed, as everywhere here: only one thread uses the counts.
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
        meanwhile: ReadsMeanwhile,
    ) -> Option<Self> {
        let data = match warming {
            CacheWarming::None => return None,
            CacheWarming::All => Data::All,
            CacheWarming::Read if meanwhile.are_many() => Data::All,
            CacheWarming::Read | CacheWarming::Meta => Data::None,
        };
        Some(Self::new(environment, warming, (true, true), data, Vec::new()))
    }

    fn new(
        environment: &Arc<TableEnvironment>,
        warming: CacheWarming,
        (index, filter): (bool, bool),
        data: Data,
        mut inputs: Vec<u64>,
    ) -> Self {
        let may_evict = warming != CacheWarming::Read;
        inputs.sort_unstable();
        let inputs = inputs.into();
        Self { environment: Arc::clone(environment), index, filter, data, may_evict, inputs }
    }

    /// Returns a warmer for the tables of a compaction that reads `tables`.
    pub(crate) fn of_compaction<'a>(
        environment: &Arc<TableEnvironment>,
        warming: CacheWarming,
        tables: impl IntoIterator<Item = &'a Arc<Table>>,
    ) -> Option<Self> {
        if warming == CacheWarming::None {
            return None;
        }
        let (mut count, mut indexes, mut filters) = (0, 0, 0);
        let mut inputs = Vec::new();
        for table in tables {
            inputs.push(table.id().number);
            count += 1;
            indexes += u64::from(table.is_resident(INDEX_SLOT));
            filters += u64::from(table.is_resident(FILTER_SLOT) || table.has_no_filter());
        }
        let data = match warming {
            CacheWarming::All | CacheWarming::Read => Data::As(Arc::default()),
            CacheWarming::None | CacheWarming::Meta => Data::None,
        };
        let meta = (indexes * 2 >= count, filters * 2 >= count);
        Some(Self::new(environment, warming, meta, data, inputs))
    }

    /// Returns the counter to which the job reports its reads of data blocks.
    pub(crate) fn heat(&self) -> Option<&Arc<Heat>> {
        match &self.data {
            Data::As(heat) => Some(heat),
            Data::None | Data::All => None,
        }
    }
}

/// The blocks of one table that are put into memory while the table is written.
#[derive(Debug)]
pub(super) struct WarmTable {
    warmer: Warmer,
    slots: Slots,
    /// The last keys of a compaction, if it carries hot records over.
    carried: Option<Carried>,
}

impl WarmTable {
    pub(super) fn new(warmer: Warmer) -> Self {
        let slots = Slots::new(&warmer.environment.buffer, data_slot(0));
        let records = &warmer.environment.hot_records;
        let carries = !warmer.inputs.is_empty() && records.are_carried();
        let carried = carries.then(|| Carried::new(&warmer.inputs));
        Self { warmer, slots, carried }
    }

    /// Labels the hot record of a key, whose newest version in the table is `version`.
    #[inline]
    pub(super) fn carry_record(
        &mut self,
        id: TableFileId,
        (key, hash): (&[u8], u64),
        version: (SeqNo, EntryKind, &[u8]),
    ) {
        if let Some(carried) = &mut self.carried {
            let at = RecordKey { table: id.number, key, hash };
            carried.add(&self.warmer.environment.hot_records, at, version);
        }
    }

    /// Puts a data block into memory if the job requests it. The block consists of `parts`, in the form that
    /// readers use.
    pub(super) fn put_data(&mut self, number: usize, parts: &[&[u8]]) {
        let is_wanted = match &self.warmer.data {
            Data::None => false,
            Data::All => true,
            Data::As(heat) => heat.is_hot(),
        };
        if is_wanted {
            self.put(data_slot(number), parts, Priority::Data);
        }
    }

    /// Puts the index or the filter into memory if the job requests it.
    pub(super) fn put_part(&mut self, slot: usize, bytes: &[u8]) {
        let is_wanted = if slot == INDEX_SLOT { self.warmer.index } else { self.warmer.filter };
        if is_wanted {
            self.put(slot, &[bytes], Priority::Meta);
        }
    }

    fn put(&mut self, slot: usize, parts: &[&[u8]], priority: Priority) {
        let environment = &*self.warmer.environment;
        let counters = &environment.counters;
        let len = parts.iter().map(|part| part.len()).sum();
        let may_evict = self.warmer.may_evict || slot < data_slot(0);
        if !may_evict && !environment.buffer.has_room(len) {
            return;
        }
        counters.add(Counter::CacheWarmed, 1);
        counters.add(Counter::CacheWarmedBytes, len as u64);
        let mut block = environment.allocate(len);
        let mut rest = &mut block[..];
        for part in parts {
            let (start, end) = rest.split_at_mut(part.len());
            start.copy_from_slice(part);
            rest = end;
        }
        if slot >= self.slots.len() {
            self.slots.grow((slot + 1).max(self.slots.len() * 2));
        }
        drop(self.slots.fill(slot, block.freeze(), priority));
    }

    /// Keeps the blocks until the table is opened, which has this number of data blocks.
    pub(super) fn finish(mut self, id: TableFileId, blocks: usize) {
        if let Some(carried) = &mut self.carried {
            carried.apply(&self.warmer.environment.hot_records, id.number);
        }
        self.slots.grow(data_slot(blocks));
        self.slots.truncate(data_slot(blocks));
        self.warmer.environment.warm.put(id, self.slots);
    }
}
