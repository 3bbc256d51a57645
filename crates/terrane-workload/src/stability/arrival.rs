//! The arrival of writes, a value with a text form.
//!
//! Rates of bursts are writes per second, or a percentage of the maximum measured by the testing phase.
//! The paper's example is `burst(2000,25m,8000,5m)` (§5.2.3).

use std::fmt;
use std::str::FromStr;

use super::schedule::Schedule;
use crate::error::ParseError;

/// The arrival process of the running phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Arrival {
    /// Evenly spaced arrivals, at the utilization of the run: `constant`.
    Constant,
    /// Arrivals in bursts: `burst(LOW,SECONDS,HIGH,SECONDS)`.
    Burst {
        /// The rate between bursts, and how long it lasts in seconds.
        low: (Rate, f64),
        /// The rate during a burst, and how long it lasts in seconds.
        high: (Rate, f64),
    },
}

/// An arrival rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// Writes per second: `2000`.
    PerSecond(f64),
    /// A percentage of the maximum: `80%`.
    OfMaximum(f64),
}

impl Rate {
    fn per_second(self, maximum: f64) -> f64 {
        match self {
            Self::PerSecond(rate) => rate,
            Self::OfMaximum(percent) => percent / 100.0 * maximum,
        }
    }
}

impl Arrival {
    /// The accepted texts, for messages and help.
    pub const SYNTAX: &str = "constant, or burst(LOW,SECONDS,HIGH,SECONDS) with rates in writes a \
                              second or percent of the maximum, such as burst(50%,25,200%,5)";

    /// Returns the schedule for an engine with a maximum of `maximum` writes per second. Constant
    /// arrivals come at the fraction `utilization` of this maximum.
    pub fn schedule(&self, maximum: f64, utilization: f64) -> Schedule {
        match *self {
            Self::Constant => Schedule::constant(maximum * utilization),
            Self::Burst { low, high } => Schedule::burst(
                low.0.per_second(maximum),
                low.1,
                high.0.per_second(maximum),
                high.1,
            ),
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => write!(f, "{rate}"),
            Self::OfMaximum(percent) => write!(f, "{percent}%"),
        }
    }
}

impl fmt::Display for Arrival {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant => f.write_str("constant"),
            Self::Burst { low, high } => {
                write!(f, "burst({},{}s,{},{}s)", low.0, low.1, high.0, high.1)
            }
        }
    }
}

impl FromStr for Arrival {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("arrival", text, Self::SYNTAX);
        let text = text.trim();
        if text == "constant" {
            return Ok(Self::Constant);
        }
        let inner = text.strip_prefix("burst(").and_then(|rest| rest.strip_suffix(')'));
        let parts: Vec<&str> = inner.ok_or_else(bad)?.split(',').map(str::trim).collect();
        let [low, low_seconds, high, high_seconds] = parts[..] else { return Err(bad()) };
        let piece = |rate, seconds| Some((parse_rate(rate)?, parse_seconds(seconds)?));
        let low = piece(low, low_seconds).ok_or_else(bad)?;
        let high = piece(high, high_seconds).ok_or_else(bad)?;
        let is_silent = |rate| matches!(rate, Rate::PerSecond(r) | Rate::OfMaximum(r) if r == 0.0);
        if is_silent(low.0) && is_silent(high.0) {
            return Err(bad());
        }
        Ok(Self::Burst { low, high })
    }
}

fn parse_rate(text: &str) -> Option<Rate> {
    let number = |text: &str| {
        let value: f64 = text.trim().parse().ok()?;
        (value == 0.0 || (1e-3..=1e9).contains(&value)).then_some(value)
    };
    match text.strip_suffix('%') {
        Some(percent) => number(percent).map(Rate::OfMaximum),
        None => number(text).map(Rate::PerSecond),
    }
}

/// Parses seconds, or minutes if the text ends in `m`.
fn parse_seconds(text: &str) -> Option<f64> {
    let (number, factor) = match (text.strip_suffix('m'), text.strip_suffix('s')) {
        (Some(minutes), _) => (minutes, 60.0),
        (_, Some(seconds)) => (seconds, 1.0),
        _ => (text, 1.0),
    };
    let seconds = number.trim().parse::<f64>().ok()? * factor;
    (1e-3..=1e6).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_parse_and_print_back() {
        for text in ["constant", "burst(2000,1500s,8000,300s)", "burst(50%,2.5s,200%,5s)"] {
            assert_eq!(text.parse::<Arrival>().unwrap().to_string(), text);
        }
        let minutes: Arrival = "burst( 2000, 25m, 8000, 5m )".parse().unwrap();
        assert_eq!(minutes.to_string(), "burst(2000,1500s,8000,300s)");
        let schedule = minutes.schedule(9e9, 0.95);
        assert!((schedule.mean_per_second() - 3000.0).abs() < 1e-6);
        let half: Arrival = "burst(0,1,50%,1)".parse().unwrap();
        assert!((half.schedule(1000.0, 0.95).mean_per_second() - 250.0).abs() < 1e-6);
        let constant = Arrival::Constant.schedule(1000.0, 0.95);
        assert!((constant.mean_per_second() - 950.0).abs() < 1e-6);
    }

    #[test]
    fn invalid_arrivals_are_rejected() {
        for text in [
            "",
            "poisson",
            "burst",
            "burst()",
            "burst(1,2,3)",
            "burst(1,2,3,4,5)",
            "burst(1,2,3,4",
            "burst(-1,2,3,4)",
            "burst(1,0,3,4)",
            "burst(0,1,0%,1)",
            "burst(NaN,1,1,1)",
            "burst(1,1,inf,1)",
            "burst(1,1h,1,1)",
        ] {
            assert!(text.parse::<Arrival>().is_err(), "{text}");
        }
    }
}
