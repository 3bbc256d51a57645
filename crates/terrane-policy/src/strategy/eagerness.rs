//! Eagerness: how many sorted runs a level may hold (compaction paper §3.1.2).

use std::fmt;
use std::str::FromStr;

use super::Granularity;
use crate::error::ParseError;

/// The data layout that compactions keep up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Eagerness {
    /// One run in every level; a flush is merged into level 1 at once.
    Leveling,
    /// Flushes gather in level 0, every deeper level is one run (RocksDB's and LevelDB's layout).
    OneLeveling,
    /// Every level gathers T runs, which are then merged into one run of the next level.
    Tiering,
    /// Tiering, except that the last level is one run (Dostoevsky's L-leveling).
    LazyLeveling,
}

impl Eagerness {
    /// All values, with their names.
    pub const ALL: [(Eagerness, &'static str); 4] = [
        (Eagerness::Leveling, "leveling"),
        (Eagerness::OneLeveling, "1-leveling"),
        (Eagerness::Tiering, "tiering"),
        (Eagerness::LazyLeveling, "lazy-leveling"),
    ];

    pub(super) fn default_level0_runs(self, size_ratio: u32) -> u32 {
        match self {
            Self::Leveling => 1,
            Self::OneLeveling => 4,
            Self::Tiering | Self::LazyLeveling => size_ratio,
        }
    }

    pub(super) fn default_granularity(self) -> Granularity {
        match self {
            Self::Leveling | Self::OneLeveling => Granularity::File,
            Self::Tiering | Self::LazyLeveling => Granularity::Level,
        }
    }

    /// A level that gathers runs acts once it holds `level0_runs` or `size_ratio` of them, so at
    /// rest it holds one less.
    pub(super) fn runs_allowed(
        self,
        level: usize,
        last_level: usize,
        level0_runs: u32,
        size_ratio: u32,
    ) -> u32 {
        let gathers = match self {
            Self::Leveling | Self::OneLeveling => level == 0,
            Self::Tiering => true,
            Self::LazyLeveling => level < last_level.max(1),
        };
        match (gathers, level) {
            (false, _) => 1,
            (true, 0) => level0_runs.saturating_sub(1),
            (true, _) => size_ratio.saturating_sub(1).max(1),
        }
    }
}

impl fmt::Display for Eagerness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Self::ALL.iter().find(|(value, _)| value == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for Eagerness {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "l-leveling" => Ok(Self::LazyLeveling),
            "one-leveling" => Ok(Self::OneLeveling),
            _ => Self::ALL
                .iter()
                .find(|(_, name)| *name == text)
                .map(|(value, _)| *value)
                .ok_or_else(|| {
                    ParseError::new(
                        "eagerness",
                        text,
                        "leveling, 1-leveling, tiering or lazy-leveling",
                    )
                }),
        }
    }
}
