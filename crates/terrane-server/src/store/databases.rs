//! The databases of `SELECT`: keyspaces of one database of the engine.
//!
//! Slot 0 is the keyspace `default`, slot 3 the keyspace `db3`; their hashes are in `default.hashes` and
//! `db3.hashes`. A keyspace is created by the first write to it. `order` maps the numbers of `SELECT` to
//! slots; all other functions here take slots.

use std::ops::{Bound, Range};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane::{Db, Keyspace, KeyspaceOptions, Result, WriteOptions};

use super::hash_layout::{all_fields, generation_of_field, header_range};
use super::order::{self, Order};
use super::type_changes::TypeChanges;

/// The suffix of a keyspace with hashes.
const HASHES: &str = ".hashes";

/// The databases.
#[derive(Debug)]
pub(crate) struct Databases {
    db: Db,
    order: Order,
    names: Vec<String>,
    keyspaces: Vec<OnceLock<Keyspace>>,
    hashes: Vec<OnceLock<Hashes>>,
    pub(super) type_changes: TypeChanges,
}

/// The hashes of a database.
#[derive(Debug)]
pub(crate) struct Hashes {
    pub(super) keyspace: Keyspace,
    /// Larger than the generations of all fields.
    next_generation: AtomicU64,
}

impl Hashes {
    fn open(keyspace: Keyspace) -> Result<Self> {
        let last = keyspace.range(all_fields())?.into_keys().next_back().transpose()?;
        let last = last.and_then(|key| generation_of_field(&key)).unwrap_or(0);
        Ok(Self { keyspace, next_generation: AtomicU64::new(last + 1) })
    }

    /// Returns an estimate of the number of hashes.
    fn approximate_len(&self) -> Result<u64> {
        self.keyspace.approximate_len(header_range(Bound::Unbounded, Bound::Unbounded))
    }

    /// Returns the generation of a new hash.
    pub(super) fn new_generation(&self) -> u64 {
        self.next_generation.fetch_add(1, Ordering::Relaxed)
    }
}

impl Databases {
    /// Opens the keyspaces that exist, of `count` databases.
    pub(crate) fn open(db: Db, count: usize) -> Result<Self> {
        let order = Order::open(&db, count.max(1))?;
        let names: Vec<String> = (0..order.slots()).map(order::name).collect();
        let existing = db.keyspaces();
        let databases = Self {
            keyspaces: names.iter().map(|_| OnceLock::new()).collect(),
            hashes: names.iter().map(|_| OnceLock::new()).collect(),
            type_changes: TypeChanges::default(),
            names,
            order,
            db,
        };
        for (index, name) in databases.names.iter().enumerate() {
            if existing.contains(name) {
                databases.create(index)?;
            }
            if existing.contains(&(name.clone() + HASHES)) {
                databases.create_hashes(index)?;
            }
        }
        Ok(databases)
    }

    /// Returns the database of the engine.
    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// Returns how many databases `SELECT` accepts.
    pub(crate) fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns all slots. There are more slots than numbers if a number selects a slot beyond them.
    pub(crate) fn slots(&self) -> Range<usize> {
        0..self.names.len()
    }

    /// Returns the slot of a number of `SELECT`.
    #[inline]
    pub(crate) fn slot(&self, number: usize) -> usize {
        self.order.slot(number)
    }

    /// Returns the number of `SELECT` that has a slot.
    pub(crate) fn number(&self, slot: usize) -> Option<usize> {
        self.order.number(slot)
    }

    /// Exchanges the slots of two numbers; see [`Order::swap`].
    pub(super) fn swap(&self, numbers: (usize, usize), options: WriteOptions) -> Result<()> {
        self.order.swap(&self.db, numbers, options)
    }

    /// Returns the name of the keyspace of a database.
    pub(crate) fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or("default", String::as_str)
    }

    /// Returns the keyspace of a database, if it was ever written.
    #[inline]
    pub(crate) fn existing(&self, index: usize) -> Option<&Keyspace> {
        self.keyspaces.get(index).and_then(OnceLock::get)
    }

    /// Returns the keyspace of a database, for a write.
    #[inline]
    pub(crate) fn for_write(&self, index: usize) -> Result<&Keyspace> {
        match self.existing(index) {
            Some(keyspace) => Ok(keyspace),
            None => self.create(index),
        }
    }

    #[cold]
    fn create(&self, index: usize) -> Result<&Keyspace> {
        let keyspace = self.db.keyspace(self.name(index), KeyspaceOptions::new())?;
        let slot = self.keyspaces.get(index);
        Ok(slot.map_or(self.db.default_keyspace(), |slot| slot.get_or_init(|| keyspace)))
    }

    /// Returns the hashes of a database, if it ever had one.
    #[inline]
    pub(crate) fn hashes(&self, index: usize) -> Option<&Hashes> {
        self.hashes.get(index).and_then(OnceLock::get)
    }

    /// Returns the hashes of a database, for a write.
    #[inline]
    pub(super) fn hashes_for_write(&self, index: usize) -> Result<&Hashes> {
        match self.hashes(index) {
            Some(hashes) => Ok(hashes),
            None => self.create_hashes(index),
        }
    }

    #[cold]
    fn create_hashes(&self, index: usize) -> Result<&Hashes> {
        let index = index.min(self.hashes.len() - 1);
        let name = self.name(index).to_owned() + HASHES;
        let hashes = Hashes::open(self.db.keyspace(&name, KeyspaceOptions::new())?)?;
        // Another thread may have been first; then its numbering counts.
        Ok(self.hashes[index].get_or_init(|| hashes))
    }

    /// Returns the keyspaces of a database: of its strings, and of its hashes.
    pub(crate) fn keyspaces(&self, index: usize) -> impl Iterator<Item = &Keyspace> {
        let hashes = self.hashes(index).map(|hashes| &hashes.keyspace);
        self.existing(index).into_iter().chain(hashes)
    }

    /// Returns whether a write to some database would wait.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stalled().is_some()
    }

    /// Returns a keyspace to which a write would wait.
    pub(crate) fn stalled(&self) -> Option<&Keyspace> {
        let mut keyspaces = self.slots().flat_map(|index| self.keyspaces(index));
        keyspaces.find(|keyspace| keyspace.is_stalled())
    }

    /// Returns the slots that were ever written.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &Keyspace)> {
        let slots = self.keyspaces.iter().enumerate();
        slots.filter_map(|(index, slot)| slot.get().map(|keyspace| (index, keyspace)))
    }

    /// Returns an estimate of the number of keys of a database.
    pub(crate) fn approximate_len(&self, index: usize) -> Result<u64> {
        let strings =
            self.existing(index).map_or(Ok(0), |keyspace| keyspace.approximate_len(..))?;
        Ok(strings + self.hashes(index).map_or(Ok(0), Hashes::approximate_len)?)
    }
}
