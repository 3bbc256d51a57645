//! The databases of `SELECT`: keyspaces of one database of the engine.

use std::sync::OnceLock;

use terrane::{Db, Keyspace, KeyspaceOptions, Result};

/// The keyspace of database 0.
const DEFAULT: &str = "default";

/// The databases. A keyspace is created by the first write to it.
#[derive(Debug)]
pub(crate) struct Databases {
    db: Db,
    names: Vec<String>,
    keyspaces: Vec<OnceLock<Keyspace>>,
}

impl Databases {
    /// Opens the keyspaces that exist, of `count` databases.
    pub(crate) fn open(db: Db, count: usize) -> Result<Self> {
        let name = |index| if index == 0 { DEFAULT.to_owned() } else { format!("db{index}") };
        let names: Vec<String> = (0..count.max(1)).map(name).collect();
        let existing = db.keyspaces();
        let databases =
            Self { keyspaces: names.iter().map(|_| OnceLock::new()).collect(), names, db };
        for (index, name) in databases.names.iter().enumerate() {
            if existing.contains(name) {
                databases.create(index)?;
            }
        }
        Ok(databases)
    }

    /// Returns the database of the engine.
    pub(crate) fn db(&self) -> &Db {
        &self.db
    }

    /// Returns the number of databases.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the name of the keyspace of a database.
    pub(crate) fn name(&self, index: usize) -> &str {
        self.names.get(index).map_or(DEFAULT, String::as_str)
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

    /// Returns the databases that were ever written.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, &Keyspace)> {
        let slots = self.keyspaces.iter().enumerate();
        slots.filter_map(|(index, slot)| slot.get().map(|keyspace| (index, keyspace)))
    }
}
