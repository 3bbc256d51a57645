//! An in-memory ordered map with the interface of an engine.
//!
//! This is the calibration engine. It has no log, background work or files, so its results vary
//! only with the noise of the machine, and all of its cost beyond that of the map is the harness.
//! No engine can be expected to reach a tail latency on a machine where this store does not. It is
//! a `BTreeMap` under one lock: simple rather than fast.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::error::StoreError;
use crate::store::{Direction, Store, StoreCounters};

type Map = BTreeMap<Box<[u8]>, Box<[u8]>>;

/// A [`Store`] in a `BTreeMap`, without durability.
#[derive(Debug, Default)]
pub struct MemStore {
    map: RwLock<Map>,
    user_bytes_written: AtomicU64,
}

impl MemStore {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Returns true if the store has no keys.
    pub fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    // A visitor that panics cannot have changed the map, so a poisoned lock is still usable.
    fn read(&self) -> RwLockReadGuard<'_, Map> {
        self.map.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Map> {
        self.map.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn count_written(&self, bytes: usize) {
        // Relaxed: the sum orders no other memory access.
        self.user_bytes_written.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Store for MemStore {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.count_written(key.len() + value.len());
        self.write().insert(key.into(), value.into());
        Ok(())
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.put(key, value)
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        let mut map = self.write();
        let mut bytes = 0;
        for (key, value) in puts {
            bytes += key.len() + value.len();
            map.insert(key.as_slice().into(), value.as_slice().into());
        }
        self.count_written(bytes);
        Ok(())
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.count_written(key.len());
        self.write().remove(key);
        Ok(())
    }

    fn delete_range(&self, start: &[u8], end: &[u8]) -> Result<(), StoreError> {
        self.count_written(start.len() + end.len());
        let mut map = self.write();
        let range = map.range::<[u8], _>((Bound::Included(start), Bound::Excluded(end)));
        let keys: Vec<Box<[u8]>> = range.map(|(key, _)| key.clone()).collect();
        for key in &keys {
            map.remove(key);
        }
        Ok(())
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        let map = self.read();
        let value = map.get(key);
        if let Some(value) = value {
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
        let map = self.read();
        let bound = start.map_or(Bound::Unbounded, Bound::Included);
        let mut entries = 0;
        let mut show = |key: &[u8], value: &[u8]| {
            visit(key, value);
            entries += 1;
        };
        match direction {
            Direction::Forward => {
                let range = map.range::<[u8], _>((bound, Bound::Unbounded));
                range.take(limit).for_each(|(key, value)| show(key, value));
            }
            Direction::Backward => {
                let range = map.range::<[u8], _>((Bound::Unbounded, bound));
                range.rev().take(limit).for_each(|(key, value)| show(key, value));
            }
        }
        Ok(entries)
    }

    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn counters(&self) -> StoreCounters {
        let map = self.read();
        let live = map.iter().map(|(key, value)| (key.len() + value.len()) as u64).sum();
        StoreCounters {
            user_bytes_written: Some(self.user_bytes_written.load(Ordering::Relaxed)),
            storage_bytes_written: Some(0),
            live_bytes: Some(live),
            ..StoreCounters::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(keys: &[&str]) -> MemStore {
        let store = MemStore::new();
        for key in keys {
            store.put(key.as_bytes(), format!("value of {key}").as_bytes()).unwrap();
        }
        store
    }

    fn scanned(
        store: &MemStore,
        start: Option<&str>,
        direction: Direction,
        limit: usize,
    ) -> Vec<String> {
        let mut keys = Vec::new();
        let count = store
            .scan(start.map(str::as_bytes), direction, limit, &mut |key, value| {
                let key = String::from_utf8(key.to_vec()).unwrap();
                assert_eq!(value, format!("value of {key}").as_bytes());
                keys.push(key);
            })
            .unwrap();
        assert_eq!(count, keys.len());
        keys
    }

    #[test]
    fn scans_begin_at_their_start_in_both_directions() {
        let store = store(&["b", "d", "f"]);
        assert_eq!(scanned(&store, None, Direction::Forward, 9), ["b", "d", "f"]);
        assert_eq!(scanned(&store, None, Direction::Backward, 2), ["f", "d"]);
        assert_eq!(scanned(&store, Some("c"), Direction::Forward, 1), ["d"]);
        assert_eq!(scanned(&store, Some("d"), Direction::Forward, 9), ["d", "f"]);
        assert_eq!(scanned(&store, Some("e"), Direction::Backward, 9), ["d", "b"]);
        assert_eq!(scanned(&store, Some("a"), Direction::Backward, 9), [""; 0]);
    }

    #[test]
    fn deleted_keys_are_gone_and_overwritten_ones_new() {
        let store = store(&["a", "b"]);
        store.delete(b"a").unwrap();
        store.write_batch(&[(b"b".to_vec(), b"new".to_vec())]).unwrap();
        assert!(!store.get(b"a", &mut |_| panic!("a deleted key was shown")).unwrap());
        let mut seen = Vec::new();
        assert!(store.get(b"b", &mut |value| seen = value.to_vec()).unwrap());
        assert_eq!(seen, b"new");
        assert_eq!(store.len(), 1);
        assert_eq!(store.counters().live_bytes, Some(4));
    }

    #[test]
    fn multi_get_by_default_names_the_position_of_each_key() {
        let store = store(&["a", "c"]);
        let keys = [b"c".to_vec(), b"b".to_vec(), b"a".to_vec()];
        let mut seen = Vec::new();
        let found = store
            .multi_get(&keys, &mut |position, value| seen.push((position, value.to_vec())))
            .unwrap();
        assert_eq!(found, 2);
        assert_eq!(seen, [(0, b"value of c".to_vec()), (2, b"value of a".to_vec())]);
    }
}
