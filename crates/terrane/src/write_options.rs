//! How one write is made.

use crate::durability::Durability;

/// How one write is made.
///
/// ```
/// # use terrane::{Durability, WriteOptions};
/// let options = WriteOptions::new().durability(Durability::Sync);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteOptions {
    durability: Option<Durability>,
}

impl WriteOptions {
    /// As the database was opened.
    pub fn new() -> Self {
        Self::default()
    }

    /// What the write survives once the call returns.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    pub(crate) fn durability_or(&self, default: Durability) -> Durability {
        self.durability.unwrap_or(default)
    }
}
