//! fjall with one keyspace; values are not separated from keys.
//!
//! By default, fjall's journal compresses values of 4 KiB and more; the comparison disables this. A
//! synced write is a write followed by an `fdatasync` of the journal.

use std::path::Path;
use std::time::Duration;

use fjall::config::{
    BlockSizePolicy, BloomConstructionPolicy, CompressionPolicy, FilterPolicy, FilterPolicyEntry,
};
use fjall::{CompressionType, Database, Iter, Keyspace, KeyspaceCreateOptions, PersistMode};
use terrane_workload::{Direction, Store, StoreCounters, StoreError};

use super::engine::{Budget, Engine, SURVIVES_PROCESS, Storage};
use super::idle::wait_until_idle;
use crate::settings::{Compression, Settings};

pub(super) const ENGINE: Engine = Engine {
    name: "fjall",
    open: |dir, settings| Ok(Box::new(Fjall::open(dir, settings)?)),
    version: || {
        let version = super::lock_file::version_of;
        format!("fjall {}, lsm-tree {}", version("fjall"), version("lsm-tree"))
    },
    promise: SURVIVES_PROCESS,
    storage: Storage::Files,
    compressions: &[Compression::None, Compression::Lz4],
    budget: Budget::Ignored,
    can_bypass_cache: false,
};

const POLL_INTERVAL: Duration = Duration::from_millis(10);

struct Fjall {
    db: Database,
    keyspace: Keyspace,
}

impl Fjall {
    fn open(dir: &Path, settings: &Settings) -> Result<Self, StoreError> {
        let compression = match settings.compression {
            Compression::None => CompressionType::None,
            Compression::Lz4 => CompressionType::Lz4,
        };
        let db = Database::builder(dir)
            .cache_size(settings.cache_bytes)
            .worker_threads(settings.background_threads as usize)
            .journal_compression(CompressionType::None)
            .open()
            .map_err(StoreError::during("open"))?;
        let bits = settings.filter_bits_per_key as f32;
        let filter = FilterPolicyEntry::Bloom(BloomConstructionPolicy::BitsPerKey(bits));
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(settings.memtable_bytes)
                .filter_policy(FilterPolicy::all(filter))
                .data_block_size_policy(BlockSizePolicy::all(settings.block_bytes))
                .data_block_compression_policy(CompressionPolicy::all(compression))
                .index_block_compression_policy(CompressionPolicy::all(CompressionType::None))
        };
        let keyspace = db.keyspace("default", options).map_err(StoreError::during("open"))?;
        Ok(Self { db, keyspace })
    }

    fn range(&self, start: Option<&[u8]>, direction: Direction) -> Iter {
        match (start, direction) {
            (None, _) => self.keyspace.iter(),
            (Some(start), Direction::Forward) => self.keyspace.range(start..),
            (Some(start), Direction::Backward) => self.keyspace.range(..=start),
        }
    }
}

impl Store for Fjall {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.keyspace.insert(key, value).map_err(StoreError::during("put"))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.put(key, value)?;
        self.db.persist(PersistMode::SyncData).map_err(StoreError::during("sync"))
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        let mut batch = self.db.batch();
        for (key, value) in puts {
            batch.insert(&self.keyspace, key.as_slice(), value.as_slice());
        }
        batch.commit().map_err(StoreError::during("write a batch"))
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.keyspace.remove(key).map_err(StoreError::during("delete"))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let value = self.keyspace.get(key).map_err(StoreError::during("get"))?;
        if let Some(value) = &value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let mut range = self.range(start, direction);
        let mut entries = 0;
        while entries < limit {
            let next = match direction {
                Direction::Forward => range.next(),
                Direction::Backward => range.next_back(),
            };
            let Some(entry) = next else { break };
            let (key, value) = entry.into_inner().map_err(StoreError::during("scan"))?;
            visit(&key, &value);
            entries += 1;
        }
        Ok(entries)
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.keyspace.rotate_memtable_and_wait().map_err(StoreError::during("flush"))?;
        while self.db.outstanding_flushes() > 0 || self.db.active_compactions() > 0 {
            std::thread::sleep(POLL_INTERVAL);
        }
        // fjall does not count compactions that have not started yet as active.
        wait_until_idle();
        Ok(())
    }

    fn counters(&self) -> StoreCounters {
        StoreCounters {
            compactions: Some(self.db.compactions_completed() as u64),
            disk_bytes: self.db.disk_space().ok(),
            ..StoreCounters::default()
        }
    }
}
