//! What commands read and write: the keyspaces of the databases, directly or in a transaction.
//!
//! | module | one line |
//! |---|---|
//! | `databases` | the keyspaces of `SELECT` |
//! | `locks` | locks of keys, and watched keys |
//! | `cursors` | the positions of `SCAN` |
//! | `durable` | which writes a sync has to cover |

mod cursors;
mod databases;
mod durable;
mod locks;

use std::ops::Bound;

use terrane::{Key, Result, Transaction, TransactionOptions, Value, WriteBatch, WriteOptions};

pub(crate) use cursors::Cursors;
pub(crate) use databases::Databases;
pub(crate) use durable::{Durable, Unsynced};
pub(crate) use locks::{Held, KeyLocks};

/// Keys of a database, in order.
pub(crate) type Keys<'a> = Box<dyn Iterator<Item = Result<Key>> + 'a>;

/// A value, and when it ends in microseconds since the Unix epoch.
pub(crate) type ValueWithEnd = (Value, Option<u64>);

/// Reads and writes of one command, or of the commands of one transaction. Writers hold the locks of
/// the keys that they change.
#[derive(Debug)]
pub(crate) struct Store<'a> {
    databases: &'a Databases,
    locks: &'a KeyLocks,
    pub(crate) held: Held<'a>,
    transaction: Option<Transaction>,
    unsynced: Unsynced<'a>,
}

impl<'a> Store<'a> {
    pub(crate) fn new(
        databases: &'a Databases,
        locks: &'a KeyLocks,
        unsynced: Unsynced<'a>,
    ) -> Self {
        Self { databases, locks, held: Held::default(), transaction: None, unsynced }
    }

    /// Returns the databases.
    pub(crate) fn databases(&self) -> &'a Databases {
        self.databases
    }

    /// Returns whether the command is one of a transaction.
    pub(crate) fn is_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Reads and writes in a transaction from now on.
    pub(crate) fn begin(&mut self) {
        let options =
            self.unsynced.durability().map_or_else(TransactionOptions::new, |durability| {
                TransactionOptions::new().durability(durability)
            });
        self.transaction = Some(self.databases.db().begin_with(options));
    }

    /// Commits the transaction.
    pub(crate) fn commit(&mut self) -> Result<()> {
        self.unsynced.note_write();
        self.transaction.take().map_or(Ok(()), Transaction::commit)
    }

    /// Discards the transaction.
    pub(crate) fn roll_back(&mut self) {
        self.transaction = None;
    }

    fn options(&self) -> WriteOptions {
        let options = WriteOptions::new();
        self.unsynced.durability().map_or(options, |durability| options.durability(durability))
    }

    /// Returns the value of a key.
    #[inline]
    pub(crate) fn get(&self, db: usize, key: &[u8]) -> Result<Option<Value>> {
        let Some(keyspace) = self.databases.existing(db) else { return Ok(None) };
        match &self.transaction {
            None => keyspace.get(key),
            Some(transaction) => transaction.get_in(keyspace, key),
        }
    }

    /// Returns the value of a key, and when it ends.
    pub(crate) fn get_with_end(&self, db: usize, key: &[u8]) -> Result<Option<ValueWithEnd>> {
        let Some(keyspace) = self.databases.existing(db) else { return Ok(None) };
        match &self.transaction {
            None => keyspace.get_with_end(key),
            Some(transaction) => transaction.get_with_end_in(keyspace, key),
        }
    }

    /// Returns the values of several keys, as of one moment.
    pub(crate) fn get_all<'k>(
        &self,
        db: usize,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Result<Vec<Option<Value>>> {
        match (self.databases.existing(db), &self.transaction) {
            (None, _) => Ok(keys.map(|_| None).collect()),
            (Some(keyspace), None) => keyspace.multi_get(keys),
            (Some(keyspace), Some(transaction)) => transaction.multi_get_in(keyspace, keys),
        }
    }

    /// Returns whether a key has a value.
    pub(crate) fn contains(&self, db: usize, key: &[u8]) -> Result<bool> {
        let Some(keyspace) = self.databases.existing(db) else { return Ok(false) };
        match &self.transaction {
            None => keyspace.contains(key),
            Some(transaction) => transaction.contains_in(keyspace, key),
        }
    }

    /// Returns the keys of a range.
    pub(crate) fn keys(
        &self,
        db: usize,
        (start, end): (Bound<&[u8]>, Bound<&[u8]>),
    ) -> Result<Keys<'_>> {
        let range = (start.map(<[u8]>::to_vec), end.map(<[u8]>::to_vec));
        Ok(match (self.databases.existing(db), &self.transaction) {
            (None, _) => Box::new(std::iter::empty()),
            (Some(keyspace), None) => Box::new(keyspace.range(range)?.into_keys()),
            (Some(keyspace), Some(transaction)) => {
                Box::new(transaction.range_in(keyspace, range)?.into_keys())
            }
        })
    }

    /// Sets the value of a key, which ends at a time.
    #[inline]
    pub(crate) fn put(
        &mut self,
        db: usize,
        key: &[u8],
        value: &[u8],
        end: Option<u64>,
    ) -> Result<()> {
        self.locks.touch(&mut self.held, db, key);
        self.unsynced.note_write();
        let keyspace = self.databases.for_write(db)?;
        match (&mut self.transaction, end) {
            (None, None) => keyspace.put_with(key, value, self.options()),
            (None, Some(end)) => {
                let mut batch = WriteBatch::new();
                batch.put_ending_in(keyspace, key, value, end);
                self.databases.db().write_with(&batch, self.options())
            }
            (Some(transaction), None) => transaction.put_in(keyspace, key, value),
            (Some(transaction), Some(end)) => transaction.put_ending_in(keyspace, key, value, end),
        }
    }

    /// Sets the values of several keys at once.
    pub(crate) fn put_all<'k>(
        &mut self,
        db: usize,
        pairs: impl Iterator<Item = (&'k [u8], &'k [u8])>,
    ) -> Result<()> {
        self.write(db, pairs.map(|(key, value)| (key, Some(value))))
    }

    /// Sets several keys to values without an end, or removes them, at once.
    pub(crate) fn write<'k>(
        &mut self,
        db: usize,
        changes: impl Iterator<Item = (&'k [u8], Option<&'k [u8]>)>,
    ) -> Result<()> {
        self.unsynced.note_write();
        let keyspace = self.databases.for_write(db)?;
        let mut batch = WriteBatch::new();
        for (key, value) in changes {
            self.locks.touch(&mut self.held, db, key);
            match (&mut self.transaction, value) {
                (None, Some(value)) => drop(batch.put_in(keyspace, key, value)),
                (None, None) => drop(batch.delete_in(keyspace, key)),
                (Some(transaction), Some(value)) => transaction.put_in(keyspace, key, value)?,
                (Some(transaction), None) => transaction.delete_in(keyspace, key)?,
            }
        }
        if batch.is_empty() {
            Ok(())
        } else {
            self.databases.db().write_with(&batch, self.options())
        }
    }

    /// Moves a value: removes `from` if it is given, and sets `to`, at once.
    pub(crate) fn place(
        &mut self,
        from: Option<(usize, &[u8])>,
        to: (usize, &[u8]),
        (value, end): (&[u8], Option<u64>),
    ) -> Result<()> {
        self.unsynced.note_write();
        let target = self.databases.for_write(to.0)?;
        self.locks.touch(&mut self.held, to.0, to.1);
        if let Some((db, key)) = from {
            self.locks.touch(&mut self.held, db, key);
        }
        let source = from.and_then(|(db, key)| Some((self.databases.existing(db)?, key)));
        if let Some(transaction) = &mut self.transaction {
            if let Some((source, key)) = source {
                transaction.delete_in(source, key)?;
            }
            return match end {
                Some(end) => transaction.put_ending_in(target, to.1, value, end),
                None => transaction.put_in(target, to.1, value),
            };
        }
        let mut batch = WriteBatch::new();
        if let Some((source, key)) = source {
            batch.delete_in(source, key);
        }
        match end {
            Some(end) => batch.put_ending_in(target, to.1, value, end),
            None => batch.put_in(target, to.1, value),
        };
        self.databases.db().write_with(&batch, self.options())
    }

    /// Removes a key; returns whether it had a value.
    pub(crate) fn delete(&mut self, db: usize, key: &[u8]) -> Result<bool> {
        let Some(keyspace) = self.databases.existing(db) else { return Ok(false) };
        if !self.contains(db, key)? {
            return Ok(false);
        }
        self.locks.touch(&mut self.held, db, key);
        self.unsynced.note_write();
        match &mut self.transaction {
            None => keyspace.delete_with(key, self.options())?,
            Some(transaction) => transaction.delete_in(keyspace, key)?,
        }
        Ok(true)
    }

    /// Removes all keys of the given databases at once. The caller holds all locks.
    pub(crate) fn clear(&mut self, dbs: impl Iterator<Item = usize>) -> Result<()> {
        self.unsynced.note_write();
        let mut batch = WriteBatch::new();
        for db in dbs {
            let Some(keyspace) = self.databases.existing(db) else { continue };
            self.locks.touch_database(&mut self.held, db);
            match &mut self.transaction {
                None => drop(batch.delete_range_in(keyspace, ..)),
                Some(transaction) => transaction.clear_in(keyspace)?,
            }
        }
        if batch.is_empty() {
            Ok(())
        } else {
            self.databases.db().write_with(&batch, self.options())
        }
    }

    /// Returns whether the command has written.
    pub(crate) fn has_written(&self) -> bool {
        self.unsynced.has_written()
    }
}
