//! Atomic batches of writes.

use std::time::Duration;

use crate::api::changes::Change;
use crate::api::keyspace::Keyspace;
use crate::base::error::{Error, Result};
use crate::base::range::{KeyBounds, bounds_of};
use crate::base::types::{DEFAULT_KEYSPACE, KeyspaceId};
use crate::engine::Engine;
use crate::files::batch::{Batch, Op};

/// Operations on one or more keyspaces, applied atomically.
///
/// Later operations of a batch take precedence over earlier ones on the same key.
/// [`Db::write`](crate::Db::write) applies a batch, and may do so more than once. A batch with
/// keyspace operations can be applied only to the opening that its keyspaces belong to; any other
/// batch can be applied to every database.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = terrane::Db::open(dir.path())?;
/// let mut batch = terrane::WriteBatch::new();
/// batch.put("a", "1").delete("b").delete_range("x".."z");
/// db.write(&batch)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct WriteBatch {
    pub(crate) operations: Batch,
    /// The opening that the keyspaces belong to.
    engine: Option<u64>,
}

impl WriteBatch {
    /// Returns an empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key.
    #[doc(alias("insert", "set", "upsert"))]
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.add(DEFAULT_KEYSPACE, Op::Put { key, value })
    }

    /// Removes a key, whether it exists or not.
    #[doc(alias("remove", "erase", "del"))]
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(DEFAULT_KEYSPACE, Op::Delete { key: key.as_ref() })
    }

    /// Removes all keys of a range.
    #[doc(alias = "remove_range")]
    pub fn delete_range(&mut self, range: impl KeyBounds) -> &mut Self {
        self.add_range(DEFAULT_KEYSPACE, range)
    }

    /// Sets the value of a key of a keyspace.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// let mut batch = terrane::WriteBatch::new();
    /// batch.put("users", "1").put_in(&users, "1", "Ada");
    /// db.write(&batch)?;
    /// assert_eq!(users.get("1")?.unwrap(), "Ada");
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias("insert_in", "set_in"))]
    pub fn put_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> &mut Self {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.of(keyspace).add(keyspace.id(), Op::Put { key, value })
    }

    /// Removes a key of a keyspace.
    #[doc(alias = "remove_in")]
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> &mut Self {
        self.of(keyspace).add(keyspace.id(), Op::Delete { key: key.as_ref() })
    }

    /// Removes all keys of a range of a keyspace.
    pub fn delete_range_in(&mut self, keyspace: &Keyspace, range: impl KeyBounds) -> &mut Self {
        self.of(keyspace).add_range(keyspace.id(), range)
    }

    /// Sets the value of a key, which expires when `ttl` has passed since the batch was applied; see
    /// [`WriteOptions::ttl`](crate::WriteOptions::ttl).
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use std::time::Duration;
    /// let mut batch = terrane::WriteBatch::new();
    /// batch.put("user", "Ada").put_with_ttl("session", "9f2c", Duration::from_secs(3600));
    /// db.write(&batch)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn put_with_ttl(
        &mut self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> &mut Self {
        self.operations.add_with_ttl(DEFAULT_KEYSPACE, (key.as_ref(), value.as_ref()), ttl);
        self
    }

    /// Sets the value of a key of a keyspace, which expires after a time, as with [`Self::put_with_ttl`].
    pub fn put_with_ttl_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> &mut Self {
        let pair = (key.as_ref(), value.as_ref());
        self.of(keyspace).operations.add_with_ttl(keyspace.id(), pair, ttl);
        self
    }

    /// Sets the value of a key of a keyspace, which expires at a time in microseconds since the Unix epoch.
    /// A value whose time has passed expires at once. The batch is refused if it also has puts with a
    /// time to live.
    pub fn put_with_expiry_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        expires_at_micros: u64,
    ) -> &mut Self {
        let pair = (key.as_ref(), value.as_ref());
        self.of(keyspace).operations.add_expiring(keyspace.id(), pair, expires_at_micros);
        self
    }

    /// Combines the value of a key with an operand; see [`Keyspace::merge`]. The batch is refused if the
    /// default keyspace has no merge operator.
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> &mut Self {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.add(DEFAULT_KEYSPACE, Op::Merge { key, operand })
    }

    /// Combines the value of a key of a keyspace with an operand, as [`Self::merge`] does.
    pub fn merge_in(
        &mut self,
        keyspace: &Keyspace,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> &mut Self {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.of(keyspace).add(keyspace.id(), Op::Merge { key, operand })
    }

    /// Repeats a change of another database in a keyspace of this one. A value keeps its expiry time.
    ///
    /// The batch is refused if the change is not an operation on keys
    /// ([`Change::NotLogged`](crate::Change::NotLogged)), or if the batch has both repeated values that expire
    /// and puts with a time to live.
    pub fn repeat_in(&mut self, keyspace: &Keyspace, change: &Change<'_>) -> &mut Self {
        let id = keyspace.id();
        self.of(keyspace);
        match *change {
            Change::Put { key, value, expires_at_micros: None, .. } => {
                self.add(id, Op::Put { key, value })
            }
            Change::Put { key, value, expires_at_micros: Some(expires_at), .. } => {
                self.operations.add_expiring(id, (key, value), expires_at);
                self
            }
            Change::Delete { key, .. } => self.add(id, Op::Delete { key }),
            Change::DeleteRange { start, end, .. } => self.add(id, Op::DeleteRange { start, end }),
            Change::Merge { key, operand, .. } => self.add(id, Op::Merge { key, operand }),
            Change::NotLogged => {
                let found = "not an operation on keys";
                self.operations.refuse(Error::invalid("change", found, "a put, delete or merge"));
                self
            }
        }
    }

    /// Puts a value that expires, in its stored form, which includes the expiry time.
    pub(crate) fn put_stored_in(
        &mut self,
        keyspace: &Keyspace,
        key: &[u8],
        stored: &[u8],
    ) -> &mut Self {
        self.of(keyspace).add(keyspace.id(), Op::PutExpiring { key, stored })
    }

    /// Invalidates the batch if its keyspaces belong to two databases.
    fn of(&mut self, keyspace: &Keyspace) -> &mut Self {
        let number = keyspace.handle.engine.context.number;
        if *self.engine.get_or_insert(number) != number {
            self.operations.refuse(keyspace.foreign());
        }
        self
    }

    /// Rejects a batch with keyspaces of another database or of an earlier opening.
    pub(crate) fn check_of(&self, engine: &Engine) -> Result<()> {
        if self.engine.is_none_or(|number| number == engine.context.number) {
            return Ok(());
        }
        let found = "with keyspaces of another database, or of another opening of this one";
        Err(Error::invalid("batch", found, "with keyspaces of this database"))
    }

    fn add(&mut self, keyspace: KeyspaceId, op: Op<'_>) -> &mut Self {
        self.operations.add(keyspace, op);
        self
    }

    fn add_range(&mut self, keyspace: KeyspaceId, range: impl KeyBounds) -> &mut Self {
        let (start, end) = bounds_of(&range);
        // An empty range deletes nothing.
        if end.as_ref().is_none_or(|end| start < *end) {
            let op = Op::DeleteRange { start: &start, end: end.as_deref() };
            self.add(keyspace, op);
        }
        self
    }

    /// Returns the number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Returns true if the batch has no operations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all operations but keeps the allocated memory.
    pub fn clear(&mut self) {
        self.operations.clear();
        self.engine = None;
    }
}
