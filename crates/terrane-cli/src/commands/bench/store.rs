//! A database as the workloads see it.

use std::ops::Bound;

use terrane::{Db, Durability, WriteBatch, WriteOptions};
use terrane_workload::{Direction, Store, StoreError};

/// A database under test. Its counters are read from [`Db::stats`] by the runner, which knows
/// more than a [`Store`] can tell.
pub(super) struct TerraneStore {
    pub(super) db: Db,
}

impl Store for TerraneStore {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.db.put(key, value).map_err(StoreError::during("put"))
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let options = WriteOptions::new().durability(Durability::Sync);
        self.db.put_with(key, value, options).map_err(StoreError::during("put"))
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        let mut batch = WriteBatch::new();
        for (key, value) in puts {
            batch.put(key, value);
        }
        self.db.write(&batch).map_err(StoreError::during("write a batch"))
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.db.delete(key).map_err(StoreError::during("delete"))
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let value = self.db.get(key).map_err(StoreError::during("get"))?;
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
        let values = self.db.multi_get(keys).map_err(StoreError::during("get several"))?;
        let mut found = 0;
        for (position, value) in values.iter().enumerate() {
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
        let failed = StoreError::during("scan");
        let scanned = match direction {
            Direction::Forward => self.scan_forward(start, limit, visit),
            Direction::Backward => self.scan_backward(start, limit, visit),
        };
        scanned.map_err(failed)
    }

    fn settle(&self) -> Result<(), StoreError> {
        let settled = self.db.flush().and_then(|()| self.db.wait_for_compactions());
        settled.map_err(StoreError::during("settle"))
    }
}

impl TerraneStore {
    fn scan_forward(
        &self,
        start: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> terrane::Result<usize> {
        let start = start.map_or(Bound::Unbounded, Bound::Included);
        let mut entries = self.db.range::<&[u8]>((start, Bound::Unbounded))?;
        let mut seen = 0;
        while seen < limit && entries.advance()? {
            visit(entries.key(), entries.value());
            seen += 1;
        }
        Ok(seen)
    }

    fn scan_backward(
        &self,
        start: Option<&[u8]>,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> terrane::Result<usize> {
        let end = start.map_or(Bound::Unbounded, Bound::Included);
        let entries = self.db.range::<&[u8]>((Bound::Unbounded, end))?;
        let mut seen = 0;
        for entry in entries.rev().take(limit) {
            let (key, value) = entry?;
            visit(&key, &value);
            seen += 1;
        }
        Ok(seen)
    }
}
