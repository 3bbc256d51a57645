//! The scheduler as a value with a text form.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::call;

/// The most merges that `greedy(k)` may run at a time.
const MERGES_MAX: u32 = 64;

/// The rule by which bandwidth is given to merges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scheduler {
    /// One merge at a time, in the order in which they were created.
    Single,
    /// All at the same speed.
    Fair,
    /// The merges with the least input left, at the same speed; the others rest.
    Greedy {
        /// How many of each tree; 1 in the paper.
        merges: u32,
    },
    /// All at the speed at which their outputs are needed.
    Gear,
}

impl fmt::Display for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Single => f.write_str("single"),
            Self::Fair => f.write_str("fair"),
            Self::Greedy { merges: 1 } => f.write_str("greedy"),
            Self::Greedy { merges } => write!(f, "greedy({merges})"),
            Self::Gear => f.write_str("gear"),
        }
    }
}

impl FromStr for Scheduler {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("scheduler", text, "single, fair, greedy, greedy(2) or gear");
        match call(text)? {
            ("single", None) => Ok(Self::Single),
            ("fair", None) => Ok(Self::Fair),
            ("greedy", None) => Ok(Self::Greedy { merges: 1 }),
            ("gear" | "spring-and-gear", None) => Ok(Self::Gear),
            ("greedy", Some(count)) => {
                let merges = count.parse().map_err(|_| bad())?;
                let fits = (1..=MERGES_MAX).contains(&merges);
                fits.then_some(Self::Greedy { merges }).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }
}
