//! Terrane, built from this source tree, with its defaults except for the settings of the
//! comparison.
//!
//! Tables are read through a buffer manager within the memory budget. One background thread flushes
//! and the others compact; RocksDB divides its jobs in the same way.

use std::path::Path;

use terrane::policy::PerLevel;
use terrane::{Design, Durability, IoBudget, Options, ReadMode, WriteMode};
use terrane_workload::{Store, StoreError, TerraneStore};

use super::engine::{Budget, Engine, SURVIVES_PROCESS, Storage};
use crate::settings::{Compression, Settings};

pub(super) const ENGINE: Engine = Engine {
    name: "terrane",
    open: |dir, settings| Ok(Box::new(open(dir, settings)?)),
    version: || format!("terrane {}", super::lock_file::version_of("terrane")),
    promise: SURVIVES_PROCESS,
    storage: Storage::Files,
    compressions: &[Compression::None, Compression::Lz4],
    budget: Budget::Kept,
    can_bypass_cache: true,
};

fn open(dir: &Path, settings: &Settings) -> Result<impl Store + use<>, StoreError> {
    let options = Options::new()
        .design(design(settings)?)
        .durability(Durability::Process)
        .memory_budget(settings.cache_bytes + 2 * settings.memtable_bytes)
        .io_budget(settings.budget_bytes_per_second.map_or(IoBudget::Unlimited, IoBudget::Total))
        .compaction_threads(settings.background_threads.saturating_sub(1).max(1) as usize);
    let options = match settings.is_direct {
        true => options.read_mode(ReadMode::Direct).write_mode(WriteMode::Direct),
        false => options,
    };
    let db = options.open(dir).map_err(StoreError::during("open"))?;
    Ok(TerraneStore { db })
}

/// Returns the design named by `TERRANE_DESIGN`, or else the default design, with the sizes of the
/// comparison, and its compression unless the text has one.
fn design(settings: &Settings) -> Result<Design, StoreError> {
    let text = std::env::var("TERRANE_DESIGN").unwrap_or_else(|_| "balanced".into());
    let mut design: Design = text.parse().map_err(StoreError::during("parse TERRANE_DESIGN"))?;
    design.buffer_bytes = settings.memtable_bytes;
    design.block_bytes = settings.block_bytes;
    // The same number in every level, as in the other engines.
    design.filter_bits = PerLevel::all(f64::from(settings.filter_bits_per_key));
    design.filter_allocation = terrane::policy::FilterAllocation::Given;
    if !text.contains("compression=") {
        design.compression = PerLevel::all(match settings.compression {
            Compression::None => terrane::policy::Compression::None,
            Compression::Lz4 => terrane::policy::Compression::Lz4,
        });
    }
    Ok(design)
}
