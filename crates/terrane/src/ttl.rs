//! The default time to live of the values of a keyspace.

use std::time::Duration;

use crate::error::Result;
use crate::keyspace::Keyspace;

impl Keyspace {
    /// Ends the values of later puts after this time, unless they have a
    /// [time of their own](crate::WriteOptions::ttl); `None` ends them never. Values that were put before
    /// stay as they are, and so do [operands](Self::merge): a counter in such a keyspace never ends. The
    /// setting is stored with the keyspace. `db.keyspace("default", …)` is the keyspace of the methods of
    /// [`Db`](crate::Db).
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
        self.handle.engine.catalog().set_ttl(&self.tree, ttl)
    }

    /// Returns the time after which the values of puts end; `None` if they do not.
    #[inline]
    pub fn ttl(&self) -> Option<Duration> {
        self.tree.default_ttl().get().map(Duration::from_micros)
    }
}
