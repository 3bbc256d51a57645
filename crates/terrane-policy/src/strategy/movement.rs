//! Data movement: which table a partial compaction takes (compaction paper §3.1.4).

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

/// A rule that picks a table of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Movement {
    /// The table after the one moved last, in key order, around and around.
    RoundRobin,
    /// The table with the fewest overlapping bytes in the next level per byte of its own.
    LeastOverlap,
}

impl fmt::Display for Movement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoundRobin => "round-robin",
            Self::LeastOverlap => "least-overlap",
        })
    }
}

impl FromStr for Movement {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "round-robin" => Ok(Self::RoundRobin),
            "least-overlap" => Ok(Self::LeastOverlap),
            _ => Err(ParseError::new("movement", text, "round-robin or least-overlap")),
        }
    }
}
