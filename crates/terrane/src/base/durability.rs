//! The failures that an acknowledged write survives.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::base::error::Error;

/// The failures that a write survives once the call returns.
///
/// | durability | death of the process | power failure | cost of a write |
/// |---|---|---|---|
/// | `None` | lost until its memtable is flushed | lost | memory only; the log is not written |
/// | `Process` | kept | the last writes may be lost | a copy into the log; one system call, none on ext4 and tmpfs |
/// | `Interval` | kept | the writes of one interval may be lost | as `Process`, plus periodic syncs |
/// | `Sync` | kept | kept | waits for a sync, shared with other writers |
///
/// A crash loses only the last writes: if a write survives, so do all writes before it. Writes with
/// `None` are an exception: they are not in the log, and may be lost although later writes with
/// another durability survive. While a [checkpoint](crate::Db::checkpoint) is being made, they are
/// logged, so that it contains every write up to its last one; they fail if the disk of the log is
/// full. Such a write survives the death of the process, although earlier writes with `None` may be lost.
///
/// Dropping a database without [`Db::close`](crate::Db::close) loses the same writes as the death of
/// the process: those with `None` that were not flushed. `close` flushes them.
///
/// On Linux the log is written through a memory map if its file system is ext2, ext3, ext4 or tmpfs,
/// and with one system call for each record on any other. On a full disk, a map would kill the process
/// with SIGBUS if the file system copies on write: Btrfs and ZFS always do, XFS for shared blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Durability {
    /// Survives neither a crash nor a drop of the database without [`Db::close`](crate::Db::close),
    /// until the memtable is flushed.
    None,
    /// Survives the death of the process, not a power failure.
    #[default]
    Process,
    /// Survives the death of the process at once, and a power failure after at most this time.
    Interval(Duration),
    /// Survives a power failure.
    Sync,
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Process => f.write_str("process"),
            Self::Interval(time) => {
                let millis = time.as_millis();
                // The largest unit of which it is a multiple, as a user would write it.
                let units = [(3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
                let unit = units.into_iter().find(|(size, _)| millis > 0 && millis % size == 0);
                let (size, unit) = unit.unwrap_or((1, "ms"));
                write!(f, "interval({}{unit})", millis / size)
            }
            Self::Sync => f.write_str("sync"),
        }
    }
}

impl FromStr for Durability {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = || {
            let expected = "none, process, interval(TIME) with a time such as 100ms or 2s, or sync";
            Error::invalid("durability", format!("'{text}'"), expected)
        };
        match text {
            "none" => Ok(Self::None),
            "process" => Ok(Self::Process),
            "sync" => Ok(Self::Sync),
            _ => {
                let time = text.strip_prefix("interval(").and_then(|rest| rest.strip_suffix(')'));
                let time = time.and_then(parse_duration).ok_or_else(bad)?;
                if time < Duration::from_millis(1) { Err(bad()) } else { Ok(Self::Interval(time)) }
            }
        }
    }
}

/// Parses an integer with the unit `ms`, `s`, `m`, `min` or `h`.
fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" | "min" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "h" => Some(Duration::from_secs(number.checked_mul(3600)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durabilities_round_trip_as_text() {
        for text in ["none", "process", "interval(100ms)", "interval(90s)", "interval(1h)", "sync"]
        {
            assert_eq!(text.parse::<Durability>().unwrap().to_string(), text);
        }
        for (text, seconds) in [("interval(1h)", 3600), ("interval(2min)", 120)] {
            let time = Duration::from_secs(seconds);
            assert_eq!(text.parse::<Durability>().unwrap(), Durability::Interval(time));
        }
        assert_eq!("interval(120s)".parse::<Durability>().unwrap().to_string(), "interval(2m)");
        for text in
            ["", "Sync", "interval", "interval()", "interval(0ms)", "interval(5)", "interval(1d)"]
        {
            assert!(text.parse::<Durability>().is_err(), "{text}");
        }
    }
}
