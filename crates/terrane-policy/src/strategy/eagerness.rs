//! Eagerness: how many sorted runs a level may hold (compaction paper §3.1.2).
//!
//! All values are points of one mechanism, [`Runs`]; the named ones are common.

use std::fmt;
use std::str::FromStr;

use super::{Granularity, RunLimit, Runs};
use crate::error::ParseError;

/// The data layout that compactions maintain.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Eagerness {
    /// One run in every level; a flush is merged into level 1 at once.
    Leveling,
    /// Flushes gather in level 0, and every deeper level is one run (RocksDB's and LevelDB's
    /// layout).
    OneLeveling,
    /// Every level gathers T runs, which are then merged into one run of the next level.
    Tiering,
    /// Tiering, except that the last level is one run (Dostoevsky's L-leveling).
    LazyLeveling,
    /// A number of runs for each level.
    Hybrid(Runs),
}

impl Eagerness {
    /// The values that have a name, with their names.
    pub const NAMED: [(Eagerness, &'static str); 4] = [
        (Eagerness::Leveling, "leveling"),
        (Eagerness::OneLeveling, "1-leveling"),
        (Eagerness::Tiering, "tiering"),
        (Eagerness::LazyLeveling, "lazy-leveling"),
    ];

    /// Returns how many runs the levels from level 1 on may hold.
    pub fn runs(&self) -> Runs {
        match self {
            Self::Leveling | Self::OneLeveling => Runs::all(RunLimit::Fixed(1)),
            Self::Tiering => Runs::all(RunLimit::Tiered),
            Self::LazyLeveling => Runs::new(RunLimit::Tiered, [], Some(RunLimit::Fixed(1))),
            Self::Hybrid(runs) => runs.clone(),
        }
    }

    /// Returns true if some level from level 1 on may hold several runs.
    pub fn gathers(&self) -> bool {
        self.runs().values().any(|count| count != RunLimit::Fixed(1))
    }

    pub(super) fn default_level0_runs(&self, size_ratio: u32) -> u32 {
        match self {
            Self::Leveling => 1,
            Self::OneLeveling => 4,
            Self::Tiering | Self::LazyLeveling | Self::Hybrid(_) => size_ratio,
        }
    }

    pub(super) fn default_granularity(&self) -> Granularity {
        if self.gathers() { Granularity::Level } else { Granularity::File }
    }

    /// Like [`Runs::allowed`], but without taking the runs out of a hybrid.
    pub(super) fn allowed(&self, level: usize, last_level: usize, ratio: u64) -> u32 {
        match self {
            Self::Hybrid(runs) => runs.allowed(level, last_level, ratio),
            Self::Leveling | Self::OneLeveling => 1,
            Self::LazyLeveling if level >= last_level.max(1) => 1,
            Self::Tiering | Self::LazyLeveling => {
                u32::try_from(ratio).unwrap_or(u32::MAX).saturating_sub(1).max(1)
            }
        }
    }
}

impl fmt::Display for Eagerness {
    /// Writes the name. The runs of a hybrid are printed separately.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::NAMED.iter().find(|(value, _)| value == self);
        f.write_str(name.map_or("hybrid", |(_, name)| name))
    }
}

impl FromStr for Eagerness {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "l-leveling" => Ok(Self::LazyLeveling),
            "one-leveling" => Ok(Self::OneLeveling),
            _ => Self::NAMED
                .iter()
                .find(|(_, name)| *name == text)
                .map(|(value, _)| value.clone())
                .ok_or_else(|| {
                    ParseError::new(
                        "eagerness",
                        text,
                        "leveling, 1-leveling, tiering, lazy-leveling, or hybrid with runs=",
                    )
                }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_parse_by_their_names_and_by_those_of_the_papers() {
        for (layout, name) in Eagerness::NAMED {
            assert_eq!(name.parse(), Ok(layout.clone()));
            assert_eq!(layout.to_string(), name);
        }
        assert_eq!("l-leveling".parse(), Ok(Eagerness::LazyLeveling));
        assert_eq!("one-leveling".parse(), Ok(Eagerness::OneLeveling));
        assert!("hybrid".parse::<Eagerness>().is_err());
    }
}
