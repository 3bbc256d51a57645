//! What lookups cost in a tree.

use serde::Serialize;
use terrane_policy::Design;
use terrane_policy::advice::DesignCosts;
use terrane_policy::allocation::false_positive_rate;

/// The costs of lookups.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Lookups {
    /// Data blocks that a lookup of an existing key reads, on average.
    pub(crate) found: f64,
    /// Data blocks that a lookup of a missing key reads, on average.
    pub(crate) missing: f64,
    /// The runs that a scan reads.
    pub(crate) runs: f64,
}

/// The costs of lookups, and what the filters of each level let through.
#[derive(Debug, Serialize)]
pub(crate) struct LevelLookups {
    #[serde(flatten)]
    lookups: Lookups,
    /// The share of missing keys that the filter of a run of each level lets through.
    false_positives: Vec<f64>,
}

/// Returns the costs in a tree with these numbers of runs and bytes by level.
pub(crate) fn of(design: &Design, levels: &[(f64, f64)]) -> Lookups {
    let (found, missing, runs) = DesignCosts::of_levels(design, levels);
    Lookups { found, missing, runs }
}

pub(crate) fn lookups(design: &Design, levels: &[(f64, f64)]) -> LevelLookups {
    let last = levels.iter().rposition(|(_, bytes)| *bytes > 0.0).unwrap_or(0);
    let rate = |level| false_positive_rate(design.filter_bits_at(level, last)).min(1.0);
    LevelLookups {
        lookups: of(design, levels),
        false_positives: (0..levels.len()).map(rate).collect(),
    }
}
