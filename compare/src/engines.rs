//! The engines to compare: each has a line in [`ALL`] and a file in this module.
//!
//! To add one: write `engines/NAME.rs` with an [`Engine`] constant whose `open` answers with an
//! implementation of [`Store`], give it a feature in `Cargo.toml`, and add its two lines here.
// What only some engines use is unused in builds without them.
#![cfg_attr(not(feature = "default"), allow(dead_code))]

#[cfg(feature = "fjall")]
mod fjall;
mod idle;
#[cfg(feature = "leveldb")]
mod leveldb;
#[cfg(feature = "lmdb")]
mod lmdb;
mod lock_file;
mod mem;
#[cfg(feature = "redb")]
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod terrane;

use std::path::Path;

use terrane_workload::{Store, StoreError};

use crate::settings::{Compression, Settings};

type Open = fn(&Path, &Settings) -> Result<Box<dyn Store>, StoreError>;

/// An engine that can be compared.
pub(crate) struct Engine {
    /// What it is called on the command line and in tables.
    pub(crate) name: &'static str,
    /// Opens a new database in an empty folder.
    pub(crate) open: Open,
    /// Its version, and that of the library below it.
    pub(crate) version: fn() -> String,
    /// What a write that was not synced promises, in words.
    pub(crate) promise: &'static str,
    /// Where it keeps its data.
    pub(crate) storage: Storage,
    /// The compressions that it can be asked for.
    pub(crate) compressions: &'static [Compression],
    /// Whether it can be given a budget.
    pub(crate) budget: Budget,
}

/// Whether an engine keeps to a budget for flushes and compactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    /// It has a limiter for both together.
    Kept,
    /// It has none: it writes as fast as it can.
    Ignored,
}

/// Where an engine keeps its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In files: a database that is opened again has what it had.
    Files,
    /// In memory: a database that is closed is gone.
    Memory,
}

/// Every engine that was built, in the order of the tables.
pub(crate) const ALL: &[Engine] = &[
    terrane::ENGINE,
    #[cfg(feature = "rocksdb")]
    rocksdb::ENGINE,
    #[cfg(feature = "leveldb")]
    leveldb::ENGINE,
    #[cfg(feature = "fjall")]
    fjall::ENGINE,
    #[cfg(feature = "lmdb")]
    lmdb::ENGINE,
    #[cfg(feature = "redb")]
    redb::ENGINE,
    mem::ENGINE,
];

/// The engine called `name`.
pub(crate) fn by_name(name: &str) -> Option<&'static Engine> {
    ALL.iter().find(|engine| engine.name == name)
}

/// The promise that the settings of a comparison ask for, kept.
const SURVIVES_PROCESS: &str = "survives the death of the process";

#[cfg(test)]
mod conformance;
