//! Records and arrival times.

use std::fmt;
use std::str::FromStr;

use terrane_policy::ParseError;

use crate::keys::Skew;
use crate::mix::WriteMix;

/// The writes of a simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteLoad {
    /// The number of keys.
    pub records: f64,
    /// The size of a key, in bytes.
    pub key_bytes: f64,
    /// The size of a key and its value together, in bytes.
    pub record_bytes: f64,
    /// How updates are distributed over keys.
    pub skew: Skew,
    /// The arrival process.
    pub arrival: Arrival,
    /// The number of concurrent writers.
    pub writers: u32,
    /// The shares of kinds of writes.
    pub mix: WriteMix,
    /// Reads that accompany the writes.
    pub reads: ReadLoad,
}

/// Reads, in proportion to writes, that share the device with flushes and merges.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadLoad {
    /// Lookups of existing keys per write.
    pub gets: f64,
    /// Lookups of missing keys per write.
    pub missing: f64,
    /// Scans per write.
    pub scans: f64,
    /// The entries that a scan reads.
    pub scan_entries: f64,
    /// The share of blocks that are not in memory.
    pub cold: f64,
}

impl WriteLoad {
    /// Returns the mean bytes of key and value per write.
    pub fn bytes_per_write(&self) -> f64 {
        self.mix.bytes(self.key_bytes, self.record_bytes)
    }
}

/// The arrival process of writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// A closed loop: each writer writes again when its last write completes
    /// (performance-stability §3.2).
    Closed,
    /// An open system: this many arrivals per second.
    Constant(f64),
    /// An open system whose rate alternates between two values.
    Burst {
        /// Arrivals per second between bursts.
        low: f64,
        /// The time between bursts, in seconds.
        low_seconds: f64,
        /// Arrivals per second in a burst.
        high: f64,
        /// The length of a burst, in seconds.
        high_seconds: f64,
    },
}

impl Arrival {
    /// Returns the process with all rates multiplied by a factor; a closed loop stays closed.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        match *self {
            Self::Closed => Self::Closed,
            Self::Constant(rate) => Self::Constant(rate * factor),
            Self::Burst { low, low_seconds, high, high_seconds } => {
                Self::Burst { low: low * factor, low_seconds, high: high * factor, high_seconds }
            }
        }
    }

    /// Returns the mean number of arrivals per second; `None` for a closed loop.
    pub fn mean(&self) -> Option<f64> {
        match *self {
            Self::Closed => None,
            Self::Constant(rate) => Some(rate),
            Self::Burst { low, low_seconds, high, high_seconds } => {
                let writes = low * low_seconds + high * high_seconds;
                Some(writes / (low_seconds + high_seconds))
            }
        }
    }

    /// Returns the number of arrivals per second at a time in seconds; `None` for a closed loop.
    pub fn rate_at(&self, seconds: f64) -> Option<f64> {
        self.at(seconds).0
    }

    /// Returns the arrival rate at time `now`, `None` for a closed loop, and the time of its next
    /// change.
    pub(crate) fn at(&self, now: f64) -> (Option<f64>, f64) {
        match *self {
            Self::Closed => (None, f64::INFINITY),
            Self::Constant(rate) => (Some(rate), f64::INFINITY),
            Self::Burst { low, low_seconds, high, high_seconds } => {
                let period = low_seconds + high_seconds;
                // A time just before a change results from rounding and counts as after the change.
                let round = ((now + 1e-6) / period).floor();
                let within = now - round * period;
                if within + 1e-6 < low_seconds {
                    (Some(low), round * period + low_seconds)
                } else {
                    (Some(high), (round + 1.0) * period)
                }
            }
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Constant(rate) => write!(f, "constant({rate})"),
            Self::Burst { low, low_seconds, high, high_seconds } => {
                write!(f, "burst({low},{low_seconds}s,{high},{high_seconds}s)")
            }
        }
    }
}

impl FromStr for Arrival {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let expected = "closed, constant(WRITES) or burst(WRITES,SECONDS,WRITES,SECONDS)";
        let bad = || ParseError::new("arrival", text, expected);
        if text == "closed" {
            return Ok(Self::Closed);
        }
        let (name, arguments) =
            text.strip_suffix(')').and_then(|text| text.split_once('(')).ok_or_else(bad)?;
        let numbers =
            arguments.split(',').map(|word| word.trim().trim_end_matches('s').parse::<f64>());
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().map_err(|_| bad())?;
        if numbers.iter().any(|number| !number.is_finite() || *number <= 0.0) {
            return Err(bad());
        }
        match (name, &numbers[..]) {
            ("constant", &[rate]) => Ok(Self::Constant(rate)),
            ("burst", &[low, low_seconds, high, high_seconds]) => {
                Ok(Self::Burst { low, low_seconds, high, high_seconds })
            }
            _ => Err(bad()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_alternates_between_burst_and_pause() {
        let arrival: Arrival = "burst(2000,1500s,8000,300s)".parse().unwrap();
        assert_eq!(arrival.at(0.0), (Some(2000.0), 1500.0));
        assert_eq!(arrival.at(1500.0), (Some(8000.0), 1800.0));
        assert_eq!(arrival.at(1799.0), (Some(8000.0), 1800.0));
        assert_eq!(arrival.at(1800.0), (Some(2000.0), 3300.0));
        assert_eq!(arrival.to_string(), "burst(2000,1500s,8000,300s)");
    }

    #[test]
    fn invalid_arrivals_are_rejected() {
        for text in ["", "open", "constant", "constant()", "constant(-1)", "burst(1,2)", "closed("]
        {
            assert!(text.parse::<Arrival>().is_err(), "{text}");
        }
    }
}
