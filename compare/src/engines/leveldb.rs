//! LevelDB through its C interface, from the library that the system has installed.
//!
//! LevelDB has one background thread for any settings, and no compression but Snappy. It copies
//! every value that is read, because its C interface offers no other way.

mod database;
mod ffi;

use std::path::Path;

use terrane_workload::{Direction, Store, StoreError};

use super::engine::{Budget, Engine, SURVIVES_PROCESS, Storage};
use super::idle::wait_until_idle;
use crate::settings::{Compression, Settings};
use database::{Batch, Cursor, Database, WriteMode};

pub(super) const ENGINE: Engine = Engine {
    name: "leveldb",
    open: |dir, settings| Ok(Box::new(LevelDb { db: Database::open(dir, settings)? })),
    version: || format!("LevelDB {}", database::version()),
    promise: SURVIVES_PROCESS,
    storage: Storage::Files,
    compressions: &[Compression::None],
    budget: Budget::Ignored,
    can_bypass_cache: false,
};

/// A database with tables of another size than LevelDB's default.
pub(crate) struct SmallTables(LevelDb);

impl SmallTables {
    /// Opens a new database.
    pub(crate) fn open(
        dir: &Path,
        settings: &Settings,
        table_bytes: usize,
    ) -> Result<Self, StoreError> {
        Ok(Self(LevelDb { db: Database::open_with(dir, settings, Some(table_bytes))? }))
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &self.0
    }

    /// Returns the number and the size of all tables by level.
    pub(crate) fn tables(&self) -> Vec<Vec<(u64, u64)>> {
        let text = self.0.db.tables();
        let mut levels: Vec<Vec<(u64, u64)>> = Vec::new();
        for line in text.lines() {
            if line.starts_with("--- level") {
                levels.push(Vec::new());
            } else if let Some((level, table)) = levels.last_mut().zip(listed(line)) {
                level.push(table);
            }
        }
        levels
    }
}

/// The number and the size in a line such as ` 12:1058449['a' @ 7 : 1 .. 'z' @ 9 : 1]`.
fn listed(line: &str) -> Option<(u64, u64)> {
    let (number, rest) = line.split_once(':')?;
    let bytes = rest.split('[').next()?;
    Some((number.trim().parse().ok()?, bytes.parse().ok()?))
}

struct LevelDb {
    db: Database,
}

impl Store for LevelDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.db.put(key, value, WriteMode::Plain).map_err(StoreError::during("put"))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.db.put(key, value, WriteMode::Synced).map_err(StoreError::during("put"))
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        let mut batch = Batch::new()?;
        for (key, value) in puts {
            batch.put(key, value);
        }
        self.db.write(&batch).map_err(StoreError::during("write a batch"))
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.db.delete(key).map_err(StoreError::during("delete"))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        self.db.get(key, visit).map_err(StoreError::during("get"))
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        let mut cursor = self.db.cursor();
        match (direction, start) {
            (Direction::Forward, None) => cursor.seek_to_first(),
            (Direction::Forward, Some(start)) => cursor.seek(start),
            (Direction::Backward, None) => cursor.seek_to_last(),
            (Direction::Backward, Some(start)) => seek_back(&mut cursor, start),
        }
        let mut entries = 0;
        while entries < limit {
            let Some((key, value)) = cursor.entry() else { break };
            visit(key, value);
            entries += 1;
            if entries < limit {
                match direction {
                    Direction::Forward => cursor.next(),
                    Direction::Backward => cursor.previous(),
                }
            }
        }
        cursor.status().map_err(StoreError::during("scan"))?;
        Ok(entries)
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.db.flush();
        wait_until_idle();
        Ok(())
    }
}

/// Moves to the last key <= `start`.
fn seek_back(cursor: &mut Cursor<'_>, start: &[u8]) {
    cursor.seek(start);
    match cursor.entry() {
        None => cursor.seek_to_last(),
        Some((key, _)) if key > start => cursor.previous(),
        Some(_) => {}
    }
}
