//! How many runs a level that gathers runs gives up in one compaction.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

/// How many runs a level gives up when it acts because of their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Intake {
    /// All runs. If merging is behind, these are more than usual, which absorbs bursts of writes. A
    /// rate measured this way is not sustainable, because the tree degenerates
    /// (performance-stability §6.2).
    All,
    /// The oldest runs, as many as made the level act. If whole levels move, a full level of one
    /// run moves on before it takes more data.
    Exact,
}

impl fmt::Display for Intake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "all",
            Self::Exact => "exact",
        })
    }
}

impl FromStr for Intake {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "all" => Ok(Self::All),
            "exact" => Ok(Self::Exact),
            _ => Err(ParseError::new("intake", text, "all or exact")),
        }
    }
}
