//! Granularity: how much data one compaction moves (compaction paper §3.1.3).

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

/// The amount of data that a compaction takes from a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// All runs of the level.
    Level,
    /// One table of a level that is a single run; levels that gather runs move whole.
    File,
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level => "level",
            Self::File => "file",
        })
    }
}

impl FromStr for Granularity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "level" => Ok(Self::Level),
            "file" => Ok(Self::File),
            _ => Err(ParseError::new("granularity", text, "level or file")),
        }
    }
}
