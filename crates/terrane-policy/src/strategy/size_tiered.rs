//! Size-tiered policies: one list of runs, of which neighbours of like size become one.
//!
//! There are no levels to be full: all runs of the tree, in order of age, are the list, and what is
//! merged takes the place of the oldest of its inputs. Flushes land in level 0, so that a tree that
//! had such a policy from the beginning is level 0 alone; a tree that comes from another design is
//! taken as it is.
//!
//! | text | merges | source |
//! |---|---|---|
//! | `prefix(1GiB,5,1.2)` | neighbours that reach 1 GiB together, or 5 of the newest | [`Prefix`] |
//! | `concurrent(3,10,1.2)` | 3 to 10 of the newest, as far back as sizes are alike | [`Concurrent`] |
//!
//! A policy is asked with [`SizedRun`]s and answers which of them to merge: it knows no trees.

mod concurrent;
mod prefix;

use std::fmt;
use std::ops::Range;

use crate::error::ParseError;

pub use concurrent::Concurrent;
pub use prefix::Prefix;

/// A run as a policy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedRun {
    /// Its bytes.
    pub bytes: u64,
    /// Whether no merge that goes on takes it.
    pub is_free: bool,
}

/// How much larger than all younger runs of a merge together its oldest run may be: 1.2 keeps a
/// large run from being written again for little.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SizeRatio {
    percent: u32,
}

impl SizeRatio {
    /// The usual one, 1.2.
    pub const DEFAULT: Self = Self { percent: 120 };

    /// Whether a run of so many bytes may be merged with younger ones of so many in all.
    fn allows(self, oldest: u64, younger: u64) -> bool {
        u128::from(oldest) * 100 <= u128::from(younger) * u128::from(self.percent)
    }

    /// Of `1.2`.
    fn parse(text: &str) -> Option<Self> {
        let ratio = text.parse::<f64>().ok().filter(|ratio| (0.01..=1000.0).contains(ratio))?;
        Some(Self { percent: (ratio * 100.0).round() as u32 })
    }
}

impl fmt::Display for SizeRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.percent) / 100.0)
    }
}

/// A policy of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SizeTiered {
    /// One merge at a time, of runs up to a size.
    Prefix(Prefix),
    /// Merges at the same time, of so many runs.
    Concurrent(Concurrent),
}

impl SizeTiered {
    /// Which of the runs, the newest first, to merge.
    pub fn choose(&self, runs: &[SizedRun]) -> Option<Range<usize>> {
        match self {
            Self::Prefix(prefix) => prefix.choose(runs),
            Self::Concurrent(concurrent) => concurrent.choose(runs),
        }
    }

    /// Whether a run of this size will be merged again.
    pub fn merges_again(&self, bytes: u64) -> bool {
        match self {
            Self::Prefix(prefix) => prefix.merges_again(bytes),
            Self::Concurrent(_) => true,
        }
    }
}

impl fmt::Display for SizeTiered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => prefix.fmt(f),
            Self::Concurrent(concurrent) => concurrent.fmt(f),
        }
    }
}

fn bytes_of(runs: &[SizedRun]) -> u64 {
    runs.iter().fold(0, |sum, run| sum.saturating_add(run.bytes))
}

/// The arguments of a text, trimmed; empty for none, and for parentheses around nothing.
fn arguments(given: Option<&str>) -> Vec<&str> {
    let given = given.filter(|text| !text.trim().is_empty());
    given.map_or(Vec::new(), |text| text.split(',').map(str::trim).collect())
}

fn wrong(text: &str, expected: &str) -> ParseError {
    ParseError::new("trigger", text, expected)
}
