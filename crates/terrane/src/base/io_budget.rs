//! The I/O budget of flushes, compactions and ingests.

use std::fmt;
use std::str::FromStr;

use terrane_policy::{ParseError, units};

/// The minimum budget in bytes per second. With a smaller budget a flush would stall writers for
/// minutes.
const LEAST: u64 = 64 << 10;

/// The bandwidth that flushes, compactions and ingests may use for writes (performance-stability §3.1).
///
/// Flushes have priority, because writers wait for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum IoBudget {
    /// No limit.
    #[default]
    Unlimited,
    /// A number of bytes per second.
    Total(u64),
    /// A number of bytes per second, minus the bytes that the application itself reads and writes
    /// to the log, but at least a tenth of the number (SILK, ATC 2019, §4).
    Leftover(u64),
}

impl IoBudget {
    /// Returns whether the budget is at least 64 KiB per second.
    pub fn is_valid(self) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Total(bytes) | Self::Leftover(bytes) => bytes >= LEAST,
        }
    }

    /// The limit in bytes per second if the application itself uses `users` bytes per second.
    pub(crate) fn bytes_per_second(self, users: f64) -> Option<f64> {
        match self {
            Self::Unlimited => None,
            Self::Total(bytes) => Some(bytes as f64),
            Self::Leftover(bytes) => Some((bytes as f64 - users).max(bytes as f64 / 10.0)),
        }
    }
}

impl fmt::Display for IoBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("none"),
            Self::Total(bytes) => f.write_str(&units::format_bytes(*bytes)),
            Self::Leftover(bytes) => write!(f, "leftover({})", units::format_bytes(*bytes)),
        }
    }
}

impl FromStr for IoBudget {
    type Err = ParseError;

    /// Parses `none`, `100MB` or `leftover(100MB)`; `/s` may follow a size.
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let text = text.trim();
        let bytes = |text: &str| units::parse_bytes(text.strip_suffix("/s").unwrap_or(text));
        if text == "none" {
            return Ok(Self::Unlimited);
        }
        match text.strip_prefix("leftover(").and_then(|rest| rest.strip_suffix(')')) {
            Some(inner) => bytes(inner).map(Self::Leftover),
            None => bytes(text).map(Self::Total),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_print_as_they_parse() {
        for text in ["none", "100MiB", "leftover(64KiB)"] {
            assert_eq!(text.parse::<IoBudget>().unwrap().to_string(), text);
        }
        assert_eq!("100MB/s".parse(), Ok(IoBudget::Total(100_000_000)));
        assert!("much".parse::<IoBudget>().is_err() && "leftover(1".parse::<IoBudget>().is_err());
        assert!(!IoBudget::Total(1000).is_valid());
    }

    #[test]
    fn merges_have_what_users_leave_and_a_tenth() {
        let leftover = IoBudget::Leftover(100 << 10);
        assert_eq!(leftover.bytes_per_second(f64::from(60 << 10)), Some(f64::from(40 << 10)));
        assert_eq!(leftover.bytes_per_second(1e9), Some(f64::from(10 << 10)));
        assert_eq!(IoBudget::Total(1 << 20).bytes_per_second(1e9), Some(f64::from(1 << 20)));
        assert_eq!(IoBudget::Unlimited.bytes_per_second(0.0), None);
    }
}
