//! Expiry in a keyspace: the default time to live, and the expiry times of values.

use std::time::Duration;

use crate::api::keyspace::Keyspace;
use crate::base::error::Result;
use crate::files::value::Value;

impl Keyspace {
    /// Lets the values of later puts expire after this time, unless they have a
    /// [time of their own](crate::WriteOptions::ttl); `None` means no expiry. Values put earlier stay as
    /// they are, and so do [operands](Self::merge): a counter in such a keyspace never expires.
    /// The setting is stored with the keyspace. `db.keyspace("default", …)` opens the keyspace that the
    /// methods of [`Db`](crate::Db) use.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use std::time::Duration;
    ///
    /// let sessions = db.keyspace("sessions", terrane::KeyspaceOptions::new())?;
    /// sessions.set_ttl(Some(Duration::from_secs(3600)))?;
    /// sessions.put("token", "alice")?;
    /// assert_eq!(sessions.get("token")?.unwrap(), "alice");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The keyspace was dropped, or the database does not accept writes.
    pub fn set_ttl(&self, ttl: Option<Duration>) -> Result<()> {
        self.handle.engine.catalog.set_ttl(&self.tree, ttl)
    }

    /// Returns the time after which the values of puts expire; `None` if they do not.
    #[inline]
    pub fn ttl(&self) -> Option<Duration> {
        self.tree.default_ttl().get().map(Duration::from_micros)
    }

    /// Returns false if no stored value expires, for example to decide the columns of an export. True is a
    /// possibility: the values that expire may have been overwritten or deleted. Reads nothing.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use std::time::Duration;
    /// use terrane::WriteOptions;
    ///
    /// let keyspace = db.default_keyspace();
    /// keyspace.put("name", "Ada")?;
    /// assert!(!keyspace.may_expire());
    /// keyspace.put_with("token", "x", WriteOptions::new().ttl(Duration::from_secs(60)))?;
    /// assert!(keyspace.may_expire());
    /// # Ok(())
    /// # }
    /// ```
    pub fn may_expire(&self) -> bool {
        self.tree.state().may_expire()
    }

    /// Returns the value of a key and its expiry time in microseconds since the Unix epoch, which is `None`
    /// if the value does not expire.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use std::time::Duration;
    /// use terrane::WriteOptions;
    ///
    /// let keyspace = db.default_keyspace();
    /// keyspace.put("name", "Ada")?;
    /// keyspace.put_with("token", "x", WriteOptions::new().ttl(Duration::from_secs(60)))?;
    /// assert_eq!(keyspace.get_with_expiry("name")?.unwrap().1, None);
    /// let (value, expires_at) = keyspace.get_with_expiry("token")?.unwrap();
    /// assert_eq!(value, "x");
    /// assert!(expires_at.is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    pub fn get_with_expiry(&self, key: impl AsRef<[u8]>) -> Result<Option<(Value, Option<u64>)>> {
        self.handle.engine.reader.get_with_expiry(&self.tree, key.as_ref(), None)
    }

    /// Returns the values of several keys, in the order of the keys, from one snapshot, each with its
    /// expiry time as [`get_with_expiry`](Self::get_with_expiry) returns it. Like
    /// [`multi_get`](Self::multi_get), it overlaps the waits of the lookups.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use std::time::Duration;
    /// use terrane::WriteOptions;
    ///
    /// let keyspace = db.default_keyspace();
    /// keyspace.put("name", "Ada")?;
    /// keyspace.put_with("token", "x", WriteOptions::new().ttl(Duration::from_secs(60)))?;
    /// let found = keyspace.multi_get_with_expiry(["token", "name", "none"])?;
    /// let expires = |found: &Option<(_, Option<u64>)>| found.as_ref().map(|found| found.1.is_some());
    /// assert_eq!(found.iter().map(expires).collect::<Vec<_>>(), [Some(true), Some(false), None]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// A table could not be read, or the database was closed.
    #[expect(clippy::type_complexity, reason = "an alias would hide what `get_with_expiry` shows")]
    pub fn multi_get_with_expiry<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<(Value, Option<u64>)>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        self.handle.engine.reader.multi_get_with_expiry(&self.tree, &keys, None)
    }
}
