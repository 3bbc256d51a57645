//! Transactions on one key: changes that depend on its value.

use super::{Transaction, TransactionOptions};
use crate::api::db::Db;
use crate::api::keyspace::Keyspace;
use crate::base::error::Result;
use crate::files::value::Value;

impl Db {
    /// Changes the value of a key to what `function` returns for the current value; `None` means no value.
    /// Returns the new value.
    ///
    /// The function runs again if another write to the key intervenes.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let add_one = |old: Option<&[u8]>| {
    ///     let count = old.and_then(|old| old.try_into().ok()).map_or(0, u64::from_le_bytes);
    ///     Some((count + 1).to_le_bytes().to_vec())
    /// };
    /// db.update("visits", add_one)?;
    /// assert_eq!(db.update("visits", add_one)?.unwrap(), 2_u64.to_le_bytes());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::transaction`].
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        function: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Value>> {
        self.default_keyspace().update(key, function)
    }

    /// Sets the value of a key to `new` if the current value is `expected`; `None` means no value.
    /// Returns whether it was set. The comparison and the write are atomic.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// db.put("leader", "a")?;
    /// assert!(db.compare_and_swap("leader", Some("a"), Some("b"))?);
    /// assert!(!db.compare_and_swap("leader", Some("a"), Some("c"))?);
    /// assert_eq!(db.get("leader")?.unwrap(), "b");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::transaction`].
    pub fn compare_and_swap<O: AsRef<[u8]>, N: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<O>,
        new: Option<N>,
    ) -> Result<bool> {
        self.default_keyspace().compare_and_swap(key, expected, new)
    }

    /// Sets the value of a key unless it has one. Returns whether the value was set.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// assert!(db.put_if_absent("lock", "worker 1")?);
    /// assert!(!db.put_if_absent("lock", "worker 2")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::transaction`].
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.default_keyspace().put_if_absent(key, value)
    }
}

impl Keyspace {
    /// Changes the value of a key to what `function` returns for the current value, as [`Db::update`]
    /// does.
    ///
    /// # Errors
    /// See [`Db::transaction`].
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        mut function: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Value>> {
        let key = key.as_ref();
        self.on_key(|tx| {
            let old = tx.get_in(self, key)?;
            let new = function(old.as_deref());
            match &new {
                Some(new) => tx.put_in(self, key, new)?,
                None if old.is_some() => tx.delete_in(self, key)?,
                None => {}
            }
            Ok(new.map(|new| Value::from(&new[..])))
        })
    }

    /// Sets the value of a key to `new` if it is `expected`, as [`Db::compare_and_swap`] does.
    ///
    /// # Errors
    /// See [`Db::transaction`].
    #[expect(clippy::needless_pass_by_value, reason = "literals need no reference")]
    pub fn compare_and_swap<O: AsRef<[u8]>, N: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<O>,
        new: Option<N>,
    ) -> Result<bool> {
        let key = key.as_ref();
        self.on_key(|tx| {
            let old = tx.get_in(self, key)?;
            if old.as_deref() != expected.as_ref().map(AsRef::as_ref) {
                return Ok(false);
            }
            match &new {
                Some(new) => tx.put_in(self, key, new)?,
                None => tx.delete_in(self, key)?,
            }
            Ok(true)
        })
    }

    /// Sets the value of a key unless it has one. Returns whether the value was set.
    ///
    /// # Errors
    /// See [`Db::transaction`].
    pub fn put_if_absent(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.compare_and_swap(key, None::<&[u8]>, Some(value))
    }

    /// Runs a transaction on one key. Because it is short, it is retried more often than others.
    fn on_key<T>(&self, function: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        let options = TransactionOptions::new().attempts(10_000);
        self.database().transaction_with(options, function)
    }

    /// Returns the database, with this keyspace as the default.
    fn database(&self) -> Db {
        Db::of(self.clone())
    }
}
