//! How much of the log is kept for readers of changes.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use terrane_policy::{ParseError, units};

/// The smallest number of bytes: room for a few segments.
const BYTES_MIN: u64 = 1 << 20;

/// The shortest time, in microseconds.
const MICROS_MIN: u64 = 1_000_000;

/// How much of the log [`Options::keep_changes`](crate::Options::keep_changes) keeps for
/// [`Db::changes`](crate::Db::changes) after its writes have been flushed.
///
/// ```
/// # use terrane::KeepChanges;
/// # use std::time::Duration;
/// let day = KeepChanges::time(Duration::from_secs(24 * 3600));
/// assert_eq!(day.to_string(), "1d");
/// let bounded = day.and_bytes(10 << 30);
/// assert_eq!(bounded, "1d,10GiB".parse().unwrap());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeepChanges {
    /// 0 for no limit.
    bytes: u64,
    /// 0 for no limit.
    micros: u64,
}

impl KeepChanges {
    /// Keeps nothing: flushed parts of the log are freed, and [`Db::changes`](crate::Db::changes) is
    /// refused.
    pub const NONE: Self = Self { bytes: 0, micros: 0 };

    /// Keeps flushed log files of at most this many bytes in total. The oldest are removed as new
    /// ones follow.
    #[must_use]
    pub fn bytes(bytes: u64) -> Self {
        Self { bytes: bytes.max(1), micros: 0 }
    }

    /// Keeps changes for this time, whatever space they take.
    #[must_use]
    pub fn time(time: Duration) -> Self {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self { bytes: 0, micros: micros.max(1) }
    }

    /// Limits the bytes as well: whichever limit is reached first applies.
    #[must_use]
    pub fn and_bytes(self, bytes: u64) -> Self {
        Self { bytes: bytes.max(1), ..self }
    }

    pub(crate) fn is_some(self) -> bool {
        self != Self::NONE
    }

    pub(crate) fn is_valid(self) -> bool {
        (self.bytes == 0 || self.bytes >= BYTES_MIN)
            && (self.micros == 0 || self.micros >= MICROS_MIN)
    }

    pub(super) fn bytes_max(self) -> u64 {
        if self.bytes == 0 { u64::MAX } else { self.bytes }
    }

    pub(super) fn age_max_micros(self) -> u64 {
        if self.micros == 0 { u64::MAX } else { self.micros }
    }
}

impl fmt::Display for KeepChanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = (self.micros > 0).then(|| units::format_micros(self.micros));
        let bytes = (self.bytes > 0).then(|| units::format_bytes(self.bytes));
        let parts: Vec<String> = time.into_iter().chain(bytes).collect();
        f.write_str(if parts.is_empty() { "none" } else { "" })?;
        f.write_str(&parts.join(","))
    }
}

impl FromStr for KeepChanges {
    type Err = ParseError;

    /// Parses `none`, `10GiB`, `24h` or `24h,10GiB`. A number with `m` is a time in minutes.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        if text == "none" {
            return Ok(Self::NONE);
        }
        let time = |text: &str| units::parse_micros(text).map(Duration::from_micros);
        match text.split_once(',') {
            Some((first, second)) => {
                Ok(Self::time(time(first)?).and_bytes(units::parse_bytes(second.trim())?))
            }
            None => {
                time(text).map(Self::time).or_else(|_| units::parse_bytes(text).map(Self::bytes))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip_and_limits_are_checked() {
        for text in ["none", "1MiB", "10GiB", "1s", "1d", "1d,10GiB"] {
            let keep: KeepChanges = text.parse().unwrap();
            assert_eq!(keep.to_string(), text);
            assert!(keep.is_valid(), "{text}");
        }
        assert_eq!("10m".parse(), Ok(KeepChanges::time(Duration::from_secs(600))));
        for text in ["", "1GiB,1d", "1d,", "1d,1d", "soon"] {
            assert!(text.parse::<KeepChanges>().is_err(), "{text}");
        }
        for text in ["0", "1KiB", "1ms", "1d,1KiB"] {
            assert!(!text.parse::<KeepChanges>().unwrap().is_valid(), "{text}");
        }
    }
}
