//! Runs a function until its transaction succeeds.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::{Transaction, TransactionOptions};
use crate::api::db::Db;
use crate::base::error::{Error, Result};

/// The number of conflicts after which a transaction goes first.
const CONFLICTS_BEFORE_PASS: u32 = 8;

/// The longest mean pause after a conflict.
const PAUSE_MAX: Duration = Duration::from_millis(5);

impl Db {
    /// Runs `function` with a serializable transaction and commits it. If the transaction conflicts with
    /// another write, the function runs again, with a new transaction.
    ///
    /// The function may run several times, so it should change nothing but the transaction. If it returns
    /// an error, that is the result, and nothing is written.
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// let number = db.transaction(|tx| {
    ///     let last = tx.get("orders")?.map_or(0, |value| value.len());
    ///     tx.put("orders", "x".repeat(last + 1));
    ///     Ok(last + 1)
    /// })?;
    /// assert_eq!(number, 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// - [`Conflict`](crate::ErrorKind::Conflict): every attempt conflicted with another write.
    /// - Those of the function, and of [`Db::write`].
    pub fn transaction<T>(&self, function: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.transaction_with(TransactionOptions::new(), function)
    }

    /// Does the same as [`Db::transaction`], with options. The error of the function may be of any type
    /// that has a conversion from [`Error`].
    ///
    /// ```
    /// # fn main() -> terrane::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = terrane::Db::open(dir.path())?;
    /// use terrane::{Isolation, TransactionOptions};
    /// let options = TransactionOptions::new().isolation(Isolation::Snapshot).attempts(3);
    /// db.transaction_with(options, |tx| -> terrane::Result<()> {
    ///     tx.put("key", "value");
    ///     Ok(())
    /// })?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// See [`Db::transaction`].
    pub fn transaction_with<T, E: From<Error>>(
        &self,
        options: TransactionOptions,
        mut function: impl FnMut(&mut Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut conflicts = 0;
        loop {
            // Taken before the snapshot, so that no other transaction commits in between.
            let gate = &self.default_keyspace().handle.gate;
            let pass = if conflicts < CONFLICTS_BEFORE_PASS { None } else { gate.take() };
            let mut transaction = self.begin_with(options);
            transaction.pass = pass;
            let value = function(&mut transaction)?;
            match transaction.commit() {
                Ok(()) => return Ok(value),
                Err(Error::Conflict { .. }) => conflicts += 1,
                Err(error) => return Err(error.into()),
            }
            if conflicts >= options.attempts {
                return Err(Error::Conflict { attempts: conflicts }.into());
            }
            pause(conflicts);
        }
    }
}

/// Waits for a random time, whose mean doubles with each conflict.
fn pause(conflicts: u32) {
    let mean = Duration::from_micros(5 << conflicts.min(16)).min(PAUSE_MAX);
    let nanos = u64::try_from(2 * mean.as_nanos()).unwrap_or(u64::MAX);
    // Each state hashes the same number differently.
    let random = RandomState::new().hash_one(conflicts);
    std::thread::sleep(Duration::from_nanos(random % nanos));
}
