//! The shapes of bell curves and of the beta distribution, drawn from uniform numbers.
//!
//! The numbers come from a closure, so that the same code draws from a generator and from the hash of a
//! key.

/// A draw outside the unit interval is repeated up to this many times; then a uniform number is used.
const DRAWS_MAX: u32 = 16;

/// A distribution over the unit interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Shape {
    /// The normal distribution, cut off at both ends.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// The beta distribution.
    Beta {
        /// The first parameter: above 1 the density is 0 at the lower end, below 1 it is infinite.
        alpha: f64,
        /// The second parameter, which does the same at the upper end.
        beta: f64,
    },
}

impl Shape {
    /// Draws a number in [0, 1). `unit` returns uniform numbers in [0, 1).
    pub(crate) fn draw(self, mut unit: impl FnMut() -> f64) -> f64 {
        for _ in 0..DRAWS_MAX {
            let number = match self {
                Self::Normal { mean, deviation } => mean + deviation * standard_normal(&mut unit),
                Self::Beta { alpha, beta } => {
                    let (first, second) = (gamma(alpha, &mut unit), gamma(beta, &mut unit));
                    // With small parameters, many draws round to 1.
                    (first / (first + second)).min(1.0 - f64::EPSILON)
                }
            };
            if (0.0..1.0).contains(&number) {
                return number;
            }
        }
        // This is rare, because the tails beyond the ends are small.
        unit()
    }
}

/// Draws from the standard normal distribution by the Box-Muller method, and discards the second
/// number that the method yields.
fn standard_normal(unit: &mut impl FnMut() -> f64) -> f64 {
    // The number must be above 0, because its logarithm is taken.
    let (first, second) = (1.0 - unit(), unit());
    (-2.0 * first.ln()).sqrt() * (std::f64::consts::TAU * second).cos()
}

/// Draws from the gamma distribution with scale 1 (Marsaglia and Tsang 2000).
fn gamma(shape: f64, unit: &mut impl FnMut() -> f64) -> f64 {
    if shape < 1.0 {
        // Draw for a shape above 1, and scale it by a power of a uniform number.
        let power = (1.0 - unit()).powf(1.0 / shape);
        return gamma(shape + 1.0, unit) * power;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = standard_normal(unit);
        let cube = (1.0 + c * normal).powi(3);
        if cube > 0.0 {
            let limit = 0.5 * normal * normal + d - d * cube + d * cube.ln();
            if (1.0 - unit()).ln() < limit {
                return d * cube;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::unit;
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::SeedableRng;

    const DRAWS: u32 = 200_000;

    fn mean_and_deviation(shape: Shape) -> (f64, f64) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let draws: Vec<f64> = (0..DRAWS).map(|_| shape.draw(|| unit(&mut rng))).collect();
        assert!(draws.iter().all(|draw| (0.0..1.0).contains(draw)));
        let mean = draws.iter().sum::<f64>() / f64::from(DRAWS);
        let square = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>();
        (mean, (square / f64::from(DRAWS)).sqrt())
    }

    #[test]
    fn beta_draws_have_the_mean_and_deviation_of_their_parameters() {
        let parameters = [
            (1.0, 1.0),
            (2.0, 5.0),
            (0.5, 0.5),
            (0.2, 3.0),
            (40.0, 10.0),
            (5.0, 0.05),
            (0.05, 0.05),
        ];
        for (alpha, beta) in parameters {
            let (mean, deviation) = mean_and_deviation(Shape::Beta { alpha, beta });
            let sum: f64 = alpha + beta;
            let variance = alpha * beta / (sum * sum * (sum + 1.0));
            assert!((mean - alpha / sum).abs() < 0.003, "{alpha} {beta}: mean {mean}");
            assert!((deviation - variance.sqrt()).abs() < 0.003, "{alpha} {beta}: {deviation}");
        }
    }

    #[test]
    fn normal_draws_have_their_mean_and_deviation() {
        let (mean, deviation) = mean_and_deviation(Shape::Normal { mean: 0.7, deviation: 0.05 });
        assert!(
            (mean - 0.7).abs() < 0.001 && (deviation - 0.05).abs() < 0.001,
            "{mean} {deviation}"
        );
        // If nearly all draws are outside, the rest is uniform.
        let (mean, _) = mean_and_deviation(Shape::Normal { mean: 0.5, deviation: 100.0 });
        assert!((mean - 0.5).abs() < 0.01, "{mean}");
    }
}
