//! Granularity: how much data one compaction moves (compaction paper §3.1.3).

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::call;

/// The amount of data that a compaction takes from a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Granularity {
    /// All of the level, with all overlapping data of the next one.
    Level,
    /// All sorted runs of the level; a next level that gathers runs is not rewritten.
    Run,
    /// One table, with all overlapping tables. Below level 0, in a level that gathers runs: the table
    /// with all tables of the level that share keys with it.
    File,
    /// Up to this many adjacent tables of a run, with all overlapping tables.
    Files(u32),
}

impl Granularity {
    /// Returns the maximum number of tables that one compaction chooses; `None` if it takes all of
    /// a level.
    pub fn tables(self) -> Option<usize> {
        match self {
            Self::Level | Self::Run => None,
            Self::File => Some(1),
            Self::Files(count) => Some(count as usize),
        }
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level => f.write_str("level"),
            Self::Run => f.write_str("run"),
            Self::File => f.write_str("file"),
            Self::Files(count) => write!(f, "files({count})"),
        }
    }
}

impl FromStr for Granularity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("granularity", text, "level, run, file or files(2 to 1000)");
        match call(text)? {
            ("level", None) => Ok(Self::Level),
            ("run" | "sorted-run", None) => Ok(Self::Run),
            ("file", None) => Ok(Self::File),
            ("files", Some(count)) => {
                let count = count.trim().parse().map_err(|_| bad())?;
                (2..=1000).contains(&count).then_some(Self::Files(count)).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }
}
