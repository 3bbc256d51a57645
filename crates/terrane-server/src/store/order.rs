//! Maps the numbers of `SELECT` to keyspaces, which `SWAPDB` exchanges.
//!
//! A *slot* is a pair of keyspaces, for strings and hashes: slot 0 is `default`, slot 3 is `db3`. Number 3 selects
//! slot 3 until `SWAPDB` exchanges it with another one. Commands find the slot of their number once and use it
//! throughout, so that an exchange does not change it under them.
//!
//! The keyspace `server.databases` has an entry for each number that selects a slot other than its own: the
//! number, and the name of the keyspace of the strings. It exists only after the first `SWAPDB`.

use std::sync::atomic::{AtomicUsize, Ordering};

use terrane::{Db, KeyspaceOptions, Result, WriteBatch, WriteOptions};

/// The keyspace with the exchanged numbers.
const KEYSPACE: &str = "server.databases";

/// The name of the keyspace of slot 0.
const DEFAULT: &str = "default";

/// The slots by number.
#[derive(Debug)]
pub(crate) struct Order(Vec<AtomicUsize>);

/// Returns the name of the keyspace of a slot's strings.
pub(super) fn name(slot: usize) -> String {
    if slot == 0 { DEFAULT.to_owned() } else { format!("db{slot}") }
}

fn slot_of(name: &str) -> Option<usize> {
    if name == DEFAULT { Some(0) } else { name.strip_prefix("db")?.parse().ok() }
}

impl Order {
    /// Reads the order of `count` numbers.
    pub(super) fn open(db: &Db, count: usize) -> Result<Self> {
        let mut slots: Vec<usize> = (0..count).collect();
        if db.keyspaces().iter().any(|name| name == KEYSPACE) {
            let keyspace = db.keyspace(KEYSPACE, KeyspaceOptions::new())?;
            for (number, slot) in slots.iter_mut().enumerate() {
                let name = keyspace.get(number.to_string())?;
                let name = name.as_deref().and_then(|name| std::str::from_utf8(name).ok());
                *slot = name.and_then(slot_of).unwrap_or(*slot);
            }
        }
        Ok(Self(slots.into_iter().map(AtomicUsize::new).collect()))
    }

    /// Returns the number of slots: all up to the highest one that a number selects.
    pub(super) fn slots(&self) -> usize {
        let last = self.0.iter().map(|slot| slot.load(Ordering::Relaxed)).max();
        self.0.len().max(last.unwrap_or(0) + 1)
    }

    /// Returns how many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the slot of a number.
    #[inline]
    pub(super) fn slot(&self, number: usize) -> usize {
        // Acquire: a command that sees an exchange sees the writes before it.
        self.0.get(number).map_or(0, |slot| slot.load(Ordering::Acquire))
    }

    /// Returns the number that selects a slot.
    pub(super) fn number(&self, slot: usize) -> Option<usize> {
        self.0.iter().position(|of| of.load(Ordering::Acquire) == slot)
    }

    /// Exchanges the slots of two numbers. The exchange is as durable as a write with `options`. The caller holds
    /// the locks of all keys.
    pub(super) fn swap(
        &self,
        db: &Db,
        (first, second): (usize, usize),
        options: WriteOptions,
    ) -> Result<()> {
        let (Some(one), Some(other)) = (self.0.get(first), self.0.get(second)) else {
            return Ok(());
        };
        let slots = (one.load(Ordering::Acquire), other.load(Ordering::Acquire));
        let keyspace = db.keyspace(KEYSPACE, KeyspaceOptions::new())?;
        let mut batch = WriteBatch::new();
        for (number, slot) in [(first, slots.1), (second, slots.0)] {
            match number == slot {
                true => batch.delete_in(&keyspace, number.to_string()),
                false => batch.put_in(&keyspace, number.to_string(), name(slot)),
            };
        }
        db.write_with(&batch, options)?;
        one.store(slots.1, Ordering::Release);
        other.store(slots.0, Ordering::Release);
        Ok(())
    }
}
