//! Which index is chosen next.
//!
//! [`Distribution`] is the choice as a value with a text form; [`IndexChooser`] carries it out for
//! one client thread.

mod chooser;

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

pub use chooser::IndexChooser;

/// The exponent of YCSB, for texts that leave it out.
pub const THETA_DEFAULT: f64 = 0.99;

/// The standard deviation of the compaction paper (§5.2.1), in percent of the count.
pub const DEVIATION_DEFAULT: f64 = 34.0;

/// How indexes are chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// All with equal chances: `uniform`.
    Uniform,
    /// The exact Zipf distribution, its ranks scattered over the indexes: `zipf:THETA`.
    Zipf {
        /// The exponent, above 0.
        theta: f64,
    },
    /// What YCSB draws, bit for bit: `ycsb-zipf:THETA`.
    YcsbZipf {
        /// The exponent, between 0 and 1.
        theta: f64,
    },
    /// The exact Zipf distribution over age, the newest the most likely: `latest:THETA`.
    Latest {
        /// The exponent, above 0.
        theta: f64,
    },
    /// The normal distribution around the middle index: `normal:PERCENT`. What would lie outside is
    /// drawn again.
    Normal {
        /// The standard deviation, as percent of the count, above 0.
        percent: f64,
    },
    /// One after the other, from a start that differs by thread: `sequential`.
    Sequential,
}

impl Distribution {
    /// The texts that are understood, for messages and help.
    pub const SYNTAX: &str =
        "uniform, normal:PERCENT, zipf:THETA, ycsb-zipf:THETA, latest:THETA or sequential";
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf { theta } => write!(f, "zipf:{theta}"),
            Self::YcsbZipf { theta } => write!(f, "ycsb-zipf:{theta}"),
            Self::Latest { theta } => write!(f, "latest:{theta}"),
            Self::Normal { percent } => write!(f, "normal:{percent}"),
            Self::Sequential => f.write_str("sequential"),
        }
    }
}

impl FromStr for Distribution {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |expected: &str| ParseError::new("distribution", text, expected);
        let (name, exponent) = match text.split_once(':') {
            None => (text, None),
            Some((name, exponent)) => {
                (name, Some(exponent.parse().map_err(|_| bad("a number such as 0.99"))?))
            }
        };
        if name == "normal" {
            let percent = exponent.unwrap_or(DEVIATION_DEFAULT);
            // Far beyond the count it is the uniform distribution.
            let is_valid = percent > 0.0 && percent <= 1000.0;
            return is_valid
                .then_some(Self::Normal { percent })
                .ok_or_else(|| bad("a standard deviation in percent, above 0, at most 1000"));
        }
        let theta = exponent.unwrap_or(THETA_DEFAULT);
        let distribution = match name {
            "uniform" if exponent.is_none() => return Ok(Self::Uniform),
            "sequential" if exponent.is_none() => return Ok(Self::Sequential),
            "zipf" => Self::Zipf { theta },
            "ycsb-zipf" => Self::YcsbZipf { theta },
            "latest" => Self::Latest { theta },
            _ => return Err(bad(Self::SYNTAX)),
        };
        if name == "ycsb-zipf" && !(theta > 0.0 && theta < 1.0) {
            return Err(bad("an exponent between 0 and 1: the formula has no others"));
        }
        // Beyond 100 every draw is rank 0, and powers overflow.
        if !(theta > 0.0 && theta <= 100.0) {
            return Err(bad("an exponent above 0, at most 100"));
        }
        Ok(distribution)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_parse_and_print_back() {
        for text in [
            "uniform",
            "zipf:0.99",
            "zipf:1.2",
            "ycsb-zipf:0.5",
            "latest:0.99",
            "normal:34",
            "sequential",
        ] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        assert_eq!("zipf".parse(), Ok(Distribution::Zipf { theta: 0.99 }));
        assert_eq!("latest".parse(), Ok(Distribution::Latest { theta: 0.99 }));
    }

    #[test]
    fn distributions_without_sense_are_refused() {
        for text in [
            "",
            "zip",
            "zipf:",
            "zipf:x",
            "zipf:0",
            "zipf:-1",
            "zipf:NaN",
            "ycsb-zipf:1",
            "uniform:1",
            "normal:0",
            "normal:x",
        ] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }
}
