//! Writes to a keyspace.

use super::Keyspace;
use crate::api::write_options::WriteOptions;
use crate::base::error::Result;
use crate::base::expiry::{expiry_after, stored};
use crate::base::range::{KeyBounds, bounds_of};
use crate::engine::Write;
use crate::files::batch::Op;

impl Keyspace {
    /// Sets the value of a key, as [`Db::put`](crate::Db::put) does in the default keyspace; see there for the cost.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// assert_eq!(users.get("1")?.unwrap(), "Ada");
    /// // Keys of different keyspaces are independent.
    /// assert_eq!(db.get("1")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    #[doc(alias("insert", "set", "upsert"))]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_with(key, value, WriteOptions::new())
    }

    /// Sets the value of a key, with a durability or a time to live for this write.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// use terrane::{Durability, WriteOptions};
    /// users.put_with("1", "Ada", WriteOptions::new().durability(Durability::Sync))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        options: WriteOptions,
    ) -> Result<()> {
        let (key, value) = (key.as_ref(), value.as_ref());
        let Some(ttl) = options.ttl_of_put().or_else(|| self.ttl()) else {
            return self.write_one(Op::Put { key, value }, options);
        };
        let stored = stored(expiry_after(&*self.handle.engine.context.clock, ttl), value);
        self.write_one(Op::PutExpiring { key, stored: &stored }, options)
    }

    /// Removes a key. A key that does not exist is not an error.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// users.delete("1")?;
    /// assert!(users.is_empty()?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    #[doc(alias("remove", "erase", "del"))]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(Op::Delete { key: key.as_ref() }, WriteOptions::new())
    }

    /// Removes a key, with a durability for this write.
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: WriteOptions) -> Result<()> {
        options.check_no_ttl("a delete")?;
        self.write_one(Op::Delete { key: key.as_ref() }, options)
    }

    /// Removes all keys of a range, at the cost of one put; see [`Db::delete_range`](crate::Db::delete_range).
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// # let users = db.keyspace("users", terrane::KeyspaceOptions::new())?;
    /// users.put("1", "Ada")?;
    /// users.put("2", "Grace")?;
    /// users.delete_range(.."2")?;
    /// assert_eq!(users.first()?.unwrap().0, "2");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::write`](crate::Db::write).
    #[doc(alias = "remove_range")]
    pub fn delete_range(&self, range: impl KeyBounds) -> Result<()> {
        let (start, end) = bounds_of(&range);
        if end.as_ref().is_some_and(|end| *end <= start) {
            return Ok(());
        }
        let op = Op::DeleteRange { start: &start, end: end.as_deref() };
        self.write_one(op, WriteOptions::new())
    }

    pub(crate) fn write_one(&self, op: Op<'_>, options: WriteOptions) -> Result<()> {
        let engine = &self.handle.engine;
        engine.writer.write(
            Write::One(&self.tree, op),
            options.durability_or(engine.context.settings.durability),
        )
    }
}
