//! The positions of `SCAN` and `HSCAN`.
//!
//! A client of Redis continues a scan with a number, an ordered store with a key. The table holds the key of
//! each number that a scan has returned. A number stays valid after its use, so that a client may repeat a
//! call whose answer it lost; when the table is full, it drops the numbers unused for the longest time, and a
//! call with one of these fails instead of skipping keys.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

/// The most positions, and the most bytes of their keys.
const MAX_CURSORS: usize = 16 << 10;
const MAX_BYTES: usize = 16 << 20;

/// What a scan visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scanned {
    /// The keys of a database.
    Keys(usize),
    /// The fields of a hash of a database.
    Fields(usize),
}

/// The positions of all scans.
#[derive(Debug)]
pub(crate) struct Cursors(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    uses: u64,
    bytes: usize,
    positions: HashMap<u64, Position>,
    /// The numbers by their last use.
    by_use: BTreeMap<u64, u64>,
}

#[derive(Debug)]
struct Position {
    scanned: Scanned,
    key: Box<[u8]>,
    last_use: u64,
}

impl Cursors {
    /// Returns an empty table whose numbers begin at `first`, so that numbers of an earlier run of the
    /// server are not valid by chance.
    pub(crate) fn new(first: u64) -> Self {
        Self(Mutex::new(Table { next: first.max(1), ..Table::default() }))
    }

    /// Returns a number for a position: the next key that the scan returns is after `key`.
    pub(crate) fn add(&self, scanned: Scanned, key: &[u8]) -> u64 {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let number = table.next;
        table.next += 1;
        table.uses += 1;
        let last_use = table.uses;
        table.bytes += key.len();
        table.positions.insert(number, Position { scanned, key: key.into(), last_use });
        table.by_use.insert(last_use, number);
        while table.positions.len() > MAX_CURSORS || table.bytes > MAX_BYTES {
            let Some((_, oldest)) = table.by_use.pop_first() else { break };
            let dropped = table.positions.remove(&oldest);
            table.bytes -= dropped.map_or(0, |position| position.key.len());
        }
        number
    }

    /// Returns the key of a number.
    pub(crate) fn find(&self, scanned: Scanned, number: u64) -> Option<Box<[u8]>> {
        let mut table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let table = &mut *table;
        let position =
            table.positions.get_mut(&number).filter(|position| position.scanned == scanned)?;
        table.by_use.remove(&position.last_use);
        table.uses += 1;
        position.last_use = table.uses;
        table.by_use.insert(table.uses, number);
        Some(position.key.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_stays_valid_until_the_table_is_full() {
        let cursors = Cursors::new(100);
        let number = cursors.add(Scanned::Keys(2), b"key");
        assert_eq!(number, 100);
        let other = cursors.add(Scanned::Keys(2), b"other");
        for _ in 0..MAX_CURSORS - 1 {
            assert_eq!(cursors.find(Scanned::Keys(2), number).as_deref(), Some(&b"key"[..]));
            cursors.add(Scanned::Keys(0), b"x");
        }
        assert_eq!(
            cursors.find(Scanned::Keys(2), other),
            None,
            "dropped, because others were used since"
        );
        for other in [Scanned::Keys(1), Scanned::Fields(2)] {
            assert_eq!(cursors.find(other, number), None, "{other:?}");
        }
        assert!(cursors.find(Scanned::Keys(2), number).is_some());
    }

    #[test]
    fn long_keys_count() {
        let cursors = Cursors::new(1);
        let numbers: Vec<u64> =
            (0..300).map(|_| cursors.add(Scanned::Keys(0), &[b'x'; 64 << 10])).collect();
        assert!(
            cursors.find(Scanned::Keys(0), numbers[0]).is_none()
                && cursors.find(Scanned::Keys(0), numbers[299]).is_some()
        );
        let table = cursors.0.lock().unwrap();
        assert!(table.bytes <= MAX_BYTES && table.positions.len() == table.by_use.len());
    }
}
