//! How clients choose indexes: uniformly, skewed or in order.
//!
//! [`Distribution`] is a value with a text form; [`IndexChooser`] draws from it for one client
//! thread.

mod chooser;

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

pub use crate::shape::Shape;
pub use chooser::IndexChooser;

/// The default exponent, which is YCSB's.
pub const THETA_DEFAULT: f64 = 0.99;

/// The standard deviation that the compaction paper uses (§5), as a fraction of the number of
/// indexes.
pub const DEVIATION_DEFAULT: f64 = 0.34;

/// The default mean of a normal distribution, as a fraction of the number of indexes.
const MEAN_DEFAULT: f64 = 0.5;

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
    /// Normal around an index: `normal:DEVIATION`, or `normal:DEVIATION:MEAN`.
    Normal {
        /// The standard deviation, as a fraction of the number of indexes, above 0.
        deviation: f64,
        /// The mean, as a fraction of the number of indexes; the middle index unless it is given.
        mean: f64,
    },
    /// The beta distribution over all indexes: `beta:ALPHA:BETA`.
    Beta {
        /// The first parameter, above 0.
        alpha: f64,
        /// The second parameter, above 0.
        beta: f64,
    },
    /// In order, starting at a different index for each thread: `sequential`.
    Sequential,
}

impl Distribution {
    /// The accepted texts, for messages and help.
    pub const SYNTAX: &str = "uniform, normal:DEVIATION[:MEAN], beta:ALPHA:BETA, zipf:THETA, ycsb-zipf:THETA, latest:THETA or sequential";
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf { theta } => write!(f, "zipf:{theta}"),
            Self::YcsbZipf { theta } => write!(f, "ycsb-zipf:{theta}"),
            Self::Latest { theta } => write!(f, "latest:{theta}"),
            Self::Normal { deviation, mean } => write_normal(f, *deviation, *mean),
            Self::Beta { alpha, beta } => write!(f, "beta:{alpha}:{beta}"),
            Self::Sequential => f.write_str("sequential"),
        }
    }
}

impl From<Shape> for Distribution {
    fn from(shape: Shape) -> Self {
        match shape {
            Shape::Normal { mean, deviation } => Self::Normal { deviation, mean },
            Shape::Beta { alpha, beta } => Self::Beta { alpha, beta },
        }
    }
}

/// Formats a normal distribution; the usual mean is left out.
pub(crate) fn write_normal(f: &mut fmt::Formatter<'_>, deviation: f64, mean: f64) -> fmt::Result {
    write!(f, "normal:{deviation}")?;
    if mean == MEAN_DEFAULT { Ok(()) } else { write!(f, ":{mean}") }
}

/// Parses `normal`, `normal:DEVIATION`, `normal:DEVIATION:MEAN` or `beta:ALPHA:BETA`; returns
/// `None` for other names.
///
/// # Errors
/// The name is one of these, but the numbers are invalid.
pub(crate) fn parse_shape(text: &str) -> Result<Option<Shape>, ParseError> {
    let mut words = text.split(':');
    let name = words.next().unwrap_or_default();
    if !matches!(name, "normal" | "beta") {
        return Ok(None);
    }
    let numbers: Vec<f64> = words.map(|word| word.parse().unwrap_or(f64::NAN)).collect();
    let is_positive = |number: f64| number > 0.0 && number <= 100.0;
    // With smaller parameters, draws would be lost to rounding.
    let is_parameter = |number: f64| (0.05..=100.0).contains(&number);
    let shape = match (name, &numbers[..]) {
        ("normal", []) => Some((DEVIATION_DEFAULT, MEAN_DEFAULT)),
        ("normal", [deviation]) => Some((*deviation, MEAN_DEFAULT)),
        ("normal", [deviation, mean]) => Some((*deviation, *mean)),
        _ => None,
    };
    let normal =
        shape.filter(|(deviation, mean)| is_positive(*deviation) && (0.0..=1.0).contains(mean));
    let shape = match (normal, &numbers[..]) {
        (Some((deviation, mean)), _) => Some(Shape::Normal { mean, deviation }),
        (None, [alpha, beta]) if name == "beta" && is_parameter(*alpha) && is_parameter(*beta) => {
            Some(Shape::Beta { alpha: *alpha, beta: *beta })
        }
        _ => None,
    };
    let expected = match name {
        "normal" => "a deviation above 0 and a mean from 0 to 1, such as normal:0.1:0.5",
        _ => "two numbers from 0.05 to 100, such as beta:2:5",
    };
    shape.map(Some).ok_or_else(|| ParseError::new("distribution", text, expected))
}

impl FromStr for Distribution {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |expected: &str| ParseError::new("distribution", text, expected);
        if let Some(shape) = parse_shape(text)? {
            return Ok(shape.into());
        }
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
            "normal:0.1:0.9",
            "beta:2:0.5",
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
            "normal:0.1:2",
            "normal:0.1:0.5:1",
            "beta",
            "beta:1",
            "beta:0:1",
            "beta:1:2:3",
            "normal:x",
        ] {
            assert!(text.parse::<Distribution>().is_err(), "{text}");
        }
    }
}
