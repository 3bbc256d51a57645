//! The engines to compare. Each has a file in this module and a line in [`ALL`].
//!
//! To add one, write `engines/NAME.rs` with an [`Engine`] constant whose `open` returns a
//! [`Store`](terrane_workload::Store), give it a feature in `Cargo.toml`, and add its two lines here.
// Items that only some engines use are unused in builds without those.
#![cfg_attr(not(feature = "default"), allow(dead_code, unused_imports))]

mod engine;
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

pub(crate) use engine::{Budget, Engine, Storage};
#[cfg(feature = "leveldb")]
pub(crate) use leveldb::SmallTables;
pub(crate) use lock_file::version_of;

/// Every engine in this build, in the order of the tables.
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

/// Returns the engine called `name`.
pub(crate) fn by_name(name: &str) -> Option<&'static Engine> {
    ALL.iter().find(|engine| engine.name == name)
}

#[cfg(test)]
mod conformance;
