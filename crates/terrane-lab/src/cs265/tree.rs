//! Dent's tree with its tuning parameters, as a database.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use terrane::{Db, Design, Durability, Options, ReadMode, WriteMode};
use terrane_policy::catalogue;
use terrane_policy::design::{MemtableKind, PerLevel};

use super::PAGE_ENTRIES;
use crate::error::usage;
use crate::host::passing_storage::PassingStorage;

/// The number of pages in the buffer, unless given.
const PAGES_DEFAULT: u32 = 1000;

/// The size ratio of Dent's tree.
const FANOUT_DEFAULT: u32 = 10;

/// The measured size of an entry in a memtable of the default kind, in bytes. Our buffer is limited
/// by bytes, and Dent's by entries.
const BUFFERED_ENTRY_BYTES: u64 = 49;

/// The parameters of Dent's tree, under the letters of his report; `None` for his default.
#[derive(Debug, Clone)]
pub struct DentTree {
    /// `-b`: the buffer in pages of [`PAGE_ENTRIES`] entries.
    pub buffer_pages: Option<u32>,
    /// `-f`: runs per level, and the size ratio between levels.
    pub fanout: Option<u32>,
    /// `-r`: filter bits per key.
    pub bits: Option<f64>,
    /// `-t`: runs that a get reads at the same time.
    pub threads: u32,
    /// The kind of buffer.
    pub memtable: Option<MemtableKind>,
    /// Whether tables are read and written past the page cache, with few of their blocks in memory.
    pub direct: bool,
}

impl DentTree {
    /// Returns the number of entries that fill the buffer.
    #[must_use]
    pub fn buffer_entries(&self) -> u64 {
        u64::from(self.buffer_pages.unwrap_or(PAGES_DEFAULT)) * PAGE_ENTRIES
    }

    /// Returns the runs per level.
    #[must_use]
    pub fn fanout(&self) -> u32 {
        self.fanout.unwrap_or(FANOUT_DEFAULT)
    }

    /// Opens a database in `dir` that need not outlive this process, because Dent's tree does not.
    ///
    /// # Errors
    /// If the parameters are invalid, or the database cannot be opened.
    pub fn open_temporary(&self, dir: &Path) -> Result<Db> {
        let options = self.with_settings(self.options())?;
        let storage = Arc::new(PassingStorage);
        Ok(options.durability(Durability::None).storage(storage).open(dir)?)
    }

    /// Opens the database in `dir`, or creates it if `exists` is false. An existing one keeps its design,
    /// unless a parameter is given.
    ///
    /// # Errors
    /// If the parameters are invalid, or the database cannot be opened.
    pub fn open(&self, dir: &Path, exists: bool) -> Result<Db> {
        let has_settings = self.buffer_pages.is_some()
            || self.fanout.is_some()
            || self.bits.is_some()
            || self.memtable.is_some()
            || self.direct;
        let options = self.options();
        let options = if has_settings || !exists { self.with_settings(options)? } else { options };
        Ok(options.open(dir)?)
    }

    fn options(&self) -> Options {
        let threads = if self.threads == 1 { 0 } else { self.threads as usize };
        let options = Options::new().read_threads(threads);
        match self.direct {
            true => options.read_mode(ReadMode::Direct).write_mode(WriteMode::Direct),
            false => options,
        }
    }

    fn with_settings(&self, options: Options) -> Result<Options> {
        let design = self.design()?;
        let budget_bytes = match self.direct {
            true => design.buffer_bytes * 4 + (2 << 20),
            false => (design.buffer_bytes * 8).max(512 << 20),
        };
        Ok(options.memory_budget(budget_bytes).design(design))
    }

    /// Returns Dent's design with the given parameters.
    fn design(&self) -> Result<Design> {
        let entry = catalogue::find("dent").context("the design 'dent' is missing")?;
        let mut design = (entry.design)();
        design.buffer_bytes = self.buffer_entries() * BUFFERED_ENTRY_BYTES;
        if let Some(fanout) = self.fanout {
            design.strategy.size_ratio = fanout;
            design.strategy.level0_runs = fanout;
            let limits = &mut design.constraint;
            limits.delay_runs = limits.delay_runs.max(2 * fanout);
            limits.stop_runs = limits.stop_runs.max(4 * fanout);
        }
        if let Some(kind) = self.memtable {
            design.memtable = kind;
        }
        if let Some(bits) = self.bits {
            design.filter_bits = PerLevel::all(bits);
        }
        design.validate().map_err(|error| usage(error.to_string()))?;
        Ok(design)
    }
}
