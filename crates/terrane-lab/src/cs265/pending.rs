//! Puts and deletes, written several at a time because they have no answer.
//!
//! They are written when enough are pending, and before an answer, an error or a wait for input, so
//! a user cannot observe the delay. If the batch fails, they are written one by one to attribute
//! errors to lines.

use terrane::{Db, Error, WriteBatch};

use crate::input::import_export::pairs::encode;

/// The maximum number of pending changes: enough to amortise the fixed costs of a write.
const CHANGES_MAX: u64 = 256;
/// A memtable is replaced when a batch does not fit, so a batch must be a small part of the buffer.
const SHARE_OF_BUFFER: u64 = 64;

/// Changes not written yet.
#[derive(Debug)]
pub(super) struct Pending {
    batch: WriteBatch,
    /// For each change, the line, the key, and the value; a delete has no value.
    changes: Vec<(u64, i32, Option<i32>)>,
    changes_max: usize,
}

impl Pending {
    /// Returns an empty list for a buffer of `buffer_entries` entries.
    pub(super) fn new(buffer_entries: u64) -> Self {
        let changes_max = (buffer_entries / SHARE_OF_BUFFER).clamp(1, CHANGES_MAX) as usize;
        Self { batch: WriteBatch::new(), changes: Vec::with_capacity(changes_max), changes_max }
    }

    /// Adds a change.
    pub(super) fn add(&mut self, line: u64, key: i32, value: Option<i32>) {
        match value {
            Some(value) => self.batch.put(encode(key), encode(value)),
            None => self.batch.delete(encode(key)),
        };
        self.changes.push((line, key, value));
    }

    /// Returns true if the changes should be written.
    pub(super) fn is_full(&self) -> bool {
        self.changes.len() >= self.changes_max
    }

    /// Writes all changes in order, and returns the lines and errors of those that failed.
    pub(super) fn write(&mut self, db: &Db) -> Vec<(u64, Error)> {
        if self.changes.is_empty() {
            return Vec::new();
        }
        let mut failed = Vec::new();
        if db.write(&self.batch).is_err() {
            for &(line, key, value) in &self.changes {
                let done = match value {
                    Some(value) => db.put(encode(key), encode(value)),
                    None => db.delete(encode(key)),
                };
                failed.extend(done.err().map(|error| (line, error)));
            }
        }
        self.batch.clear();
        self.changes.clear();
        failed
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use terrane::Options;
    use terrane::storage::MemoryStorage;

    use super::*;

    #[test]
    fn changes_are_written_in_order_and_failures_have_their_lines() {
        let storage = Arc::new(MemoryStorage::new(1));
        let db = Options::new().storage(storage).open("db").unwrap();
        let mut pending = Pending::new(1 << 20);
        for (line, key, value) in [(1, 5, Some(1)), (2, 5, Some(2)), (3, 6, Some(1)), (4, 6, None)]
        {
            pending.add(line, key, value);
            assert!(!pending.is_full());
        }
        assert!(pending.write(&db).is_empty() && pending.write(&db).is_empty());
        assert_eq!(db.get(encode(5)).unwrap().as_deref(), Some(&encode(2)[..]));
        assert!(db.get(encode(6)).unwrap().is_none());
        pending.add(8, 7, Some(1));
        pending.add(9, 7, None);
        db.clone().close().unwrap();
        let lines: Vec<u64> = pending.write(&db).into_iter().map(|(line, _)| line).collect();
        assert_eq!(lines, [8, 9]);
        assert!(pending.write(&db).is_empty());
    }

    #[test]
    fn a_small_buffer_is_not_left_half_empty() {
        for (entries, changes) in [(10, 1), (512, 8), (1 << 20, CHANGES_MAX)] {
            assert_eq!(Pending::new(entries).changes_max as u64, changes);
        }
    }
}
