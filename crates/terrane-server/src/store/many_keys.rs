//! Reads and writes of several commands at once, outside of transactions.

use terrane::{Result, Value, WriteBatch};

use super::changes::Changes;
use super::hash_layout::{Header, header_key};
use super::hashes::Fault;
use super::{Store, ValueWithExpiry};

/// A string that a group of commands sets.
#[derive(Debug)]
pub(crate) struct Put<'p> {
    pub(crate) key: &'p [u8],
    pub(crate) value: &'p [u8],
    pub(crate) expires_at: Option<u64>,
    /// The hash that it replaces.
    pub(crate) hash: Option<Header>,
}

impl Store<'_> {
    /// Returns the string of each key, as [`Self::get`] does, from one snapshot unless keys change their type
    /// meanwhile.
    pub(crate) fn get_each(&self, db: usize, keys: &[&[u8]]) -> Vec<Result<Option<Value>, Fault>> {
        let one_by_one = || keys.iter().map(|key| self.get(db, key)).collect();
        // One lookup is cheaper alone.
        let (Some(keyspace), 2..) = (self.databases.existing(db), keys.len()) else {
            return one_by_one();
        };
        let ended = self.databases.type_changes.ended();
        // The error may concern a single key; one by one, the others get answers.
        let Ok(found) = keyspace.multi_get(keys) else { return one_by_one() };
        let has_hashes = self.databases.hashes(db).is_some();
        let is_absence_final = !has_hashes && self.databases.type_changes.are_over(ended);
        let answers = keys.iter().zip(found).map(|(key, found)| match found {
            None if !is_absence_final => self.get(db, key),
            found => Ok(found),
        });
        answers.collect()
    }

    /// Returns the string of each key and its expiry time, whatever hash the key has.
    pub(crate) fn strings_with_expiry(
        &self,
        db: usize,
        keys: &[&[u8]],
    ) -> Result<Vec<Option<ValueWithExpiry>>> {
        match self.databases.existing(db) {
            Some(keyspace) if !keys.is_empty() => keyspace.multi_get_with_expiry(keys),
            _ => Ok(vec![None; keys.len()]),
        }
    }

    /// Returns the header of the hash of each key; an empty list if the database has no hashes.
    pub(crate) fn headers(&self, db: usize, keys: &[&[u8]]) -> Result<Vec<Option<Header>>> {
        let Some(hashes) = self.databases.hashes(db) else { return Ok(Vec::new()) };
        let stored = keys.iter().map(|key| header_key(key));
        let found = hashes.keyspace.multi_get_with_expiry(stored)?;
        let decode = |(value, expires_at): ValueWithExpiry| Header::decode(&value, expires_at);
        Ok(found.into_iter().map(|found| found.and_then(decode)).collect())
    }

    /// Sets strings, in order, in one write. The caller holds the locks of the keys. `batch` is reused
    /// memory.
    pub(crate) fn put_each<'p>(
        &mut self,
        db: usize,
        batch: &mut WriteBatch,
        puts: impl Iterator<Item = Put<'p>>,
    ) -> Result<()> {
        let databases = self.databases;
        let (keyspace, hashes) = (databases.for_write(db)?, databases.hashes(db));
        let mut type_change = None;
        batch.clear();
        for Put { key, value, expires_at, hash } in puts {
            self.locks.touch(db, key);
            let mut changes = Changes::Batch(batch);
            if let (Some(header), Some(hashes)) = (hash, hashes) {
                type_change.get_or_insert_with(|| databases.type_changes.begin());
                changes.delete_hash(hashes, key, &header)?;
            }
            changes.put(keyspace, key, value, expires_at)?;
        }
        if batch.is_empty() {
            return Ok(());
        }
        self.unsynced.note_write();
        databases.db().write_with(batch, self.options())
    }
}
