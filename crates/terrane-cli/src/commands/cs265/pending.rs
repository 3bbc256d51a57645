//! Puts and deletes that have no answer, written several at a time.
//!
//! They wait until there are some, or until something is to be answered, an error to be told, or
//! input to be waited for: no one can tell that they were put off. Where the database refuses them
//! together, they are written one by one, so that an error is told of the line that it is of.

use terrane::{Db, Error, WriteBatch};

use crate::entries::pairs::encode;

/// As many take a write's fixed costs from all but one of them.
const CHANGES_MAX: u64 = 256;
/// A memtable is replaced when what comes does not fit: little of it may be left empty.
const SHARE_OF_BUFFER: u64 = 64;

/// Changes that are not written yet.
#[derive(Debug)]
pub(super) struct Pending {
    batch: WriteBatch,
    /// The line, the key, and the value unless it is a delete.
    changes: Vec<(u64, i32, Option<i32>)>,
    changes_max: usize,
}

impl Pending {
    /// None, for a buffer of so many entries.
    pub(super) fn new(buffer_entries: u64) -> Self {
        let changes_max = (buffer_entries / SHARE_OF_BUFFER).clamp(1, CHANGES_MAX) as usize;
        Self { batch: WriteBatch::new(), changes: Vec::with_capacity(changes_max), changes_max }
    }

    /// Puts a change off.
    pub(super) fn add(&mut self, line: u64, key: i32, value: Option<i32>) {
        match value {
            Some(value) => self.batch.put(encode(key), encode(value)),
            None => self.batch.delete(encode(key)),
        };
        self.changes.push((line, key, value));
    }

    /// Whether it is time to write.
    pub(super) fn is_full(&self) -> bool {
        self.changes.len() >= self.changes_max
    }

    /// Writes all of them, in order; answers the lines of those that could not be.
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
    fn changes_are_written_in_order_and_failures_told_of_their_lines() {
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
