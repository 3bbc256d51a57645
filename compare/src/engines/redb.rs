//! redb: a copy-on-write B+ tree in one file, without a log.
//!
//! With the durability `process` its commits are not durable at all until the next durable one:
//! a process crash loses all commits since the last durable one, where the other engines lose none.
//! Every [`COMMITS_PER_DURABLE`]-th commit is durable; otherwise the file would grow without bound,
//! because only durable commits free pages. Each write, read and scan is a transaction.

use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use redb::{
    Builder, Database, Durability as Commit, ReadOnlyTable, ReadableDatabase, Table,
    TableDefinition,
};
use terrane_workload::{Direction, Store, StoreError};

use super::engine::{Budget, Engine, Storage};
use crate::settings::{Compression, Durability, Settings};

pub(super) const ENGINE: Engine = Engine {
    name: "redb",
    open: |dir, settings| Ok(Box::new(Redb::open(dir, settings)?)),
    version: || format!("redb {}", super::lock_file::version_of("redb")),
    promise: "the death of the process may lose the last 50,000 writes",
    storage: Storage::Files,
    compressions: &[Compression::None],
    budget: Budget::Ignored,
    can_bypass_cache: false,
};

const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");
const COMMITS_PER_DURABLE: u64 = 50_000;

struct Redb {
    db: Database,
    durability: Durability,
    commits: AtomicU64,
}

type Entries<'txn> = Table<'txn, &'static [u8], &'static [u8]>;
type EntriesRead = ReadOnlyTable<&'static [u8], &'static [u8]>;

impl Redb {
    fn open(dir: &Path, settings: &Settings) -> Result<Self, StoreError> {
        let mut builder = Builder::new();
        builder.set_cache_size(settings.cache_bytes as usize);
        let db = builder.create(dir.join("redb")).map_err(StoreError::during("open"))?;
        let redb = Self { db, durability: settings.durability, commits: AtomicU64::new(0) };
        // Creates the table, so that readers find it.
        redb.write(Commit::Immediate, |_| Ok(())).map_err(StoreError::during("open"))?;
        Ok(redb)
    }

    /// Executes `write` in a transaction and commits it.
    fn write(
        &self,
        commit: Commit,
        write: impl FnOnce(&mut Entries<'_>) -> Result<(), redb::StorageError>,
    ) -> Result<(), redb::Error> {
        let mut txn = self.db.begin_write()?;
        txn.set_durability(commit)?;
        write(&mut txn.open_table(ENTRIES)?)?;
        Ok(txn.commit()?)
    }

    /// Returns the durability of the next plain write.
    fn next_commit(&self) -> Commit {
        // Relaxed: redb executes one writer at a time, and it does not matter which writer syncs.
        let commits = self.commits.fetch_add(1, Ordering::Relaxed) + 1;
        let is_durable =
            self.durability == Durability::Sync || commits.is_multiple_of(COMMITS_PER_DURABLE);
        if is_durable { Commit::Immediate } else { Commit::None }
    }

    fn entries(&self) -> Result<EntriesRead, redb::Error> {
        Ok(self.db.begin_read()?.open_table(ENTRIES)?)
    }

    fn scanned(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, redb::Error> {
        let entries = self.entries()?;
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        let mut range = match direction {
            Direction::Forward => entries.range::<&[u8]>((start, Bound::Unbounded))?,
            Direction::Backward => entries.range::<&[u8]>((Bound::Unbounded, start))?,
        };
        let mut shown = 0;
        while shown < limit {
            let next = match direction {
                Direction::Forward => range.next(),
                Direction::Backward => range.next_back(),
            };
            let Some(entry) = next else { break };
            let (key, value) = entry?;
            visit(key.value(), value.value());
            shown += 1;
        }
        Ok(shown)
    }
}

impl Store for Redb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.write(self.next_commit(), |entries| entries.insert(key, value).map(|_| ()))
            .map_err(StoreError::during("put"))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.write(Commit::Immediate, |entries| entries.insert(key, value).map(|_| ()))
            .map_err(StoreError::during("put"))
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        self.write(self.next_commit(), |entries| {
            for (key, value) in puts {
                entries.insert(key.as_slice(), value.as_slice())?;
            }
            Ok(())
        })
        .map_err(StoreError::during("write a batch"))
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.write(self.next_commit(), |entries| entries.remove(key).map(|_| ()))
            .map_err(StoreError::during("delete"))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let entries = self.entries().map_err(StoreError::during("get"))?;
        let value = entries.get(key).map_err(StoreError::during("get"))?;
        if let Some(value) = &value {
            visit(value.value());
        }
        Ok(value.is_some())
    }

    fn multi_get(
        &self,
        keys: &[Vec<u8>],
        visit: &mut dyn FnMut(usize, &[u8]),
    ) -> Result<usize, StoreError> {
        let entries = self.entries().map_err(StoreError::during("multi-get"))?;
        let mut found = 0;
        for (position, key) in keys.iter().enumerate() {
            let value = entries.get(key.as_slice()).map_err(StoreError::during("multi-get"))?;
            if let Some(value) = value {
                visit(position, value.value());
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
        self.write(Commit::Immediate, |_| Ok(())).map_err(StoreError::during("sync"))
    }
}
