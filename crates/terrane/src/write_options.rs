//! Options of one write.

use crate::durability::Durability;

/// Options of one write.
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
    /// Returns options with the durability of the database.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the durability of the write.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    pub(crate) fn durability_or(&self, default: Durability) -> Durability {
        self.durability.unwrap_or(default)
    }
}
