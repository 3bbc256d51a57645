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
    /// What the engine guarantees for an unsynced write, in words.
    pub(crate) promise: &'static str,
    /// Where the engine keeps its data.
    pub(crate) storage: Storage,
    /// The compressions that the engine supports.
    pub(crate) compressions: &'static [Compression],
    /// Whether the engine can keep to a write budget.
    pub(crate) budget: Budget,
    /// Whether the engine can bypass the page cache.
    pub(crate) can_bypass_cache: bool,
}

/// Whether an engine keeps to a write budget for flushes and compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    /// The engine has one limiter for flushes and compactions together.
    Kept,
    /// The engine has no limiter, so it writes as fast as it can.
    Ignored,
}

/// Where an engine keeps its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In files, so the data survives reopening.
    Files,
    /// In memory, so closing the database discards the data.
    Memory,
}
