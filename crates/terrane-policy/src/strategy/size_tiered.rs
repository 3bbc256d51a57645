//! Size-tiered policies: all runs form one list, and adjacent runs of similar size are merged.
//!
//! No level is ever full. The list holds all runs of the tree in order of age, and a merge puts its
//! result in the place of its oldest input. Because flushes land in level 0, a tree that always had
//! such a policy consists of level 0 alone; the runs of a tree that had another design before form the
//! list as they are.
//!
//! | text | merges | source |
//! |---|---|---|
//! | `prefix(1GiB,5,1.2)` | adjacent runs that reach 1 GiB together, or 5 of the newest | [`Prefix`](super::Prefix) |
//! | `concurrent(3,10,1.2)` | 3 to 10 of the newest runs, as far back as sizes are similar | [`Concurrent`](super::Concurrent) |
//!
//! A policy sees [`SizedRun`]s and chooses which of them to merge; it knows nothing of trees.

use std::fmt;
use std::ops::Range;

/// A run as a policy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedRun {
    /// Its bytes.
    pub bytes: u64,
    /// True if no running merge has taken the run.
    pub is_free: bool,
}

/// A size-tiered policy.
pub trait SizeTiered: fmt::Display {
    /// Chooses the runs to merge, from a list with the newest run first.
    fn choose(&self, runs: &[SizedRun]) -> Option<Range<usize>>;

    /// Returns true if a run of this size will be merged again.
    fn merges_again(&self, bytes: u64) -> bool;
}

/// How much larger the oldest run of a merge may be than all its younger runs together: 1.2 keeps a
/// large run from being rewritten for little gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SizeRatio {
    percent: u32,
}

impl SizeRatio {
    /// The usual ratio, 1.2.
    pub const DEFAULT: Self = Self { percent: 120 };

    /// Returns true if a run of `oldest` bytes may be merged with younger runs of `younger` bytes
    /// in all.
    pub(crate) fn allows(self, oldest: u64, younger: u64) -> bool {
        u128::from(oldest) * 100 <= u128::from(younger) * u128::from(self.percent)
    }

    /// Parses a ratio such as `1.2`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let ratio = text.parse::<f64>().ok().filter(|ratio| (0.01..=1000.0).contains(ratio))?;
        Some(Self { percent: (ratio * 100.0).round() as u32 })
    }
}

impl fmt::Display for SizeRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.percent) / 100.0)
    }
}

pub(crate) fn bytes_of(runs: &[SizedRun]) -> u64 {
    runs.iter().fold(0, |sum, run| sum.saturating_add(run.bytes))
}

/// Splits the arguments of a text and trims them; empty for none and for empty parentheses.
pub(crate) fn arguments(given: Option<&str>) -> Vec<&str> {
    let given = given.filter(|text| !text.trim().is_empty());
    given.map_or(Vec::new(), |text| text.split(',').map(str::trim).collect())
}
