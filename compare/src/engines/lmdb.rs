//! LMDB through `heed`: a copy-on-write B+ tree in a memory-mapped file, without a log.
//!
//! Its only setting is the size of the map. With the durability `process` it does not sync: writes
//! survive the death of the process, but a power failure may destroy the whole database, which is a
//! weaker guarantee than that of an unsynced log. Each write, each read and each scan is a
//! transaction.

use std::convert::Infallible;
use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions};
use terrane_workload::{Direction, Store, StoreError};

use super::engine::{Budget, Engine, Storage};
use crate::settings::{Compression, Durability, Settings};

pub(super) const ENGINE: Engine = Engine {
    name: "lmdb",
    open: |dir, settings| Ok(Box::new(Lmdb::open(dir, settings)?)),
    version: || {
        let version = super::lock_file::version_of;
        format!("heed {}, lmdb-master-sys {}", version("heed"), version("lmdb-master-sys"))
    },
    promise: "survives the death of the process; the loss of power may corrupt the database",
    storage: Storage::Files,
    compressions: &[Compression::None],
    budget: Budget::Ignored,
    can_bypass_cache: false,
};

/// Address space, not memory; more than any comparison writes.
const MAP_BYTES: usize = 1 << 40;
/// Readers: all clients, a concurrent writer, and a reserve.
const READERS_MAX: u32 = 4200;

type Entries = Database<'static, Bytes, Bytes>;

struct Lmdb {
    env: Env,
    entries: Entries,
    durability: Durability,
}

impl Lmdb {
    fn open(dir: &Path, settings: &Settings) -> Result<Self, StoreError> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_BYTES).max_readers(READERS_MAX);
        let flags = match settings.durability {
            Durability::Process => EnvFlags::NO_SYNC,
            Durability::Sync => EnvFlags::empty(),
        };
        // SAFETY: without syncs a power failure may damage the file, but then the file is never
        // opened again, because the folder is removed after the comparison.
        unsafe { options.flags(flags) };
        // SAFETY: only this process uses the folder, and it opens the database once.
        let env = unsafe { options.open(dir) }.map_err(StoreError::during("open"))?;
        let txn = env.write_txn().map_err(StoreError::during("open"))?;
        let entries = env
            .create_databases_and_commit(txn, |opener, txn| {
                let entries = opener.create_database::<Bytes, Bytes>(txn, None)?;
                Ok::<_, heed::Error>(CommitOrAbort::<_, Infallible>::Commit(entries))
            })
            .map_err(StoreError::during("open"))?
            .unwrap_commit();
        Ok(Self { env, entries, durability: settings.durability })
    }

    /// Executes `write` in a transaction and commits it.
    fn write(
        &self,
        write: impl FnOnce(&mut heed::RwTxn<'_>) -> heed::Result<()>,
    ) -> heed::Result<()> {
        let mut txn = self.env.write_txn()?;
        write(&mut txn)?;
        txn.commit()
    }

    fn scanned(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> heed::Result<usize> {
        let txn = self.env.read_txn()?;
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        let mut entries = 0;
        let mut show = |entry: heed::Result<(&[u8], &[u8])>| -> heed::Result<()> {
            let (key, value) = entry?;
            visit(key, value);
            entries += 1;
            Ok(())
        };
        match direction {
            Direction::Forward => {
                let range = self.entries.range(&txn, &(start, Bound::Unbounded))?;
                range.take(limit).try_for_each(&mut show)?;
            }
            Direction::Backward => {
                let range = self.entries.rev_range(&txn, &(Bound::Unbounded, start))?;
                range.take(limit).try_for_each(&mut show)?;
            }
        }
        Ok(entries)
    }
}

impl Store for Lmdb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.write(|txn| self.entries.put(txn, key, value)).map_err(StoreError::during("put"))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.put(key, value)?;
        match self.durability {
            // The commit has already synced the file.
            Durability::Sync => Ok(()),
            Durability::Process => self.env.force_sync().map_err(StoreError::during("sync")),
        }
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        self.write(|txn| puts.iter().try_for_each(|(key, value)| self.entries.put(txn, key, value)))
            .map_err(StoreError::during("write a batch"))
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.write(|txn| self.entries.delete(txn, key).map(|_| ()))
            .map_err(StoreError::during("delete"))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let txn = self.env.read_txn().map_err(StoreError::during("get"))?;
        let value = self.entries.get(&txn, key).map_err(StoreError::during("get"))?;
        if let Some(value) = value {
            visit(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(
        &self,
        keys: &[Vec<u8>],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<usize, StoreError> {
        let txn = self.env.read_txn().map_err(StoreError::during("multi-get"))?;
        let mut found = 0;
        for (position, key) in keys.iter().enumerate() {
            let value = self.entries.get(&txn, key).map_err(StoreError::during("multi-get"))?;
            if let Some(value) = value {
                visit(position, value);
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
        self.scanned(start, direction, limit, visit).map_err(StoreError::during("scan"))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.env.force_sync().map_err(StoreError::during("sync"))
    }
}
