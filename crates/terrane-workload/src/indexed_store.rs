//! A Terrane database with secondary indexes, each in its own keyspace.
//!
//! | module | one line |
//! |---|---|
//! | `maintenance` | the treatment of stale entries, as a value with a text form |
//! | `entry` | secondary keys of a record, and index entries |
//!
//! Records are in the default keyspace. All keyspaces share the budget and the scheduler, and a write
//! is one batch over all of them, so a stall of any tree stalls writers, as in AsterixDB. There, the
//! indexes of a dataset also share memory and are flushed together; here, the memtable of an index is
//! smaller than that of the records in proportion to its entries.

mod entry;
mod maintenance;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Bound;
use std::sync::{Mutex, MutexGuard, PoisonError};

use terrane::{Db, Design, Keyspace, KeyspaceOptions, Snapshot, WriteBatch};

use crate::error::StoreError;
use crate::store::{Direction, Glance, Store, StoreCounters};
use crate::terrane_store::TerraneStore;
use entry::{entry_key, primary_of, secondary_of};
pub use maintenance::{Indexes, Maintenance};

/// The number of locks; a hash of the key chooses the lock. Eager maintenance reads the old record
/// before it writes, and must exclude other writers of that record in between.
const STRIPES: usize = 64;
/// The minimum memtable size of an index.
const BUFFER_BYTES_MIN: u64 = 4 << 10;

/// A database with secondary indexes.
#[derive(Debug)]
pub struct IndexedStore {
    records: TerraneStore,
    indexes: Vec<Keyspace>,
    maintenance: Maintenance,
    stripes: Vec<Mutex<()>>,
}

impl IndexedStore {
    /// Opens the indexes of a database, and creates each missing index empty. A record has
    /// `record_bytes`, of which `key_bytes` are the key.
    ///
    /// # Errors
    /// The engine failed.
    pub fn new(
        db: Db,
        indexes: Indexes,
        design: &Design,
        (record_bytes, key_bytes): (usize, usize),
    ) -> Result<Self, StoreError> {
        let design = index_design(design, record_bytes, key_bytes);
        let keyspace = |number: u32| {
            let options = KeyspaceOptions::new().design(design.clone());
            db.keyspace(&format!("index-{number}"), options)
        };
        let spaces = (1..=indexes.count).map(keyspace).collect::<terrane::Result<_>>();
        Ok(Self {
            indexes: spaces.map_err(StoreError::during("create an index"))?,
            records: TerraneStore { db },
            maintenance: indexes.maintenance,
            stripes: (0..STRIPES).map(|_| Mutex::new(())).collect(),
        })
    }

    /// Returns the database.
    pub fn db(&self) -> &Db {
        &self.records.db
    }

    /// Changes the design of records and indexes.
    ///
    /// # Errors
    /// The engine failed.
    pub fn set_design(
        &self,
        design: &Design,
        (record_bytes, key_bytes): (usize, usize),
    ) -> Result<(), StoreError> {
        let failed = || StoreError::during("change the design");
        self.db().set_design(design.clone()).map_err(failed())?;
        for index in &self.indexes {
            let design = index_design(design, record_bytes, key_bytes);
            index.set_design(design).map_err(failed())?;
        }
        Ok(())
    }

    /// Locks the stripe of a key. Only eager maintenance reads before it writes.
    fn lock(&self, key: &[u8]) -> Option<MutexGuard<'_, ()>> {
        let stripe = self.stripes.get(secondary_of(key, 0) as usize % STRIPES)?;
        let is_eager = self.maintenance == Maintenance::Eager;
        is_eager.then(|| stripe.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Locks every stripe, in ascending order, so that two callers cannot deadlock.
    fn lock_all(&self) -> Vec<MutexGuard<'_, ()>> {
        let is_eager = self.maintenance == Maintenance::Eager;
        let stripes = self.stripes.iter().filter(|_| is_eager);
        stripes.map(|stripe| stripe.lock().unwrap_or_else(PoisonError::into_inner)).collect()
    }

    /// Adds the operations to `batch` that replace the record `old` of `key` with `new`.
    fn add(&self, batch: &mut WriteBatch, key: &[u8], new: Option<&[u8]>, old: Option<&[u8]>) {
        for (number, index) in (1..).zip(&self.indexes) {
            let of = |value: &[u8]| secondary_of(value, number);
            let (new, old) = (new.map(of), old.map(of));
            if new == old {
                continue;
            }
            if let Some(old) = old {
                batch.delete_in(index, entry_key(old, key));
            }
            if let Some(new) = new {
                batch.put_in(index, entry_key(new, key), b"");
            }
        }
        match new {
            Some(new) => batch.put(key, new),
            None => batch.delete(key),
        };
    }

    fn old(&self, key: &[u8]) -> terrane::Result<Option<Vec<u8>>> {
        match self.maintenance {
            Maintenance::Eager => Ok(self.db().get(key)?.map(|value| value.to_vec())),
            Maintenance::Lazy => Ok(None),
        }
    }

    fn write_one(&self, key: &[u8], new: Option<&[u8]>) -> terrane::Result<()> {
        let _alone = self.lock(key);
        let old = self.old(key)?;
        let mut batch = WriteBatch::new();
        self.add(&mut batch, key, new, old.as_deref());
        self.db().write(&batch)
    }

    fn write_several(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> terrane::Result<()> {
        let _alone = self.lock_all();
        let mut batch = WriteBatch::new();
        let mut before: HashMap<&[u8], &[u8]> = HashMap::new();
        for (key, value) in puts {
            match before.insert(key, value) {
                Some(old) if self.maintenance == Maintenance::Eager => {
                    self.add(&mut batch, key, Some(value), Some(old));
                }
                _ => self.add(&mut batch, key, Some(value), self.old(key)?.as_deref()),
            }
        }
        self.db().write(&batch)
    }

    /// Reads records in index order, starting at a secondary key, in one snapshot. An entry of a
    /// lazy index may be stale, so each record is checked.
    fn look_up(
        &self,
        from: u64,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> terrane::Result<usize> {
        let Some(index) = self.indexes.first() else { return Ok(0) };
        let moment: Snapshot = self.db().snapshot();
        let start = from.to_be_bytes();
        let mut entries =
            moment.range_in(index, (Bound::Included(&start[..]), Bound::Unbounded))?;
        let mut seen = 0;
        while seen < limit && entries.advance()? {
            let Some((secondary, key)) = primary_of(entries.key()) else { continue };
            if let Some(value) = moment.get(key)?
                && secondary_of(&value, 1) == secondary
            {
                visit(key, &value);
                seen += 1;
            }
        }
        Ok(seen)
    }
}

/// Returns the design of an index, given the design of the records. Its memtable size makes the
/// index and the records flush equally often.
fn index_design(design: &Design, record_bytes: usize, key_bytes: usize) -> Design {
    let mut design = design.clone();
    let entry_bytes = entry::SECONDARY_BYTES + key_bytes;
    let share = entry_bytes as f64 / record_bytes.max(entry_bytes) as f64;
    design.buffer_bytes = ((design.buffer_bytes as f64 * share) as u64).max(BUFFER_BYTES_MIN);
    design
}

impl Store for IndexedStore {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.write_one(key, Some(value)).map_err(StoreError::during("put"))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.put(key, value)?;
        self.db().sync().map_err(StoreError::during("put"))
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        self.write_several(puts).map_err(StoreError::during("write a batch"))
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.write_one(key, None).map_err(StoreError::during("delete"))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        self.records.get(key, visit)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        self.records.scan(start, direction, limit, visit)
    }

    fn scan_index(
        &self,
        from: u64,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        self.look_up(from, limit, visit).map_err(StoreError::during("scan an index"))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.records.settle()
    }

    fn counters(&self) -> StoreCounters {
        self.records.counters()
    }

    fn glance(&self) -> Glance {
        let mut glance = self.records.glance();
        let runs = self.indexes.iter().map(|index| index.tree().shape.run_count() as u64);
        glance.components = glance.components.map(|records| records + runs.sum::<u64>());
        glance
    }
}
