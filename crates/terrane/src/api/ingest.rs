//! Ingests: sorted data that becomes tables without passing through the log and memtables.

use std::sync::Arc;

use crate::api::db::Db;
use crate::api::handle::Handle;
use crate::api::keyspace::Keyspace;
use crate::base::error::Result;
use crate::engine::IngestTables;

/// Sorted entries that are written to tables and added to a keyspace at once.
///
/// The tables are written alongside the database while it is in use, and nobody sees them before
/// [`Self::commit`], which applies all entries as one write: they replace the values that keys have at
/// that moment, snapshots and transactions that began before do not see them, and later writes replace
/// them. No compaction rewrites an entry until its table shares keys with other tables, because each
/// table is placed at the deepest level above which no table shares its keys.
///
/// A committed ingest survives a power failure, and so does every earlier write that is in the log,
/// whatever its durability. An ingest that is dropped without a commit, or that a crash interrupts,
/// leaves no trace.
///
/// Its writes count against the [I/O budget](crate::IoBudget), so calls may wait for it. A commit is
/// reported as [`Event::TablesIngested`](crate::Event::TablesIngested).
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// let mut ingest = db.default_keyspace().begin_ingest()?;
/// for number in 0..1000_u32 {
///     ingest.put(number.to_be_bytes(), "value")?;
/// }
/// ingest.commit()?;
/// assert_eq!(db.get(7_u32.to_be_bytes())?.unwrap(), "value");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[doc(alias("bulk load", "bulk_load", "SstFileWriter", "IngestExternalFile"))]
pub struct Ingest {
    // Dropped first, while the database is still open.
    tables: IngestTables,
    handle: Arc<Handle>,
}

impl Ingest {
    /// Adds an entry. If the keyspace has a [time to live](Keyspace::set_ttl), it counts from now.
    ///
    /// # Errors
    /// - [`NotAscending`](crate::Error::NotAscending): the key is not above the key before it. The ingest
    ///   can continue without the entry.
    /// - [`Invalid`](crate::ErrorKind::Invalid): the key or the value is too long. The ingest can continue
    ///   without the entry.
    /// - Any other error: the disk is full, the operating system refused an operation, or the database
    ///   does not accept writes or was closed while the call waited for the I/O budget. Later calls return
    ///   the error as well.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.tables.add(key.as_ref(), value.as_ref(), None)
    }

    /// Adds an entry whose value expires at a time, in microseconds since the Unix epoch.
    ///
    /// # Errors
    /// See [`Ingest::put`].
    pub fn put_with_expiry(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires_at_micros: u64,
    ) -> Result<()> {
        self.tables.add(key.as_ref(), value.as_ref(), Some(expires_at_micros))
    }

    /// Returns the number of entries.
    pub fn len(&self) -> u64 {
        self.tables.entries()
    }

    /// Returns true if the ingest has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds all entries to the keyspace. Returns once they are durable and visible.
    ///
    /// The memtables of the keyspace are flushed first. Other writers wait, usually for milliseconds, while
    /// the last writes before the ingest are flushed and a manifest edit is synced.
    ///
    /// # Errors
    /// The disk is full, the operating system refused an operation, the keyspace was dropped, the
    /// database does not accept writes, or an event listener called this. No entry was added. If the
    /// manifest could not be synced, the entries may exist after the database is opened again.
    pub fn commit(self) -> Result<()> {
        self.handle.engine.commit_ingest(self.tables)
    }
}

impl Keyspace {
    /// Begins an ingest of sorted entries into the keyspace.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let mut ingest = db.default_keyspace().begin_ingest()?;
    /// for number in 0..1000_u32 {
    ///     ingest.put(number.to_be_bytes(), "value")?;
    /// }
    /// ingest.commit()?;
    /// assert_eq!(db.iter()?.count(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The keyspace was dropped, its design discards memtables, or the database does not accept writes.
    pub fn begin_ingest(&self) -> Result<Ingest> {
        let tables = self.handle.engine.jobs.begin_ingest(&self.tree)?;
        Ok(Ingest { tables, handle: Arc::clone(&self.handle) })
    }

    /// Adds sorted entries as one write, and returns their number. See [`Ingest`].
    ///
    /// # Errors
    /// Those of [`Ingest::put`] and [`Ingest::commit`]. No entry was added.
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        let mut ingest = self.begin_ingest()?;
        for (key, value) in entries {
            ingest.put(key, value)?;
        }
        let count = ingest.len();
        ingest.commit()?;
        Ok(count)
    }
}

impl Db {
    /// Adds sorted entries to the default keyspace as one write, and returns their number. See
    /// [`Ingest`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// assert_eq!(db.ingest([("apple", "red"), ("banana", "yellow")])?, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Keyspace::ingest`].
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
    ) -> Result<u64> {
        self.default_keyspace().ingest(entries)
    }
}
