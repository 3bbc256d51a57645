//! The setting for how flushes treat level 0; [`crate::flush`] applies it.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

/// How flushes treat the runs of level 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FlushMode {
    /// Each flush creates a new run.
    New,
    /// Flushes merge with the runs that share keys with them.
    Merge,
}

impl fmt::Display for FlushMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "new",
            Self::Merge => "merge",
        })
    }
}

impl FromStr for FlushMode {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "new" => Ok(Self::New),
            "merge" => Ok(Self::Merge),
            _ => Err(ParseError::new("flush", text, "new or merge")),
        }
    }
}
