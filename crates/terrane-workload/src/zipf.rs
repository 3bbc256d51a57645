//! The exact Zipf distribution.
//!
//! Rejection-inversion: W. Hörmann and G. Derflinger, "Rejection-inversion to generate variates
//! from monotone discrete distributions", ACM TOMACS 6(3), 1996. The method inverts a hat function of
//! the density, rounds to a rank, and accepts the rank with a probability that corrects the rounding;
//! the squeeze nearly always accepts without a second evaluation. It needs no tables: setup takes
//! constant time for any count, and a draw one logarithm and one exponential, 25 ns in total.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random::unit;

/// Exponents within this distance of 1 are treated as 1. Below 1e9 ranks this changes probabilities
/// by a relative 1e-5 at most; the general formulas would lose as much to cancellation.
const NEAR_ONE: f64 = 1e-7;

/// Draws ranks from 0 to `count - 1`, where rank `r` has a probability proportional to
/// `1 / (r + 1)^theta`.
#[derive(Debug, Clone, Copy)]
pub struct Zipf {
    hat: Hat,
    count: u64,
    /// The integral of the hat up to the lower end of rank 1, and up to the upper end of the last
    /// rank.
    area: (f64, f64),
    squeeze: f64,
}

impl Zipf {
    /// Returns a distribution over `count` ranks (at least one), with an exponent `theta` above
    /// zero.
    pub fn new(count: u64, theta: f64) -> Self {
        let hat = Hat::new(theta);
        let squeeze = 2.0 - hat.inverse_integral(hat.integral(2.5) - hat.density(2.0));
        let mut zipf = Self { hat, count: 0, area: (hat.integral(1.5) - 1.0, 0.0), squeeze };
        zipf.set_count(count);
        zipf
    }

    /// Changes the number of ranks to `count`, which is at least one.
    pub fn set_count(&mut self, count: u64) {
        self.count = count.max(1);
        self.area.1 = self.hat.integral(self.count as f64 + 0.5);
    }

    /// Returns the number of ranks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Draws a rank.
    #[inline]
    pub fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        let (low, high) = self.area;
        loop {
            let area = high + unit(rng) * (low - high);
            let x = self.hat.inverse_integral(area);
            // The cast rounds down; `floor` would be a function call on older processors.
            let whole = ((x + 0.5) as u64).clamp(1, self.count);
            let rank = whole as f64;
            let within_squeeze = rank - x <= self.squeeze;
            if within_squeeze || area >= self.hat.integral(rank + 0.5) - self.hat.density(rank) {
                return whole - 1;
            }
        }
    }
}

/// The density `x^-theta`, its integral, and the inverse of the integral.
#[derive(Debug, Clone, Copy)]
struct Hat {
    theta: f64,
    /// `1 - theta`; zero selects the logarithm.
    one_minus_theta: f64,
    /// The reciprocal is stored, because a division per draw costs 5 ns.
    inverse: f64,
}

impl Hat {
    fn new(theta: f64) -> Self {
        let difference = 1.0 - theta;
        let one_minus_theta = if difference.abs() < NEAR_ONE { 0.0 } else { difference };
        Self { theta, one_minus_theta, inverse: 1.0 / one_minus_theta }
    }

    fn density(self, x: f64) -> f64 {
        (-self.theta * x.ln()).exp()
    }

    #[inline]
    fn integral(self, x: f64) -> f64 {
        if self.one_minus_theta == 0.0 {
            return x.ln();
        }
        (self.one_minus_theta * x.ln()).exp_m1() * self.inverse
    }

    #[inline]
    fn inverse_integral(self, area: f64) -> f64 {
        if self.one_minus_theta == 0.0 {
            return area.exp();
        }
        // Rounding may carry the argument to or below zero when theta is well above 1.
        let power = (1.0 + area * self.one_minus_theta).max(f64::MIN_POSITIVE);
        (power.ln() * self.inverse).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    const DRAWS: u64 = 400_000;

    fn counts(count: u64, theta: f64) -> Vec<u64> {
        let zipf = Zipf::new(count, theta);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
        let mut counts = vec![0; count as usize];
        for _ in 0..DRAWS {
            counts[zipf.draw(&mut rng) as usize] += 1;
        }
        counts
    }

    fn probabilities(count: u64, theta: f64) -> Vec<f64> {
        let weights: Vec<f64> = (1..=count).map(|rank| (rank as f64).powf(-theta)).collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    }

    #[test]
    fn every_rank_is_drawn_as_often_as_its_probability_says() {
        for (count, theta) in [
            (1, 0.99),
            (2, 0.5),
            (10, 0.99),
            (100, 0.99),
            (100, 1.0),
            (50, 1.5),
            (30, 3.0),
            (9, 0.1),
        ] {
            let probabilities = probabilities(count, theta);
            for (rank, drawn) in counts(count, theta).iter().enumerate() {
                let expected = probabilities[rank] * DRAWS as f64;
                let deviation = (expected * (1.0 - probabilities[rank])).sqrt();
                let off = (*drawn as f64 - expected).abs();
                assert!(
                    off <= 4.5 * deviation + 1e-6,
                    "zipf:{theta} of {count}: rank {rank} drawn {drawn} times, not {expected:.0}"
                );
            }
        }
    }

    #[test]
    fn hot_ranks_and_the_tail_of_a_million_have_their_exact_share() {
        let count = 1_000_000;
        let exact = probabilities(count, 0.99);
        let zipf = Zipf::new(count, 0.99);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let draws: Vec<u64> = (0..DRAWS).map(|_| zipf.draw(&mut rng)).collect();
        for range in [0..1u64, 2..3, 0..10, 10..100, 100..10_000, 10_000..1_000_000] {
            let share = exact[range.start as usize..range.end as usize].iter().sum::<f64>();
            let drawn = draws.iter().filter(|rank| range.contains(*rank)).count() as f64;
            let expected = share * DRAWS as f64;
            let deviation = (expected * (1.0 - share)).sqrt();
            assert!((drawn - expected).abs() < 4.5 * deviation, "{range:?}: {drawn}, {expected}");
        }
    }

    #[test]
    fn exponents_near_one_are_continuous_with_their_neighbours() {
        let at = counts(100, 1.0);
        let beside = counts(100, 1.0 + 1e-6);
        let differing: u64 = at.iter().zip(&beside).map(|(a, b)| a.abs_diff(*b)).sum();
        assert!(differing < DRAWS / 1000, "{differing} draws differ");
    }

    #[test]
    fn growing_the_count_gives_the_distribution_of_the_new_count() {
        let mut grown = Zipf::new(10, 0.99);
        grown.set_count(1000);
        let fresh = Zipf::new(1000, 0.99);
        let mut rngs = (Xoshiro256PlusPlus::seed_from_u64(1), Xoshiro256PlusPlus::seed_from_u64(1));
        for _ in 0..1000 {
            assert_eq!(grown.draw(&mut rngs.0), fresh.draw(&mut rngs.1));
        }
    }
}
