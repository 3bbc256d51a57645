//! The data of commands: the keyspaces of the databases, directly or in a transaction.
//!
//! | module | one line |
//! |---|---|
//! | `databases` | the keyspaces of `SELECT` |
//! | `order` | which keyspaces the numbers of `SELECT` are |
//! | `keys` | keys of all types |
//! | `hashes` | reading and writing hashes, and values of any type; why that fails |
//! | `many_keys` | reads and writes of several commands at once |
//! | `hash_layout` | how hashes are stored |
//! | `sweep` | removes what expired hashes leave behind |
//! | `changes` | writes that happen at once |
//! | `locks` | locks of keys, and watched keys |
//! | `cursors` | the positions of `SCAN` |
//! | `noted` | the changes of keys by commands, for keyspace events |
//! | `durable` | which writes a sync has to cover |
//! | `type_changes` | keys that change their type while a command looks for them |

mod changes;
mod cursors;
mod databases;
mod durable;
mod hash_layout;
mod hashes;
mod keys;
mod locks;
mod many_keys;
mod noted;
mod order;
mod sweep;
mod type_changes;

use terrane::{Keyspace, Result, Transaction, TransactionOptions, Value, WriteBatch, WriteOptions};

use changes::Changes;

pub(crate) use cursors::{Cursors, Scanned};
pub(crate) use databases::Databases;
pub(crate) use durable::{Durable, Unsynced};
pub(crate) use hashes::{Fault, Found, Source};
pub(crate) use keys::Kind;
pub(crate) use locks::{Held, KeyLocks};
pub(crate) use many_keys::Put;
pub(crate) use noted::Change;
use noted::NotedChange;
pub(crate) use sweep::SWEPT;

/// The number of keys looked up together; after each lookup, the length of the values is compared with a
/// limit.
const KEYS_AT_ONCE: usize = 64;

/// A value, and its expiry time in microseconds since the Unix epoch.
pub(crate) type ValueWithExpiry = (Value, Option<u64>);

/// Reads and writes of one command, or of the commands of one transaction. Writers hold the locks of
/// the keys that they change.
#[derive(Debug)]
pub(crate) struct Store<'a> {
    databases: &'a Databases,
    locks: &'a KeyLocks,
    pub(crate) held: Held<'a>,
    /// The changes of keys; `None` if no event announces them.
    noted: Option<Vec<NotedChange>>,
    transaction: Option<Transaction>,
    unsynced: Unsynced<'a>,
}

impl<'a> Store<'a> {
    pub(crate) fn new(
        databases: &'a Databases,
        locks: &'a KeyLocks,
        unsynced: Unsynced<'a>,
    ) -> Self {
        let (held, noted, transaction) = (Held::default(), None, None);
        Self { databases, locks, held, noted, transaction, unsynced }
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
        let _change = self.databases.type_changes.begin();
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

    /// Makes changes at once.
    fn change(&mut self, make: impl FnOnce(&mut Changes<'_>) -> Result<()>) -> Result<()> {
        self.unsynced.note_write();
        if let Some(transaction) = &mut self.transaction {
            return make(&mut Changes::Transaction(transaction));
        }
        let mut batch = WriteBatch::new();
        make(&mut Changes::Batch(&mut batch))?;
        if batch.is_empty() {
            return Ok(());
        }
        self.databases.db().write_with(&batch, self.options())
    }

    /// Looks for a value of any type. A command that holds no locks looks again if it found nothing while a
    /// write that changes the type of a key was running.
    #[inline]
    fn look<T, E>(
        &self,
        key: &[u8],
        look: impl Fn() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let ended = self.databases.type_changes.ended();
        let found = look()?;
        if found.is_some() || self.databases.type_changes.are_over(ended) {
            return Ok(found);
        }
        self.look_locked(key, look)
    }

    #[cold]
    fn look_locked<T, E>(
        &self,
        key: &[u8],
        look: impl Fn() -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        // The keys of a write command are already locked. A transaction reads one snapshot.
        if self.transaction.is_some() || !self.held.is_none() {
            return Ok(None);
        }
        let _held = self.locks.hold(key);
        look()
    }

    /// Returns the string of a key; fails if the key has a value of another type.
    #[inline]
    pub(crate) fn get(&self, db: usize, key: &[u8]) -> Result<Option<Value>, Fault> {
        self.look(key, || {
            let found = match (self.databases.existing(db), &self.transaction) {
                (None, _) => None,
                (Some(keyspace), None) => keyspace.get(key)?,
                (Some(keyspace), Some(transaction)) => transaction.get_in(keyspace, key)?,
            };
            match found {
                None if self.header(db, key)?.is_some() => Err(Fault::WrongType),
                found => Ok(found),
            }
        })
    }

    /// Returns the string of a key, and its expiry time; fails if the key has a value of another type.
    pub(crate) fn get_with_expiry(
        &self,
        db: usize,
        key: &[u8],
    ) -> Result<Option<ValueWithExpiry>, Fault> {
        self.look(key, || match self.string_with_expiry(db, key)? {
            None if self.header(db, key)?.is_some() => Err(Fault::WrongType),
            found => Ok(found),
        })
    }

    fn string_with_expiry(&self, db: usize, key: &[u8]) -> Result<Option<ValueWithExpiry>> {
        match (self.databases.existing(db), &self.transaction) {
            (None, _) => Ok(None),
            (Some(keyspace), None) => keyspace.get_with_expiry(key),
            (Some(keyspace), Some(transaction)) => transaction.get_with_expiry_in(keyspace, key),
        }
    }

    /// Returns the strings of several keys, from one snapshot. A key with a value of another type has none.
    /// Stops soon after the values have more than `bytes_max` bytes, and then returns fewer values than keys.
    pub(crate) fn get_all<'k>(
        &self,
        db: usize,
        keys: impl Iterator<Item = &'k [u8]>,
        bytes_max: usize,
    ) -> Result<Vec<Option<Value>>> {
        match self.databases.existing(db) {
            None => Ok(keys.map(|_| None).collect()),
            Some(keyspace) => self.look_up(keyspace, &keys.collect::<Vec<_>>(), bytes_max),
        }
    }

    /// Looks up keys of a keyspace, as [`Self::get_all`] does.
    fn look_up<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        keys: &[K],
        bytes_max: usize,
    ) -> Result<Vec<Option<Value>>> {
        let is_split = keys.len() > KEYS_AT_ONCE && self.transaction.is_none();
        let snapshot = is_split.then(|| self.databases.db().snapshot());
        let mut values = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for keys in keys.chunks(KEYS_AT_ONCE) {
            let found = match (&self.transaction, &snapshot) {
                (Some(transaction), _) => transaction.multi_get_in(keyspace, keys)?,
                (None, Some(snapshot)) => snapshot.multi_get_in(keyspace, keys)?,
                (None, None) => keyspace.multi_get(keys)?,
            };
            bytes += found.iter().flatten().map(|value| value.len()).sum::<usize>();
            values.extend(found);
            if bytes > bytes_max {
                break;
            }
        }
        Ok(values)
    }

    /// Returns whether a key has a value.
    pub(crate) fn contains(&self, db: usize, key: &[u8]) -> Result<bool> {
        let found = self.look(key, || Ok(self.contains_locked(db, key)?.then_some(())));
        found.map(|found| found.is_some())
    }

    /// Returns whether a key, which is locked, has a value.
    pub(crate) fn contains_locked(&self, db: usize, key: &[u8]) -> Result<bool> {
        Ok(self.contains_string(db, key)? || self.header(db, key)?.is_some())
    }

    fn contains_string(&self, db: usize, key: &[u8]) -> Result<bool> {
        match (self.databases.existing(db), &self.transaction) {
            (None, _) => Ok(false),
            (Some(keyspace), None) => keyspace.contains(key),
            (Some(keyspace), Some(transaction)) => transaction.contains_in(keyspace, key),
        }
    }

    /// Sets the value of a key, which may expire at a time.
    #[inline]
    pub(crate) fn put(
        &mut self,
        db: usize,
        key: &[u8],
        value: &[u8],
        expires_at: Option<u64>,
    ) -> Result<()> {
        if let Some(header) = self.header(db, key)? {
            return self.replace_hash(db, key, &header, Some((value, expires_at)));
        }
        self.touch(db, key, Change::Set { has_expiry: expires_at.is_some() });
        self.unsynced.note_write();
        let keyspace = self.databases.for_write(db)?;
        match (&mut self.transaction, expires_at) {
            (None, None) => keyspace.put_with(key, value, self.options()),
            (None, Some(expires_at)) => {
                let mut batch = WriteBatch::new();
                batch.put_with_expiry_in(keyspace, key, value, expires_at);
                self.databases.db().write_with(&batch, self.options())
            }
            (Some(transaction), None) => transaction.put_in(keyspace, key, value),
            (Some(transaction), Some(expires_at)) => {
                transaction.put_with_expiry_in(keyspace, key, value, expires_at)
            }
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

    /// Sets several keys to strings without an expiry time, or removes them, at once.
    pub(crate) fn write<'k>(
        &mut self,
        db: usize,
        pairs: impl Iterator<Item = (&'k [u8], Option<&'k [u8]>)>,
    ) -> Result<()> {
        let keyspace = self.databases.for_write(db)?;
        let hashes = self.databases.hashes(db);
        let (mut strings, mut headers) = (Vec::new(), Vec::new());
        for (key, value) in pairs {
            let set = Change::Set { has_expiry: false };
            self.touch(db, key, if value.is_some() { set } else { Change::Removed });
            if let Some(header) = self.header(db, key)? {
                headers.push((key, header));
            }
            strings.push((key, value));
        }
        let _change = (!headers.is_empty()).then(|| self.databases.type_changes.begin());
        self.change(|changes| {
            for (key, header) in &headers {
                if let Some(hashes) = hashes {
                    changes.delete_hash(hashes, key, header)?;
                }
            }
            for (key, value) in strings {
                match value {
                    Some(value) => changes.put(keyspace, key, value, None)?,
                    None => changes.delete(keyspace, key)?,
                }
            }
            Ok(())
        })
    }

    /// Removes a key; returns whether it had a value.
    pub(crate) fn delete(&mut self, db: usize, key: &[u8]) -> Result<bool> {
        let has_string = self.contains_string(db, key)?;
        if let Some(header) = self.header(db, key)? {
            self.replace_hash(db, key, &header, None)?;
            if !has_string {
                return Ok(true);
            }
        }
        let Some(keyspace) = self.databases.existing(db).filter(|_| has_string) else {
            return Ok(false);
        };
        self.touch(db, key, Change::Removed);
        self.unsynced.note_write();
        match &mut self.transaction {
            None => keyspace.delete_with(key, self.options())?,
            Some(transaction) => transaction.delete_in(keyspace, key)?,
        }
        Ok(true)
    }

    /// Removes all keys of the given databases at once. The caller holds all locks.
    pub(crate) fn clear(&mut self, dbs: impl Iterator<Item = usize>) -> Result<()> {
        let databases = self.databases;
        let dbs: Vec<usize> = dbs.collect();
        for db in &dbs {
            // As in Redis, a key that is missing does not change.
            self.locks.touch_database(*db, |key| self.contains_locked(*db, key))?;
        }
        self.change(|changes| {
            dbs.iter()
                .flat_map(|db| databases.keyspaces(*db))
                .try_for_each(|keyspace| changes.clear(keyspace))
        })
    }

    /// Exchanges the databases of two numbers of `SELECT`. The caller holds all locks.
    pub(crate) fn swap(&mut self, first: usize, second: usize) -> Result<()> {
        for slot in [first, second].map(|number| self.databases.slot(number)) {
            self.locks.touch_database(slot, |_| Ok::<_, terrane::Error>(true))?;
        }
        self.unsynced.note_write();
        self.databases.swap((first, second), self.options())
    }

    /// Makes the writes of a command that ran in its own thread durable, if the durability demands it.
    pub(crate) fn sync_thread(&self) -> Result<()> {
        self.unsynced.sync_thread(self.databases.db())
    }

    /// Called if the command's reply shows stored data.
    #[inline]
    pub(crate) fn note_read(&self) {
        self.unsynced.note_read();
    }

    /// Returns whether the command's reply depends on a sync, because the command wrote or may have read data
    /// that is not durable.
    #[inline]
    pub(crate) fn depends_on_sync(&self, durable: &Durable) -> bool {
        self.unsynced.has_written() || (self.unsynced.has_read() && durable.is_exposed())
    }
}
