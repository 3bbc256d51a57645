//! Granularity: how much data one compaction moves (compaction paper §3.1.3).

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::call;

/// The amount of data that a compaction takes from a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Granularity {
    /// The whole level, with all overlapping data of the next one.
    Level,
    /// All sorted runs of the level; the next level is not rewritten if it gathers runs.
    Run,
    /// One table, with all overlapping tables. Below level 0, in a level that gathers runs, these are
    /// all tables of the level that share keys with it.
    File,
    /// Up to this many adjacent tables of a run, with all overlapping tables.
    Files(u32),
    /// One table, and further tables of its level that add little cost.
    Expanded(Expansion),
}

/// Which tables move along with the chosen table of a single-run level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Expansion {
    /// Once the tables of the next level are known, further tables of the level join as long as they
    /// overlap no additional table of the next level and the inputs stay smaller than this many
    /// tables of the target size. They would otherwise rewrite the same tables of the next level
    /// later. (LevelDB: 25, RocksDB: 50.)
    pub tables: u32,
    /// Up to this many adjacent tables move together if none of them overlaps the next level; 1 moves
    /// the table alone. (RocksDB: 4.)
    pub moved: u32,
}

impl Granularity {
    /// Returns the maximum number of tables that one compaction chooses; `None` if it takes all of
    /// a level.
    pub fn tables(self) -> Option<usize> {
        match self {
            Self::Level | Self::Run => None,
            Self::File | Self::Expanded(_) => Some(1),
            Self::Files(count) => Some(count as usize),
        }
    }
}

impl Expansion {
    fn parse(text: &str) -> Option<Self> {
        let (mut tables, mut moved) = (None, 1);
        for setting in text.split(',') {
            let (key, value) = setting.split_once('=')?;
            let value: u32 = value.trim().parse().ok().filter(|one| (1..=1000).contains(one))?;
            match key.trim() {
                "expand" => tables = Some(value),
                "move" => moved = value,
                _ => return None,
            }
        }
        Some(Self { tables: tables?, moved })
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level => f.write_str("level"),
            Self::Run => f.write_str("run"),
            Self::File => f.write_str("file"),
            Self::Files(count) => write!(f, "files({count})"),
            Self::Expanded(Expansion { tables, moved: 1 }) => write!(f, "file(expand={tables})"),
            Self::Expanded(Expansion { tables, moved }) => {
                write!(f, "file(expand={tables},move={moved})")
            }
        }
    }
}

impl FromStr for Granularity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || {
            ParseError::new(
                "granularity",
                text,
                "level, run, file, file(expand=25,move=4) or files(2 to 1000)",
            )
        };
        match call(text)? {
            ("level", None) => Ok(Self::Level),
            ("run" | "sorted-run", None) => Ok(Self::Run),
            ("file", None) => Ok(Self::File),
            ("file", Some(settings)) => {
                Expansion::parse(settings).map(Self::Expanded).ok_or_else(bad)
            }
            ("files", Some(count)) => {
                let count = count.trim().parse().map_err(|_| bad())?;
                (2..=1000).contains(&count).then_some(Self::Files(count)).ok_or_else(bad)
            }
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn granularities_print_as_they_parse() {
        for text in
            ["level", "run", "file", "files(4)", "file(expand=25)", "file(expand=50,move=4)"]
        {
            assert_eq!(text.parse::<Granularity>().unwrap().to_string(), text);
        }
        for text in ["file()", "file(move=4)", "file(expand=0)", "file(expand=1,x=2)", "files(1)"] {
            assert!(text.parse::<Granularity>().is_err(), "{text}");
        }
    }
}
