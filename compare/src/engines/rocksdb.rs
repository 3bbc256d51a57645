//! RocksDB through the `rocksdb` crate, with its defaults except for the settings of the
//! comparison.
//!
//! Reads do not copy values; they borrow them from blocks pinned in the block cache. RocksDB's
//! statistics are off because they reduce throughput; the counters come from a text that it
//! maintains anyway.

mod stats;

use std::path::Path;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, DB, DBCompressionType, DBRawIterator,
    DEFAULT_COLUMN_FAMILY_NAME, Error, FlushOptions, Options, WaitForCompactOptions, WriteBatch,
    WriteOptions,
};
use terrane_workload::{Direction, Glance, Store, StoreCounters, StoreError};

use super::engine::{Budget, Engine, SURVIVES_PROCESS, Storage};
use crate::settings::{Compression, Settings};

pub(super) const ENGINE: Engine = Engine {
    name: "rocksdb",
    open: |dir, settings| Ok(Box::new(RocksDb::open(dir, settings)?)),
    version: || {
        let version = super::lock_file::version_of;
        format!("rocksdb {}, librocksdb-sys {}", version("rocksdb"), version("librocksdb-sys"))
    },
    promise: SURVIVES_PROCESS,
    storage: Storage::Files,
    compressions: &[Compression::None, Compression::Lz4],
    budget: Budget::Kept,
    can_bypass_cache: true,
};

/// The default parameters of RocksDB's rate limiter.
const REFILL_MICROS: i64 = 100_000;
const FAIRNESS: i32 = 10;
/// RocksDB's default number of levels.
const LEVELS: u32 = 7;

struct RocksDb {
    db: DB,
    plain: WriteOptions,
    synced: WriteOptions,
}

impl RocksDb {
    fn open(dir: &Path, settings: &Settings) -> Result<Self, StoreError> {
        let mut tables = BlockBasedOptions::default();
        tables.set_block_cache(&Cache::new_lru_cache(settings.cache_bytes as usize));
        tables.set_block_size(settings.block_bytes as usize);
        tables.set_bloom_filter(f64::from(settings.filter_bits_per_key), false);
        let compression = match settings.compression {
            Compression::None => DBCompressionType::None,
            Compression::Lz4 => DBCompressionType::Lz4,
        };
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_block_based_table_factory(&tables);
        options.set_write_buffer_size(settings.memtable_bytes as usize);
        options.set_max_background_jobs(settings.background_threads.cast_signed());
        options.set_compression_type(compression);
        options.set_use_direct_reads(settings.is_direct);
        options.set_use_direct_io_for_flush_and_compaction(settings.is_direct);
        if let Some(budget) = settings.budget_bytes_per_second {
            let per_second = i64::try_from(budget).unwrap_or(i64::MAX);
            options.set_ratelimiter(per_second, REFILL_MICROS, FAIRNESS);
        }
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        // Named explicitly, because only column families named at opening have a handle, and the
        // batched form of `multi_get` needs a handle.
        let family = ColumnFamilyDescriptor::new(DEFAULT_COLUMN_FAMILY_NAME, options.clone());
        let db = DB::open_cf_descriptors(&options, dir, [family]);
        let db = db.map_err(StoreError::during("open"))?;
        Ok(Self { db, plain: WriteOptions::default(), synced })
    }

    fn scanned(
        mut cursor: DBRawIterator<'_>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, Error> {
        let mut entries = 0;
        while entries < limit {
            let Some((key, value)) = cursor.item() else { break };
            visit(key, value);
            entries += 1;
            // A step past the last requested entry would be unnecessary work.
            if entries < limit {
                match direction {
                    Direction::Forward => cursor.next(),
                    Direction::Backward => cursor.prev(),
                }
            }
        }
        cursor.status().map(|()| entries)
    }
}

impl Store for RocksDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.db.put_opt(key, value, &self.plain).map_err(StoreError::during("put"))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.db.put_opt(key, value, &self.synced).map_err(StoreError::during("put"))
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        let mut batch = WriteBatch::default();
        for (key, value) in puts {
            batch.put(key, value);
        }
        self.db.write_opt(batch, &self.plain).map_err(StoreError::during("write a batch"))
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.db.delete_opt(key, &self.plain).map_err(StoreError::during("delete"))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let value = self.db.get_pinned(key).map_err(StoreError::during("get"))?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(
        &self,
        keys: &[Vec<u8>],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<usize, StoreError> {
        let default = self.db.cf_handle(DEFAULT_COLUMN_FAMILY_NAME);
        let default = default.ok_or_else(|| StoreError::new("multi-get", "no default family"))?;
        let mut found = 0;
        let values = self.db.batched_multi_get_cf(&default, keys, false);
        for (position, value) in values.into_iter().enumerate() {
            if let Some(value) = value.map_err(StoreError::during("multi-get"))? {
                visit(position, &value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let mut cursor = self.db.raw_iterator();
        match (direction, start) {
            (Direction::Forward, None) => cursor.seek_to_first(),
            (Direction::Forward, Some(start)) => cursor.seek(start),
            (Direction::Backward, None) => cursor.seek_to_last(),
            (Direction::Backward, Some(start)) => cursor.seek_for_prev(start),
        }
        Self::scanned(cursor, direction, limit, visit).map_err(StoreError::during("scan"))
    }

    fn settle(&self) -> Result<(), StoreError> {
        let mut flush = FlushOptions::default();
        flush.set_wait(true);
        self.db.flush_opt(&flush).map_err(StoreError::during("flush"))?;
        let wait = WaitForCompactOptions::default();
        self.db.wait_for_compact(&wait).map_err(StoreError::during("wait for compactions"))
    }

    fn counters(&self) -> StoreCounters {
        let text = self.db.property_value("rocksdb.stats").ok().flatten();
        text.map_or_else(StoreCounters::default, |text| stats::counters(&text))
    }

    /// Returns the number of sorted runs: the tables of level 0, and every deeper level that has
    /// tables.
    fn glance(&self) -> Glance {
        let tables = |level: u32| {
            let name = format!("rocksdb.num-files-at-level{level}");
            self.db.property_int_value(&name).ok().flatten().unwrap_or(0)
        };
        let deeper = (1..LEVELS).filter(|level| tables(*level) > 0).count();
        Glance { components: Some(tables(0) + deeper as u64), ..Glance::default() }
    }
}
