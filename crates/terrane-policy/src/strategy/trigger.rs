//! Triggers: what makes a level act (compaction paper §3.1.1).
//!
//! | text | fires when | source |
//! |---|---|---|
//! | `level-saturation` | a level holds more bytes than its capacity | (i) |
//! | `file-count`, `file-count(4,40)` | a level holds more tables than fit its capacity, or than given; T times more per level below the last one given | (i′) |
//! | `run-count` | a level holds more sorted runs than it may | (ii) |
//! | `file-staleness(1d,7d)` | a table of a level is older than that, and older data lie below it | (iii) |
//! | `space-amplification(200)` | all runs but the oldest hold more than so many percent of its bytes: RocksDB's estimate | (iv) |
//! | `tombstone-ttl(1h)` | the oldest tombstone of a table is older than the level's share of the time; a list gives the age for each level | (v), Lethe §4.1 |
//! | `tombstone-density(50)` | so many percent of a table's entries are tombstones | (vi), Table 2 TSD |
//! | `read-triggered(16KiB)` | a table was read once per so many bytes of it, and older data lie below it | (vii), LevelDB's seek compaction |
//! | `prefix(1GiB,5)` | neighbouring runs together reach a size, or are many; see [`super::size_tiered`] | AsterixDB |
//! | `concurrent(3,10)` | the newest runs are so many, and alike in size; see [`super::size_tiered`] | AsterixDB |
//! | `manual` | never: only on request | |

use std::fmt;
use std::str::FromStr;

use super::size_tiered::{Concurrent, Prefix, SizeTiered};
use crate::design::PerLevel;
use crate::error::ParseError;
use crate::text::call;
use crate::units::{format_bytes, format_micros, parse_bytes, parse_micros};

/// An event on which a level is compacted.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    /// A level holds more bytes than its capacity.
    LevelSaturation,
    /// A level holds more tables than it may; `None` for as many as fit its capacity.
    FileCount(Option<PerLevel<u32>>),
    /// A level holds more sorted runs than it may.
    RunCount,
    /// A table is older than this, in microseconds, by level.
    FileStaleness(PerLevel<u64>),
    /// All runs but the oldest hold more than this many percent of its bytes.
    SpaceAmplification(u32),
    /// Tombstones are older than this, in microseconds: in all where one value is given, of which
    /// each level has a share; in each level where a list is.
    TombstoneTtl(PerLevel<u64>),
    /// At least this many percent of a table's entries are tombstones.
    TombstoneDensity(u32),
    /// A table was read once per this many bytes of its size.
    ReadTriggered(u64),
    /// Runs have gathered that belong together by their size, whatever their levels.
    SizeTiered(SizeTiered),
    /// Only on request.
    Manual,
}

/// A trigger without its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "as the variants of `Trigger`")]
pub enum TriggerKind {
    LevelSaturation,
    FileCount,
    RunCount,
    FileStaleness,
    SpaceAmplification,
    TombstoneTtl,
    TombstoneDensity,
    ReadTriggered,
    Prefix,
    Concurrent,
    Manual,
}

impl TriggerKind {
    /// All kinds, with their names.
    pub const ALL: [(TriggerKind, &'static str); 11] = [
        (TriggerKind::LevelSaturation, "level-saturation"),
        (TriggerKind::FileCount, "file-count"),
        (TriggerKind::RunCount, "run-count"),
        (TriggerKind::FileStaleness, "file-staleness"),
        (TriggerKind::SpaceAmplification, "space-amplification"),
        (TriggerKind::TombstoneTtl, "tombstone-ttl"),
        (TriggerKind::TombstoneDensity, "tombstone-density"),
        (TriggerKind::ReadTriggered, "read-triggered"),
        (TriggerKind::Prefix, "prefix"),
        (TriggerKind::Concurrent, "concurrent"),
        (TriggerKind::Manual, "manual"),
    ];

    /// The name, as in text forms.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Whether it looks at how full a level is, as opposed to at single tables or the whole tree.
    pub fn is_load(self) -> bool {
        matches!(self, Self::LevelSaturation | Self::FileCount | Self::RunCount)
    }

    /// Whether it looks at the runs of the whole tree by their size.
    pub fn is_size_tiered(self) -> bool {
        matches!(self, Self::Prefix | Self::Concurrent)
    }

    /// A measured value or a threshold, with its unit.
    pub fn quantity(self, value: u64) -> String {
        match self {
            Self::LevelSaturation => format!("{value} bytes"),
            Self::FileCount => format!("{value} tables"),
            Self::RunCount | Self::Prefix | Self::Concurrent => format!("{value} runs"),
            Self::FileStaleness | Self::TombstoneTtl => format_micros(value),
            Self::SpaceAmplification | Self::TombstoneDensity => format!("{value} %"),
            Self::ReadTriggered => format!("{value} reads"),
            Self::Manual => value.to_string(),
        }
    }
}

impl Trigger {
    /// What it is, without its settings.
    pub fn kind(&self) -> TriggerKind {
        match self {
            Self::LevelSaturation => TriggerKind::LevelSaturation,
            Self::FileCount(_) => TriggerKind::FileCount,
            Self::RunCount => TriggerKind::RunCount,
            Self::FileStaleness(_) => TriggerKind::FileStaleness,
            Self::SpaceAmplification(_) => TriggerKind::SpaceAmplification,
            Self::TombstoneTtl(_) => TriggerKind::TombstoneTtl,
            Self::TombstoneDensity(_) => TriggerKind::TombstoneDensity,
            Self::ReadTriggered(_) => TriggerKind::ReadTriggered,
            Self::SizeTiered(SizeTiered::Prefix(_)) => TriggerKind::Prefix,
            Self::SizeTiered(SizeTiered::Concurrent(_)) => TriggerKind::Concurrent,
            Self::Manual => TriggerKind::Manual,
        }
    }
}

impl fmt::Display for TriggerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind();
        match self {
            Self::LevelSaturation | Self::RunCount | Self::Manual | Self::FileCount(None) => {
                write!(f, "{name}")
            }
            Self::FileCount(Some(counts)) => write!(f, "{name}({counts})"),
            Self::FileStaleness(micros) | Self::TombstoneTtl(micros) => {
                let words = micros.values().iter().map(|&micros| format_micros(micros));
                write!(f, "{name}({})", words.collect::<Vec<_>>().join(","))
            }
            Self::SpaceAmplification(percent) | Self::TombstoneDensity(percent) => {
                write!(f, "{name}({percent})")
            }
            Self::ReadTriggered(bytes) => write!(f, "{name}({})", format_bytes(*bytes)),
            Self::SizeTiered(policy) => write!(f, "{policy}"),
        }
    }
}

impl FromStr for Trigger {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let wanted = |expected: &str| ParseError::new("trigger", text, expected);
        let (name, argument) = call(text)?;
        let kind = TriggerKind::ALL.iter().find(|(_, known)| *known == name);
        let Some((kind, _)) = kind else {
            let names: Vec<&str> = TriggerKind::ALL.iter().map(|(_, name)| *name).collect();
            return Err(wanted(&format!("one of {}", names.join(", "))));
        };
        let trigger = match (kind, argument) {
            (TriggerKind::LevelSaturation, None) => Self::LevelSaturation,
            (TriggerKind::RunCount, None) => Self::RunCount,
            (TriggerKind::Manual, None) => Self::Manual,
            (TriggerKind::FileCount, None) => Self::FileCount(None),
            (TriggerKind::FileCount, Some(counts)) => {
                let expected = || wanted("tables by level, as in 'file-count(4,40)'");
                let counts: PerLevel<u32> = counts.parse().map_err(|_| expected())?;
                if counts.values().contains(&0) {
                    return Err(wanted("at least 1 table"));
                }
                Self::FileCount(Some(counts))
            }
            (TriggerKind::FileStaleness, Some(times)) => {
                Self::FileStaleness(parse_times(times, text)?)
            }
            (TriggerKind::TombstoneTtl, Some(times)) => {
                Self::TombstoneTtl(parse_times(times, text)?)
            }
            (TriggerKind::SpaceAmplification, Some(percent)) => {
                Self::SpaceAmplification(parse_percent(percent, 1_000_000, text)?)
            }
            (TriggerKind::TombstoneDensity, Some(percent)) => {
                Self::TombstoneDensity(parse_percent(percent, 100, text)?)
            }
            (TriggerKind::ReadTriggered, bytes) => match parse_bytes(bytes.unwrap_or("16KiB"))? {
                0 => return Err(wanted("at least 1 byte a read")),
                bytes => Self::ReadTriggered(bytes),
            },
            (TriggerKind::Prefix, given) => {
                Self::SizeTiered(SizeTiered::Prefix(Prefix::parse(given, text)?))
            }
            (TriggerKind::Concurrent, given) => {
                Self::SizeTiered(SizeTiered::Concurrent(Concurrent::parse(given, text)?))
            }
            (TriggerKind::SpaceAmplification, None) => Self::SpaceAmplification(200),
            (TriggerKind::TombstoneDensity, None) => Self::TombstoneDensity(50),
            (TriggerKind::FileStaleness | TriggerKind::TombstoneTtl, None) => {
                return Err(wanted("a time, as in 'tombstone-ttl(1h)'"));
            }
            (_, Some(_)) => return Err(wanted("no argument")),
        };
        Ok(trigger)
    }
}

fn parse_times(text: &str, trigger: &str) -> Result<PerLevel<u64>, ParseError> {
    let times = text.split(',').map(parse_micros).collect::<Result<Vec<u64>, _>>()?;
    let expected = "times above zero, that do not fall from level to level";
    let bad = || ParseError::new("trigger", trigger, expected);
    if times.contains(&0) || !times.is_sorted() {
        return Err(bad());
    }
    let mut times = times.into_iter();
    times.next().map(|first| PerLevel::new(first, times)).ok_or_else(bad)
}

fn parse_percent(text: &str, most: u32, trigger: &str) -> Result<u32, ParseError> {
    let number = text.trim().trim_end_matches('%').trim_end().parse().ok();
    number
        .filter(|percent| (1..=most).contains(percent))
        .ok_or_else(|| ParseError::new("trigger", trigger, format!("1 to {most} percent")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_print_as_they_parse() {
        for text in [
            "level-saturation",
            "file-count",
            "file-count(4,40)",
            "run-count",
            "file-staleness(1h,2d)",
            "space-amplification(200)",
            "tombstone-ttl(90s)",
            "tombstone-density(50)",
            "read-triggered(16KiB)",
            "prefix(1GiB,5,1.2)",
            "concurrent(3,10,1.2)",
            "manual",
        ] {
            assert_eq!(text.parse::<Trigger>().unwrap().to_string(), text);
        }
        assert_eq!("tombstone-density(5 %)".parse(), Ok(Trigger::TombstoneDensity(5)));
    }

    #[test]
    fn triggers_without_sense_are_refused() {
        for text in [
            "",
            "often",
            "run-count(3)",
            "file-count(0)",
            "tombstone-ttl",
            "tombstone-ttl(0s)",
            "file-staleness(2d,1d)",
            "tombstone-density(101)",
            "space-amplification(0)",
            "read-triggered(0)",
            "level-saturation(",
            "prefix(0)",
            "prefix(1GiB,1)",
            "prefix(1GiB,5,0)",
            "prefix(1GiB,5,1.2,7)",
            "concurrent(1)",
            "concurrent(4,3)",
            "concurrent(3,10,nan)",
        ] {
            assert!(text.parse::<Trigger>().is_err(), "{text}");
        }
    }
}
