//! Parts of a report that are more than one number.

use std::sync::Arc;
use std::time::Duration;

use terrane_policy::Pressure;

use crate::base::error::Error;

/// Reads of the tables of one level, and compactions out of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LevelStats {
    /// Data blocks searched by point lookups.
    pub get_blocks: u64,
    /// Cache misses for data blocks.
    pub data_misses: u64,
    /// Cache misses for index blocks.
    pub index_misses: u64,
    /// Cache misses for filters.
    pub filter_misses: u64,
    /// Compactions that rewrote data and whose newest input was in this level.
    pub compactions: u64,
}

impl LevelStats {
    /// Returns each number with its name, as in JSON, and its meaning.
    pub fn numbers(&self) -> [(&'static str, &'static str, u64); 5] {
        let Self { get_blocks, data_misses, index_misses, filter_misses, compactions } = *self;
        [
            ("get_blocks", "Data blocks searched by point lookups, by level.", get_blocks),
            ("cache_data_misses", "Cache misses for data blocks, by level.", data_misses),
            ("cache_index_misses", "Cache misses for index blocks, by level.", index_misses),
            ("cache_filter_misses", "Cache misses for filters, by level.", filter_misses),
            ("compactions", "Compactions that rewrote data, by input level.", compactions),
        ]
    }

    /// Returns the growth since `earlier`.
    pub(super) fn since(&self, earlier: &Self) -> Self {
        Self {
            get_blocks: self.get_blocks.saturating_sub(earlier.get_blocks),
            data_misses: self.data_misses.saturating_sub(earlier.data_misses),
            index_misses: self.index_misses.saturating_sub(earlier.index_misses),
            filter_misses: self.filter_misses.saturating_sub(earlier.filter_misses),
            compactions: self.compactions.saturating_sub(earlier.compactions),
        }
    }
}

/// A failure that lasts, and its cause.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Failure {
    /// The cause.
    pub cause: FailureCause,
    /// The error.
    pub error: Error,
}

impl Failure {
    /// Classifies an error that writes or background work met.
    pub(crate) fn of(error: Error) -> Self {
        let cause = match &error {
            Error::DiskFull(_) => FailureCause::DiskFull,
            Error::Io(_) => FailureCause::FailedWork,
            Error::Corruption(_) => FailureCause::Damage,
            _ => FailureCause::WritesRefused,
        };
        Self { cause, error }
    }
}

/// The cause of a failure that lasts, by what the operator has to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
pub enum FailureCause {
    /// Writes are refused until the database is opened again.
    WritesRefused,
    /// A file system is full. Work resumes once it has space.
    DiskFull,
    /// The storage fails otherwise. The work is retried.
    FailedWork,
    /// A table or a value file is damaged or missing.
    Damage,
}

impl FailureCause {
    /// All causes.
    pub const ALL: [Self; 4] =
        [Self::WritesRefused, Self::DiskFull, Self::FailedWork, Self::Damage];

    /// Returns the name, as in the label `cause` of `terrane_failed`.
    pub fn name(self) -> &'static str {
        match self {
            Self::WritesRefused => "writes-refused",
            Self::DiskFull => "disk-full",
            Self::FailedWork => "failed-work",
            Self::Damage => "damage",
        }
    }
}

/// A current stall of the writers of a keyspace.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CurrentStall {
    /// The keyspace.
    pub keyspace: Arc<str>,
    /// Whether writers stop once the memtable is full; otherwise they are delayed.
    pub stops: bool,
    /// The cause, the measured number, and the thresholds.
    pub pressure: Pressure,
    /// The time since the stall began.
    pub since: Duration,
}
