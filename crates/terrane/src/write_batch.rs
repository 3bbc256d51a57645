//! Writes that happen together or not at all.

use std::ops::RangeBounds;

use crate::batch::{Batch, Op};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::keyspace::Keyspace;
use crate::range::bounds_of;
use crate::types::{DEFAULT_KEYSPACE, KeyspaceId};

/// Operations that are written together or not at all, to any keyspaces.
///
/// Later operations of a batch take precedence over earlier ones on the same key. A batch is given
/// to [`Db::write`](crate::Db::write), and can be used again: by the database whose keyspaces were
/// given to it, as long as that is open, or by any if there were none.
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
    /// The opening of a database that the given keyspaces are of.
    engine: Option<u64>,
}

impl WriteBatch {
    /// A batch without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the value of a key.
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        let (key, value) = (key.as_ref(), value.as_ref());
        self.add(DEFAULT_KEYSPACE, Op::Put { key, value })
    }

    /// Removes a key, whether it is there or not.
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> &mut Self {
        self.add(DEFAULT_KEYSPACE, Op::Delete { key: key.as_ref() })
    }

    /// Removes all keys of a range.
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, range: impl RangeBounds<K>) -> &mut Self {
        self.add_range(DEFAULT_KEYSPACE, range)
    }

    /// Sets the value of a key of a keyspace.
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
    pub fn delete_in(&mut self, keyspace: &Keyspace, key: impl AsRef<[u8]>) -> &mut Self {
        self.of(keyspace).add(keyspace.id(), Op::Delete { key: key.as_ref() })
    }

    /// Removes all keys of a range of a keyspace.
    pub fn delete_range_in<K: AsRef<[u8]>>(
        &mut self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
    ) -> &mut Self {
        self.of(keyspace).add_range(keyspace.id(), range)
    }

    /// Refuses the batch if it is of two databases.
    fn of(&mut self, keyspace: &Keyspace) -> &mut Self {
        let number = keyspace.handle.engine.number;
        if *self.engine.get_or_insert(number) != number {
            self.operations.refuse(keyspace.foreign());
        }
        self
    }

    /// Refuses a batch with keyspaces of another database, or of another opening of this one.
    pub(crate) fn check_of(&self, engine: &Engine) -> Result<()> {
        if self.engine.is_none_or(|number| number == engine.number) {
            return Ok(());
        }
        let found = "with keyspaces of another database, or of another opening of this one";
        Err(Error::invalid("batch", found, "with keyspaces of this database"))
    }

    fn add(&mut self, keyspace: KeyspaceId, op: Op<'_>) -> &mut Self {
        self.operations.add(keyspace, op);
        self
    }

    fn add_range<K: AsRef<[u8]>>(
        &mut self,
        keyspace: KeyspaceId,
        range: impl RangeBounds<K>,
    ) -> &mut Self {
        let (start, end) = bounds_of(&range);
        // A range without keys deletes nothing.
        if end.as_ref().is_none_or(|end| start < *end) {
            let op = Op::DeleteRange { start: &start, end: end.as_deref() };
            self.add(keyspace, op);
        }
        self
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there are no operations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all operations, and keeps the memory.
    pub fn clear(&mut self) {
        self.operations.clear();
        self.engine = None;
    }
}
