//! Clearing a keyspace, and estimates of the number and size of its keys.

use crate::api::db::Db;
use crate::api::keyspace::Keyspace;
use crate::api::transaction::Transaction;
use crate::base::error::Result;
use crate::base::range::{KeyBounds, bounds_of};
use crate::engine::note_stalled;

impl Keyspace {
    /// Removes all keys, at the cost of one write, as `delete_range(..)` does.
    ///
    /// # Errors
    /// See [`Db::write`].
    #[doc(alias("truncate", "delete_all"))]
    pub fn clear(&self) -> Result<()> {
        self.delete_range(..)
    }

    /// Returns true if a write to this keyspace would wait now, because flushes or compactions are so far
    /// behind that writers are stopped. A server can then serve readers instead of blocking a thread.
    ///
    /// The answer may be outdated when a write follows: another thread may fill the memtable in between. A
    /// write that would fail, or do the work itself because there are no background threads, does not wait,
    /// and writers that are only delayed do not count. A call costs a few nanoseconds.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// assert!(!db.default_keyspace().is_stalled());
    /// # Ok(())
    /// # }
    /// ```
    #[inline]
    pub fn is_stalled(&self) -> bool {
        self.handle.engine.writer.would_stall(&self.tree)
    }

    /// Notes that a writer waits for this long before it tries to write again, because [`Keyspace::is_stalled`] has
    /// returned true. As for a write that waits, the stall is reported
    /// ([`Event::WritesStalled`](crate::Event::WritesStalled)), and the time is added to
    /// [`Stats::stalls`](crate::Stats::stalls). Does nothing if writers are no longer stopped.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let (keyspace, pause) = (db.default_keyspace(), std::time::Duration::from_millis(1));
    /// if keyspace.is_stalled() {
    ///     keyspace.note_stalled(pause);
    ///     // Serve readers meanwhile, and try again after the pause.
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn note_stalled(&self, waits: std::time::Duration) {
        note_stalled(&self.handle.engine.writer, &self.tree, waits);
    }

    /// Estimates the number of keys in a range.
    ///
    /// The estimate comes from the counts and indexes of tables, and from up to 4,096 entries of each
    /// memtable; a call costs as much as creating an iterator. A table that extends beyond the
    /// range is counted with an error of at most a block at each end. An overwritten key counts
    /// once for each version that no compaction has removed yet. An expired value counts until a
    /// compaction drops it. Deleted ranges are subtracted, and each delete of a single key
    /// subtracts two entries. `iter()?.into_keys().count()` is exact.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// for number in 0..1000 {
    ///     db.put(format!("key {number:03}"), "value")?;
    /// }
    /// assert_eq!(db.approximate_len(..)?, 1000);
    /// assert_eq!(db.approximate_len("key 5".."key 6")?, 100);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The index of a table could not be read, or the database was closed.
    #[doc(alias("len", "count", "estimate_num_keys"))]
    pub fn approximate_len(&self, range: impl KeyBounds) -> Result<u64> {
        let (start, end) = bounds_of(&range);
        Ok(self.handle.engine.reader.estimate(&self.tree, &start, end.as_deref())?.keys)
    }

    /// Estimates the bytes that a range takes in memtables, tables and value files, including versions
    /// that no compaction has removed yet. The estimate has the precision and the cost of
    /// [`Self::approximate_len`].
    ///
    /// # Errors
    /// The index of a table could not be read, or the database was closed.
    #[doc(alias = "get_approximate_sizes")]
    pub fn approximate_size(&self, range: impl KeyBounds) -> Result<u64> {
        let (start, end) = bounds_of(&range);
        Ok(self.handle.engine.reader.estimate(&self.tree, &start, end.as_deref())?.bytes)
    }
}

impl Db {
    /// Removes all keys of the default keyspace. See [`Keyspace::clear`].
    ///
    /// # Errors
    /// See [`Db::write`].
    #[doc(alias("truncate", "delete_all"))]
    pub fn clear(&self) -> Result<()> {
        self.default_keyspace().clear()
    }

    /// Estimates the number of keys in a range of the default keyspace. See
    /// [`Keyspace::approximate_len`].
    ///
    /// # Errors
    /// The index of a table could not be read, or the database was closed.
    #[doc(alias("len", "count", "estimate_num_keys"))]
    pub fn approximate_len(&self, range: impl KeyBounds) -> Result<u64> {
        self.default_keyspace().approximate_len(range)
    }
}

impl Transaction {
    /// Removes all keys.
    pub fn clear(&mut self) {
        self.delete_range(..);
    }

    /// Removes all keys of a keyspace.
    ///
    /// # Errors
    /// The keyspace belongs to another database.
    pub fn clear_in(&mut self, keyspace: &Keyspace) -> Result<()> {
        self.delete_range_in(keyspace, ..)
    }
}
