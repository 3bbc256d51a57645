//! Options of transactions.

use crate::base::durability::Durability;

/// What a transaction is protected from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Isolation {
    /// The transaction happens as if no other write happened between its beginning and its end: it
    /// conflicts with every write since its beginning to a key that it read, or to a range in which it
    /// searched.
    #[default]
    Serializable,
    /// The transaction reads from a snapshot, and conflicts only with writes to keys that it writes
    /// itself. Two transactions that each read what the other one writes can both succeed (*write
    /// skew*).
    Snapshot,
}

/// Options of a transaction.
///
/// ```
/// # use terrane::{Durability, Isolation, TransactionOptions};
/// let options = TransactionOptions::new().isolation(Isolation::Snapshot).attempts(10);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransactionOptions {
    pub(crate) isolation: Isolation,
    pub(crate) durability: Option<Durability>,
    pub(crate) attempts: u32,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        Self { isolation: Isolation::default(), durability: None, attempts: 100 }
    }
}

impl TransactionOptions {
    /// Returns options of a serializable transaction with the durability of the database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the isolation.
    #[must_use]
    pub fn isolation(mut self, isolation: Isolation) -> Self {
        self.isolation = isolation;
        self
    }

    /// Sets the durability of the commit.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Sets how often [`Db::transaction`](crate::Db::transaction) runs its function before it returns
    /// [`Error::Conflict`](crate::Error::Conflict); 100 unless set, and at least once.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Self {
        self.attempts = attempts.max(1);
        self
    }
}
