//! Triggers: what makes a level act (compaction paper §3.1.1).

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

/// An event on which a level is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// A level holds more bytes than its capacity.
    LevelSaturation,
    /// A level holds more sorted runs than it may.
    RunCount,
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LevelSaturation => "level-saturation",
            Self::RunCount => "run-count",
        })
    }
}

impl FromStr for Trigger {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "level-saturation" => Ok(Self::LevelSaturation),
            "run-count" => Ok(Self::RunCount),
            _ => Err(ParseError::new("trigger", text, "level-saturation or run-count")),
        }
    }
}
