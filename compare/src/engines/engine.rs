//! An engine that can be compared.

use std::path::Path;

use terrane_workload::{Store, StoreError};

use crate::settings::{Compression, Settings};

/// The guarantee that a comparison configures for unsynced writes.
pub(super) const SURVIVES_PROCESS: &str = "survives the death of the process";

type Open = fn(&Path, &Settings) -> Result<Box<dyn Store>, StoreError>;

/// An engine that can be compared.
pub(crate) struct Engine {
    /// The name on the command line and in tables.
    pub(crate) name: &'static str,
    /// Opens a new database in an empty directory.
    pub(crate) open: Open,
    /// Returns the versions of the engine and of its library.
    pub(crate) version: fn() -> String,
    /// The guarantee of an unsynced write, in words.
    pub(crate) promise: &'static str,
    /// The place of its data.
    pub(crate) storage: Storage,
    /// The supported compressions.
    pub(crate) compressions: &'static [Compression],
    /// Its support for a write budget.
    pub(crate) budget: Budget,
}

/// An engine's support for a budget for flushes and compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    /// A limiter for both together.
    Kept,
    /// No limiter: it writes as fast as it can.
    Ignored,
}

/// The place of an engine's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In files, so the data survives reopening.
    Files,
    /// In memory, so closing the database discards the data.
    Memory,
}
