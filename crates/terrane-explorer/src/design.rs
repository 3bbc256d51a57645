//! Settings of a design, and changes of one.

use serde::Serialize;
use terrane_policy::Design;

/// The levels whose capacity is listed.
const LEVELS_SHOWN: usize = 8;

/// A design and its settings.
#[derive(Debug, Serialize)]
pub(crate) struct DescribedDesign {
    /// Its shortest text.
    text: String,
    eagerness: String,
    /// Keys and values of all settings that are not rare.
    settings: Vec<(&'static str, String)>,
    /// Capacities in bytes, from level 0; `null` if the design does not limit a level.
    capacities: Vec<Option<u64>>,
    /// The runs that each level may hold.
    runs: Vec<u32>,
}

pub(crate) fn parse(text: &str) -> Result<Design, String> {
    text.trim().parse().map_err(|error: terrane_policy::ParseError| error.to_string())
}

pub(crate) fn describe(design: &Design) -> DescribedDesign {
    let last = LEVELS_SHOWN - 1;
    let levels = 0..LEVELS_SHOWN;
    let capacity =
        |level| Some(design.capacity_bytes(level, last)).filter(|bytes| *bytes < u64::MAX);
    DescribedDesign {
        text: design.to_string(),
        eagerness: design.strategy.words()[0].clone(),
        settings: design.settings(),
        capacities: levels.clone().map(capacity).collect(),
        runs: levels.map(|level| design.strategy.runs_allowed(level, last)).collect(),
    }
}

/// Returns a design with another value of a setting. The key `name` stands for the eagerness, with the limits on
/// runs that belong to it: it replaces the strategy and keeps all other settings.
pub(crate) fn changed(text: &str, key: &str, value: &str) -> Result<Design, String> {
    let design = parse(text)?;
    let sentence = |error: terrane_policy::ParseError| error.to_string();
    if key != "name" {
        return design.with_setting(key, value.trim()).map_err(sentence);
    }
    let mut fresh = parse(value)?;
    fresh.memtable = design.memtable;
    fresh.buffer_bytes = design.buffer_bytes;
    fresh.flush = design.flush;
    fresh.table_bytes = design.table_bytes;
    fresh.block_bytes = design.block_bytes;
    fresh.filter_bits = design.filter_bits;
    fresh.filter_allocation = design.filter_allocation;
    fresh.filter_probes = design.filter_probes;
    fresh.compression = design.compression;
    fresh.values = design.values;
    fresh.scheduler = design.scheduler;
    fresh.validate().map_err(sentence)?;
    Ok(fresh)
}
