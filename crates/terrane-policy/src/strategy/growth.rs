//! How capacities grow from level to level: a number, a list, or a formula.
//!
//! | text | capacity of level i divided by the capacity of level i − 1 |
//! |---|---|
//! | `fixed` | T (compaction paper §2) |
//! | `4,6,10` | 4 for level 1, 6 for level 2, 10 from level 3 on (Moose, Wacky continuum) |
//! | `bush(2)` | T raised to 2^(L − i) for the last level L: small levels take in many runs before they merge, the largest few (LSM-Bush §4) |
//! | `dynamic` | T, with level 1 sized so that the last level is full: between a T-th of its capacity and all of it (performance-stability §5.2.3; RocksDB's dynamic level bytes) |
//! | `64MiB,1GiB` | given by these capacities of levels 1 and 2; T below (Moose) |

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::call;
use crate::units::{format_bytes, parse_bytes};

/// The maximum ratio that a formula gives: a level with a larger one would never be merged in
/// practice.
const RATIO_MAX: u64 = 1 << 16;

/// The rule by which capacities grow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Growth {
    /// By the size ratio T at every level.
    Fixed,
    /// By a ratio for each level from level 1 on; the last ratio applies to all deeper levels.
    Ratios(Vec<u32>),
    /// Doubly exponentially toward small levels: T^(exponent^(L − i)) at level i of L.
    Bush {
        /// The base of the outer power; 1 is the same as `Fixed`.
        exponent: u32,
    },
    /// By the size ratio T at every level, with capacities derived from the last level so that it is
    /// always nearly full; see [`crate::Design::with_scaled_capacities`].
    Dynamic,
    /// Levels 1, 2, … have these capacities in bytes; each deeper level is T times the previous one.
    Capacities(Vec<u64>),
}

impl Growth {
    /// Returns the capacity of `level`, from level 1 on, divided by the capacity of the level
    /// above; at least 2.
    pub(super) fn ratio(&self, level: usize, last_level: usize, size_ratio: u32) -> u64 {
        let fixed = u64::from(size_ratio.max(2));
        match self {
            Self::Fixed | Self::Dynamic => fixed,
            Self::Ratios(ratios) => {
                let index = level.saturating_sub(1).min(ratios.len().saturating_sub(1));
                ratios.get(index).map_or(fixed, |&ratio| u64::from(ratio.max(2)))
            }
            Self::Bush { exponent } => bush_ratio(fixed, *exponent, level, last_level),
            Self::Capacities(bytes) => {
                let above = level.checked_sub(2).and_then(|index| bytes.get(index));
                match (above, bytes.get(level.saturating_sub(1))) {
                    (Some(above), Some(own)) => (own / above.max(&1)).max(2),
                    _ => fixed,
                }
            }
        }
    }

    /// Returns the capacity of `level`, from level 1 on, if the rule states it.
    pub(super) fn given_bytes(&self, level: usize) -> Option<u64> {
        match self {
            Self::Capacities(bytes) => bytes.get(level.checked_sub(1)?).copied(),
            _ => None,
        }
    }
}

/// Returns LSM-Bush's ratio of `level` to the level above: T for the last level, and for each level
/// above it the ratio of the level below, raised to `exponent`.
pub fn bush_ratio(size_ratio: u64, exponent: u32, level: usize, last_level: usize) -> u64 {
    let steps = last_level.max(level) - level;
    let mut ratio = size_ratio.max(2);
    for _ in 0..steps {
        let next = ratio.saturating_pow(exponent.max(1));
        if next >= RATIO_MAX {
            return RATIO_MAX;
        }
        if next == ratio {
            break;
        }
        ratio = next;
    }
    ratio
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |words: Vec<String>| words.join(",");
        match self {
            Self::Fixed => f.write_str("fixed"),
            Self::Dynamic => f.write_str("dynamic"),
            Self::Ratios(ratios) => {
                f.write_str(&list(ratios.iter().map(ToString::to_string).collect()))
            }
            Self::Bush { exponent } => write!(f, "bush({exponent})"),
            Self::Capacities(bytes) => {
                let words = bytes.iter().map(|&bytes| match format_bytes(bytes) {
                    // A number without a unit would be a ratio.
                    text if text.ends_with('B') => text,
                    text => text + "B",
                });
                f.write_str(&list(words.collect()))
            }
        }
    }
}

impl FromStr for Growth {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || {
            ParseError::new(
                "growth",
                text,
                "fixed, dynamic, bush(1 to 4), ratios such as '4,6,10' of 2 to 1000, or rising capacities such as '64MiB,1GiB'",
            )
        };
        let (name, argument) = call(text)?;
        match (name, argument) {
            ("fixed", None) => return Ok(Self::Fixed),
            ("dynamic", None) => return Ok(Self::Dynamic),
            ("bush", Some(argument)) => {
                let exponent = argument.trim().parse().map_err(|_| bad())?;
                let in_range = (1..=4).contains(&exponent);
                return in_range.then_some(Self::Bush { exponent }).ok_or_else(bad);
            }
            _ => {}
        }
        let words: Vec<&str> = text.split(',').map(str::trim).collect();
        if words.iter().all(|word| word.parse::<u32>().is_ok()) {
            let ratios: Vec<u32> = words.iter().filter_map(|word| word.parse().ok()).collect();
            let in_range = ratios.iter().all(|ratio| (2..=1000).contains(ratio));
            return in_range.then_some(Self::Ratios(ratios)).ok_or_else(bad);
        }
        let bytes = words.iter().map(|word| parse_bytes(word));
        let bytes = bytes.collect::<Result<Vec<u64>, _>>().map_err(|_| bad())?;
        let rises = bytes.windows(2).all(|pair| pair[0] < pair[1]) && bytes.first() > Some(&0);
        rises.then_some(Self::Capacities(bytes)).ok_or_else(bad)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bush_ratios_square_toward_small_levels() {
        let ratios: Vec<u64> = (1..=4).map(|level| bush_ratio(2, 2, level, 4)).collect();
        assert_eq!(ratios, [256, 16, 4, 2]);
        assert_eq!(bush_ratio(10, 1, 1, 5), 10);
        assert_eq!(bush_ratio(10, 3, 1, 60), RATIO_MAX);
    }

    #[test]
    fn rules_print_as_they_parse() {
        for text in ["fixed", "4", "4,6,10", "bush(2)", "64MiB,1GiB", "1000B,5000B"] {
            assert_eq!(text.parse::<Growth>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "1",
            "4,1",
            "bush",
            "bush(0)",
            "bush(9)",
            "2MiB,1MiB",
            "1MiB,1MiB",
            "1MiB,9MiB,2MiB",
            "4,1MiB,x",
            "0B",
            "0B,1MiB",
        ] {
            assert!(text.parse::<Growth>().is_err(), "{text}");
        }
        assert!("64MiB".parse::<Growth>().is_ok());
    }

    #[test]
    fn given_capacities_imply_the_ratios_between_them() {
        let growth: Growth = "100B,700B,900B".parse().unwrap();
        assert_eq!([1, 2, 3, 4].map(|level| growth.ratio(level, 4, 10)), [10, 7, 2, 10]);
    }
}
