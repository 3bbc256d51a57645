//! Records, and when writes come.

use std::fmt;
use std::str::FromStr;

use terrane_policy::ParseError;

use crate::keys::Skew;

/// What is written.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Keys that there are.
    pub records: f64,
    /// Bytes of a key and its value.
    pub record_bytes: f64,
    /// Which keys are updated.
    pub skew: Skew,
    /// When.
    pub arrival: Arrival,
    /// Writers that write at the same time.
    pub writers: u32,
}

/// When writes come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// Each writer writes as soon as its last write is done (performance-stability §3.2, closed).
    Closed,
    /// So many a second, whatever becomes of them (open).
    Constant(f64),
    /// So many a second for a time, then more for another time, and so on.
    Burst {
        /// Writes a second between bursts.
        low: f64,
        /// How long between bursts, in seconds.
        low_seconds: f64,
        /// Writes a second in a burst.
        high: f64,
        /// How long a burst is, in seconds.
        high_seconds: f64,
    },
}

impl Arrival {
    /// Writes a second at a time, and when that changes; no number for writers that do not wait.
    pub(crate) fn at(&self, now: f64) -> (Option<f64>, f64) {
        match *self {
            Self::Closed => (None, f64::INFINITY),
            Self::Constant(rate) => (Some(rate), f64::INFINITY),
            Self::Burst { low, low_seconds, high, high_seconds } => {
                let period = low_seconds + high_seconds;
                // A time that is a change but for rounding is after it.
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
    fn bursts_come_and_go() {
        let arrival: Arrival = "burst(2000,1500s,8000,300s)".parse().unwrap();
        assert_eq!(arrival.at(0.0), (Some(2000.0), 1500.0));
        assert_eq!(arrival.at(1500.0), (Some(8000.0), 1800.0));
        assert_eq!(arrival.at(1799.0), (Some(8000.0), 1800.0));
        assert_eq!(arrival.at(1800.0), (Some(2000.0), 3300.0));
        assert_eq!(arrival.to_string(), "burst(2000,1500s,8000,300s)");
    }

    #[test]
    fn arrivals_that_make_no_sense_are_refused() {
        for text in ["", "open", "constant", "constant()", "constant(-1)", "burst(1,2)", "closed("]
        {
            assert!(text.parse::<Arrival>().is_err(), "{text}");
        }
    }
}
