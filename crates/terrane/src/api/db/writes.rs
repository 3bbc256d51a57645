//! Writes to the default keyspace, and batches.

use super::Db;
use crate::api::write_batch::WriteBatch;
use crate::api::write_options::WriteOptions;
use crate::base::error::Result;
use crate::base::range::KeyBounds;
use crate::engine::Write;

impl Db {
    /// Sets the value of a key.
    ///
    /// Returns once every reader sees the value and it has the [durability](crate::Durability) of the database;
    /// [`Db::put_with`] chooses another durability or a time to live. To change several keys at once, use a
    /// [`WriteBatch`].
    ///
    /// **Cost:** copies key and value into the log and the memtable, which takes less than a microsecond for short
    /// values. With the default durability a put makes no system call on ext4 and tmpfs, and one on other file systems.
    /// Puts of several threads run concurrently. A put waits while the tree is so far behind with flushes and
    /// compactions that the design stops or delays writers; [`Db::stats`] counts these waits and
    /// [`Event::WritesStalled`](crate::Event::WritesStalled) names their cause.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("user:1", "Ada")?;
    /// db.put("user:1", "Ada Lovelace")?;
    /// assert_eq!(db.get("user:1")?.unwrap(), "Ada Lovelace");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Invalid`](crate::ErrorKind::Invalid): the key is longer than 64 KiB, the value is longer than 1 GiB, or
    ///   the database is open read-only.
    /// - All other errors of [`Db::write`].
    #[doc(alias("insert", "set", "upsert"))]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.default.put(key, value)
    }

    /// Sets the value of a key, with a durability or a time to live for this write. See [`Db::put`] for the cost;
    /// [`Durability::Sync`](crate::Durability::Sync) adds a wait for a sync of the log, which concurrent writers share.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use std::time::Duration;
    /// use terrane::{Durability, WriteOptions};
    ///
    /// db.put_with("order:7", "paid", WriteOptions::new().durability(Durability::Sync))?;
    /// db.put_with("session:9", "Ada", WriteOptions::new().ttl(Duration::from_secs(3600)))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::write`].
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        self.default.put_with(key, value, options)
    }

    /// Removes a key. A key that does not exist is not an error.
    ///
    /// **Cost:** that of a put without a value. The delete writes a tombstone, which compactions drop once no older
    /// version of the key is left. To remove many adjacent keys, use [`Db::delete_range`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("apple", "red")?;
    /// db.delete("apple")?;
    /// assert_eq!(db.get("apple")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::write`].
    #[doc(alias("remove", "erase", "del"))]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.default.delete(key)
    }

    /// Removes a key, with a durability for this write.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use terrane::{Durability, WriteOptions};
    ///
    /// db.delete_with("apple", WriteOptions::new().durability(Durability::Sync))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Invalid`](crate::ErrorKind::Invalid): the options have a time to live.
    /// - All other errors of [`Db::write`].
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: WriteOptions) -> Result<()> {
        self.default.delete_with(key, options)
    }

    /// Removes all keys of a range.
    ///
    /// **Cost:** that of one put, whatever the number of keys: the range is one tombstone. Reads of the range skip the
    /// deleted keys until a compaction has dropped them.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("user:1", "Ada")?;
    /// db.put("user:2", "Grace")?;
    /// db.delete_range("user:".."user:2")?;
    /// assert_eq!(db.iter()?.count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::write`].
    #[doc(alias = "remove_range")]
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        self.default.delete_range(range)
    }

    /// Applies a batch atomically, with the durability of the database. Readers see all of its operations or none of
    /// them, even after a crash.
    ///
    /// Returns once every reader sees the changes and they have the requested durability.
    ///
    /// **Cost:** one record in the log for the whole batch, hence less per key than a put; see [`Db::put`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let mut batch = terrane::WriteBatch::new();
    /// batch.put("from", "90").put("to", "110").delete("pending");
    /// db.write(&batch)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Invalid`](crate::ErrorKind::Invalid): a key, a value or the batch is too long, a keyspace
    ///   was dropped or belongs to another database, or the database is open read-only.
    /// - [`Io`](crate::ErrorKind::Io): the disk is full, or the operating system refused an
    ///   operation. Nothing changed.
    /// - [`Poisoned`](crate::ErrorKind::Poisoned): a sync failed, or the lock file was removed while
    ///   the database was open. The changes may exist after the database is opened again.
    /// - [`Corruption`](crate::ErrorKind::Corruption): writers are stopped, and an unreadable table
    ///   prevents the compaction that would resume them. Nothing changed.
    /// - [`Closed`](crate::ErrorKind::Closed): the database was closed.
    #[doc(alias("apply", "apply_batch", "commit"))]
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, WriteOptions::new())
    }

    /// Applies a batch atomically, with a durability for this write.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use terrane::{Durability, WriteBatch, WriteOptions};
    ///
    /// let mut batch = WriteBatch::new();
    /// batch.put("from", "90").put("to", "110");
    /// db.write_with(&batch, WriteOptions::new().durability(Durability::Sync))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Invalid`](crate::ErrorKind::Invalid): the options have a time to live; give it to
    ///   [`WriteBatch::put_with_ttl`] instead.
    /// - All other errors of [`Db::write`].
    pub fn write_with(&self, batch: &WriteBatch, options: WriteOptions) -> Result<()> {
        let engine = self.engine();
        batch.check_of(engine)?;
        options.check_no_ttl("a batch")?;
        let operations = engine.prepared(&batch.operations)?;
        engine.writer.write(
            Write::Batch(&operations),
            options.durability_or(engine.context.settings.durability),
        )
    }
}
