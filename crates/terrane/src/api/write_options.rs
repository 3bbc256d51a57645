//! Options of one write.

use std::time::Duration;

use crate::base::durability::Durability;
use crate::base::error::{Error, Result};

/// Options of one write.
///
/// ```
/// # use terrane::{Durability, WriteOptions};
/// # use std::time::Duration;
/// let options = WriteOptions::new().durability(Durability::Sync);
/// let session = WriteOptions::new().ttl(Duration::from_secs(3600));
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    durability: Option<Durability>,
    ttl: Option<Duration>,
}

impl WriteOptions {
    /// Returns options with the durability of the database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the durability of the write.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use terrane::{Durability, WriteOptions};
    /// db.put_with("order", "paid", WriteOptions::new().durability(Durability::Sync))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Makes the value expire this long after the write; the time is rounded down to microseconds.
    /// From then on the key has no value, in lookups and iterators and for
    /// [`Db::update`](crate::Db::update), and a compaction drops it. [`Duration::MAX`] means no
    /// expiry, even in a keyspace with a [default](crate::Keyspace::set_ttl).
    ///
    /// This applies only to the put of one key. For batches and transactions see
    /// [`WriteBatch::put_with_ttl`](crate::WriteBatch::put_with_ttl) and
    /// [`Transaction::put_with_ttl`](crate::Transaction::put_with_ttl).
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use std::time::Duration;
    /// use terrane::WriteOptions;
    /// db.put_with("session", "9f2c", WriteOptions::new().ttl(Duration::from_secs(3600)))?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    #[doc(alias = "expire")]
    #[doc(alias = "expiry")]
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.ttl = Some(ttl);
        self
    }

    pub(crate) fn ttl_of_put(&self) -> Option<Duration> {
        self.ttl
    }

    /// Refuses a time to live for a write that is not the put of one key.
    pub(crate) fn check_no_ttl(&self, write: &str) -> Result<()> {
        match self.ttl {
            None => Ok(()),
            Some(_) => {
                let found = format!("set for {write}");
                Err(Error::invalid("ttl", found, "set for the put of one key, or in the batch"))
            }
        }
    }

    pub(crate) fn durability_or(&self, default: Durability) -> Durability {
        self.durability.unwrap_or(default)
    }
}
