//! Runs by their size alone, and how alike two sizes are.

use std::fmt;

use crate::error::ParseError;

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
    pub(super) fn allows(self, oldest: u64, younger: u64) -> bool {
        u128::from(oldest) * 100 <= u128::from(younger) * u128::from(self.percent)
    }

    /// Of `1.2`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let ratio = text.parse::<f64>().ok().filter(|ratio| (0.01..=1000.0).contains(ratio))?;
        Some(Self { percent: (ratio * 100.0).round() as u32 })
    }
}

impl fmt::Display for SizeRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.percent) / 100.0)
    }
}

pub(super) fn bytes_of(runs: &[SizedRun]) -> u64 {
    runs.iter().fold(0, |sum, run| sum.saturating_add(run.bytes))
}

/// The arguments of a text, trimmed; empty for none, and for parentheses around nothing.
pub(super) fn arguments(given: Option<&str>) -> Vec<&str> {
    let given = given.filter(|text| !text.trim().is_empty());
    given.map_or(Vec::new(), |text| text.split(',').map(str::trim).collect())
}

pub(super) fn wrong(text: &str, expected: &str) -> ParseError {
    ParseError::new("trigger", text, expected)
}
