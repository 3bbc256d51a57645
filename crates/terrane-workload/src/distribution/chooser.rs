//! Chooses indexes for one client thread.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Distribution, Shape};
use crate::mix::Scatter;
use crate::random::{below, unit};
use crate::ycsb_zipf::YcsbZipf;
use crate::zipf::Zipf;

/// Chooses indexes below a count by a [`Distribution`].
#[derive(Debug, Clone)]
pub struct IndexChooser {
    kind: ChooserKind,
}

#[derive(Debug, Clone)]
enum ChooserKind {
    Uniform { count: u64 },
    Zipf { zipf: Zipf, scatter: Scatter },
    YcsbZipf(YcsbZipf),
    Latest(Zipf),
    Shaped { shape: Shape, count: u64 },
    Sequential { next: u64, count: u64 },
}

impl IndexChooser {
    /// Returns a chooser that draws from the indexes below `count`, which is at least one. A
    /// sequential chooser starts at the index `start`.
    pub fn new(distribution: Distribution, count: u64, start: u64) -> Self {
        let count = count.max(1);
        let kind = match distribution {
            Distribution::Uniform => ChooserKind::Uniform { count },
            Distribution::Zipf { theta } => {
                ChooserKind::Zipf { zipf: Zipf::new(count, theta), scatter: Scatter::new(count) }
            }
            Distribution::YcsbZipf { theta } => ChooserKind::YcsbZipf(YcsbZipf::new(count, theta)),
            Distribution::Latest { theta } => ChooserKind::Latest(Zipf::new(count, theta)),
            Distribution::Normal { deviation, mean } => {
                ChooserKind::Shaped { shape: Shape::Normal { mean, deviation }, count }
            }
            Distribution::Beta { alpha, beta } => {
                ChooserKind::Shaped { shape: Shape::Beta { alpha, beta }, count }
            }
            Distribution::Sequential => ChooserKind::Sequential { next: start % count, count },
        };
        Self { kind }
    }

    /// Draws the next index.
    #[inline]
    pub fn choose(&mut self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match &mut self.kind {
            ChooserKind::Uniform { count } => below(rng, *count),
            ChooserKind::Zipf { zipf, scatter } => scatter.apply(zipf.draw(rng)),
            ChooserKind::YcsbZipf(zipf) => zipf.draw(rng),
            ChooserKind::Latest(zipf) => zipf.count() - 1 - zipf.draw(rng),
            ChooserKind::Shaped { shape, count } => {
                let place = shape.draw(|| unit(rng));
                ((place * *count as f64) as u64).min(*count - 1)
            }
            ChooserKind::Sequential { next, count } => {
                let index = *next;
                *next = if index + 1 == *count { 0 } else { index + 1 };
                index
            }
        }
    }

    /// Adds one index to the range. Zipf distributions keep their range, because a larger range
    /// would change which indexes are popular.
    pub fn grow(&mut self) {
        match &mut self.kind {
            ChooserKind::Uniform { count }
            | ChooserKind::Shaped { count, .. }
            | ChooserKind::Sequential { count, .. } => *count += 1,
            ChooserKind::Latest(zipf) => zipf.set_count(zipf.count() + 1),
            ChooserKind::Zipf { .. } | ChooserKind::YcsbZipf(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    const DRAWS: u32 = 100_000;

    fn counts(chooser: &mut IndexChooser, count: usize) -> Vec<u32> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(23);
        let mut counts = vec![0; count];
        for _ in 0..DRAWS {
            counts[chooser.choose(&mut rng) as usize] += 1;
        }
        counts
    }

    #[test]
    fn uniform_choices_fill_all_cells_evenly() {
        let counts = counts(&mut IndexChooser::new(Distribution::Uniform, 100, 0), 100);
        let chi_square: f64 =
            counts.iter().map(|n| (f64::from(*n) - 1000.0).powi(2) / 1000.0).sum();
        // 99 degrees of freedom: 99.9 % lie between 56 and 149.
        assert!((56.0..149.0).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn latest_prefers_the_newest_even_after_growth() {
        let mut chooser = IndexChooser::new(Distribution::Latest { theta: 0.99 }, 999, 0);
        chooser.grow();
        let counts = counts(&mut chooser, 1000);
        let harmonic: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-0.99)).sum();
        for rank in [1u32, 2, 3, 10] {
            let expected = f64::from(DRAWS) * f64::from(rank).powf(-0.99) / harmonic;
            let drawn = f64::from(counts[1000 - rank as usize]);
            assert!((drawn - expected).abs() < 5.0 * expected.sqrt(), "rank {rank}: {drawn}");
        }
    }

    #[test]
    fn zipf_keeps_its_probabilities_and_scatters_its_ranks() {
        let mut counts =
            counts(&mut IndexChooser::new(Distribution::Zipf { theta: 1.1 }, 1000, 0), 1000);
        let hottest = (0..1000).max_by_key(|index| counts[*index]).unwrap();
        assert_ne!(hottest, 0, "rank 0 must not always be index 0");
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let sum: f64 = (1..=1000).map(|rank| f64::from(rank).powf(-1.1)).sum();
        let expected = f64::from(DRAWS) / sum;
        assert!((f64::from(counts[0]) - expected).abs() < 5.0 * expected.sqrt());
    }

    #[test]
    fn normal_choices_center_on_the_middle() {
        let deviation = 0.1;
        let normal = Distribution::Normal { deviation, mean: 0.5 };
        let counts = counts(&mut IndexChooser::new(normal, 1000, 0), 1000);
        let within: u32 = counts[400..600].iter().sum();
        let share = f64::from(within) / f64::from(DRAWS);
        assert!((share - 0.683).abs() < 0.01, "{share} within a deviation");
        // A wide distribution still covers the whole range.
        let wide = Distribution::Normal { deviation: 10.0, mean: 0.5 };
        let counts = self::counts(&mut IndexChooser::new(wide, 10, 0), 10);
        assert!(counts.iter().all(|count| *count > DRAWS / 20), "{counts:?}");
    }

    #[test]
    fn ycsb_choices_stay_below_the_count() {
        counts(&mut IndexChooser::new(Distribution::YcsbZipf { theta: 0.99 }, 10, 0), 10);
    }

    #[test]
    fn sequential_choices_begin_at_their_start_and_wrap() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(0);
        let mut chooser = IndexChooser::new(Distribution::Sequential, 4, 2);
        let chosen: Vec<u64> = (0..6).map(|_| chooser.choose(&mut rng)).collect();
        assert_eq!(chosen, [2, 3, 0, 1, 2, 3]);
    }
}
