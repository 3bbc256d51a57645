//! How clients choose indexes: uniformly, skewed or in order.
//!
//! [`Distribution`] is a value with a text form; [`IndexChooser`] draws from it for one client
//! thread.

mod chooser;

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

pub use chooser::IndexChooser;

/// The default exponent, which is YCSB's.
pub const THETA_DEFAULT: f64 = 0.99;

/// The standard deviation that the compaction paper uses (§5), as a fraction of the number of
/// indexes.
pub const DEVIATION_DEFAULT: f64 = 0.34;

/// How a client chooses indexes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// Uniform: `uniform`.
    Uniform,
    /// The exact Zipf distribution, with ranks scattered over the indexes: `zipf:THETA`.
    Zipf {
        /// The exponent, above 0.
        theta: f64,
    },
    /// YCSB's distribution, reproduced bit for bit: `ycsb-zipf:THETA`.
    YcsbZipf {
        /// The exponent, between 0 and 1.
        theta: f64,
    },
    /// The exact Zipf distribution over age, with the newest index the most likely: `latest:THETA`.
    Latest {
        /// The exponent, above 0.
        theta: f64,
    },
    /// Normal around the middle index: `normal:DEVIATION`.
    Normal {
        /// The standard deviation, as a fraction of the number of indexes, above 0.
        deviation: f64,
    },
    /// In order, starting at a different index for each thread: `sequential`.
    Sequential,
}

impl Distribution {
    /// The accepted texts, for messages and help.
    pub const SYNTAX: &str =
        "uniform, normal:DEVIATION, zipf:THETA, ycsb-zipf:THETA, latest:THETA or sequential";
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf { theta } => write!(f, "zipf:{theta}"),
            Self::YcsbZipf { theta } => write!(f, "ycsb-zipf:{theta}"),
            Self::Latest { theta } => write!(f, "latest:{theta}"),
            Self::Normal { deviation } => write!(f, "normal:{deviation}"),
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
        let theta = exponent.unwrap_or(THETA_DEFAULT);
        let distribution = match name {
            "uniform" if exponent.is_none() => return Ok(Self::Uniform),
            "sequential" if exponent.is_none() => return Ok(Self::Sequential),
            "normal" => {
                let deviation = exponent.unwrap_or(DEVIATION_DEFAULT);
                let is_possible = deviation > 0.0 && deviation <= 100.0;
                let normal = is_possible.then_some(Self::Normal { deviation });
                return normal.ok_or_else(|| bad("a deviation above 0, such as 0.34"));
            }
            "zipf" => Self::Zipf { theta },
            "ycsb-zipf" => Self::YcsbZipf { theta },
            "latest" => Self::Latest { theta },
            _ => return Err(bad(Self::SYNTAX)),
        };
        if name == "ycsb-zipf" && !(theta > 0.0 && theta < 1.0) {
            return Err(bad("an exponent between 0 and 1, as YCSB's formula requires"));
        }
        // With an exponent above 100, every draw would be rank 0 and powers would overflow.
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
            "normal:0.34",
            "zipf:0.99",
            "zipf:1.2",
            "ycsb-zipf:0.5",
            "latest:0.99",
            "sequential",
        ] {
            assert_eq!(text.parse::<Distribution>().unwrap().to_string(), text);
        }
        assert_eq!("zipf".parse(), Ok(Distribution::Zipf { theta: 0.99 }));
        assert_eq!("latest".parse(), Ok(Distribution::Latest { theta: 0.99 }));
    }

    #[test]
    fn invalid_distributions_are_rejected() {
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
