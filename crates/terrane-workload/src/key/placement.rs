//! Places keys non-uniformly in the key space.
//!
//! A position is one of 65,536 equal parts of the key space, named by the first two bytes of a key.
//! It depends only on the key's slot, which seeds the random numbers of the draw.

use std::fmt;
use std::str::FromStr;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::SeedableRng;

use super::KeyOrder;
use crate::distribution::{Shape, parse_shape, write_normal};
use crate::error::ParseError;
use crate::random::unit;

const PLACES: f64 = 65_536.0;
/// The exponent that the compaction paper uses (§5).
const THETA_DEFAULT: f64 = 1.0;

/// How keys are distributed over the key space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Placement {
    /// Uniform: `uniform`.
    Uniform,
    /// Ascending beyond all earlier keys: `sequential`.
    Sequential,
    /// Clustered around a position: `normal:DEVIATION`, or `normal:DEVIATION:MEAN`; or spread as the
    /// beta distribution: `beta:ALPHA:BETA`.
    Shaped(Shape),
    /// Clustered at the beginning, by Zipf's law over positions: `zipf:THETA`.
    Zipf {
        /// The exponent.
        theta: f64,
    },
}

impl Placement {
    /// Returns the key order with this placement.
    pub fn key_order(self) -> KeyOrder {
        match self {
            Self::Uniform => KeyOrder::Hashed,
            Self::Sequential => KeyOrder::Ordered,
            skewed => KeyOrder::Skewed(skewed),
        }
    }

    /// Returns the position of the key of a slot.
    pub(super) fn place_of(self, slot: u64) -> u16 {
        let mut random = SplitMix64::seed_from_u64(slot);
        let mut draw = || unit(&mut random);
        let share = match self {
            Self::Uniform | Self::Sequential => draw(),
            Self::Shaped(shape) => shape.draw(draw),
            Self::Zipf { theta } => zipf(draw(), theta),
        };
        // The cast saturates: a fraction of nearly 1 becomes the last position.
        (share * PLACES) as u16
    }
}

/// Returns the fraction of the key space below the position of a rank, using the inverse of the
/// continuous form of the distribution.
fn zipf(unit: f64, theta: f64) -> f64 {
    let last = PLACES + 1.0;
    let rank = if (theta - 1.0).abs() < 1e-9 {
        last.powf(unit)
    } else {
        let power = 1.0 - theta;
        ((last.powf(power) - 1.0) * unit + 1.0).powf(1.0 / power)
    };
    ((rank - 1.0) / PLACES).clamp(0.0, 1.0)
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Sequential => f.write_str("sequential"),
            Self::Shaped(Shape::Normal { mean, deviation }) => write_normal(f, *deviation, *mean),
            Self::Shaped(Shape::Beta { alpha, beta }) => write!(f, "beta:{alpha}:{beta}"),
            Self::Zipf { theta } => write!(f, "zipf:{theta}"),
        }
    }
}

impl FromStr for Placement {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |expected: &str| ParseError::new("distribution of inserts", text, expected);
        if let Some(shape) = parse_shape(text)? {
            return Ok(Self::Shaped(shape));
        }
        let (name, number) = match text.split_once(':') {
            None => (text, None),
            Some((name, number)) => {
                let number: f64 = number.parse().map_err(|_| bad("a number such as 0.34"))?;
                if !(number > 0.0 && number <= 100.0) {
                    return Err(bad("a number above 0, at most 100"));
                }
                (name, Some(number))
            }
        };
        match (name, number) {
            ("uniform", None) => Ok(Self::Uniform),
            ("sequential", None) => Ok(Self::Sequential),
            ("zipf", _) => Ok(Self::Zipf { theta: number.unwrap_or(THETA_DEFAULT) }),
            _ => Err(bad(
                "uniform, sequential, normal:DEVIATION[:MEAN], beta:ALPHA:BETA or zipf:THETA",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(placement: Placement) -> Vec<f64> {
        (0..100_000).map(|slot| f64::from(placement.place_of(slot)) / PLACES).collect()
    }

    #[test]
    fn normal_positions_have_their_mean_and_deviation() {
        let normal = |deviation| Placement::Shaped(Shape::Normal { mean: 0.5, deviation });
        let shares = shares(normal(0.1));
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let square = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>();
        let deviation = (square / shares.len() as f64).sqrt();
        assert!(
            (mean - 0.5).abs() < 0.002 && (deviation - 0.1).abs() < 0.002,
            "{mean} {deviation}"
        );
        let wide = self::shares(normal(100.0));
        let lower = wide.iter().filter(|share| **share < 0.25).count();
        assert!((24_000..26_000).contains(&lower), "{lower}");
    }

    #[test]
    fn zipf_positions_follow_their_law() {
        // With an exponent of 1, every doubling of the rank has the same share of the keys.
        let shares = shares(Placement::Zipf { theta: 1.0 });
        for octave in 0..15 {
            let (from, to) = (f64::from(1u32 << octave), f64::from(2u32 << octave));
            let within = |share: &&f64| (from..to).contains(&(**share * PLACES + 1.0));
            let count = shares.iter().filter(within).count();
            assert!((5_600..6_900).contains(&count), "octave {octave}: {count}");
        }
    }
}
