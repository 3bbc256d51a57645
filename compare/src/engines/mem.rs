//! The calibration engine: a map in memory, without a log or files.

use terrane_workload::MemStore;

use super::engine::{Budget, Engine, Storage};
use crate::settings::Compression;

pub(super) const ENGINE: Engine = Engine {
    name: "mem",
    open: |_, _| Ok(Box::new(MemStore::new())),
    version: || {
        format!(
            "std BTreeMap, terrane-workload {}",
            super::lock_file::version_of("terrane-workload")
        )
    },
    promise: "survives nothing",
    storage: Storage::Memory,
    compressions: &[Compression::None],
    budget: Budget::Ignored,
    can_bypass_cache: false,
};
