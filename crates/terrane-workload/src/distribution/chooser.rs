//! Chooses indexes for one client thread.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::Distribution;
use crate::mix::Scatter;
use crate::random::{below, unit};
use crate::ycsb_zipf::YcsbZipf;
use crate::zipf::Zipf;

/// Chooses indexes below a count by a [`Distribution`].
#[derive(Debug, Clone)]
pub struct IndexChooser {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Uniform { count: u64 },
    Zipf { zipf: Zipf, scatter: Scatter },
    YcsbZipf(YcsbZipf),
    Latest(Zipf),
    Normal { percent: f64, count: u64 },
    Sequential { next: u64, count: u64 },
}

impl IndexChooser {
    /// A chooser among the indexes below `count`, at least one; `start` is where a sequential one
    /// begins.
    pub fn new(distribution: Distribution, count: u64, start: u64) -> Self {
        let count = count.max(1);
        let kind = match distribution {
            Distribution::Uniform => Kind::Uniform { count },
            Distribution::Zipf { theta } => {
                Kind::Zipf { zipf: Zipf::new(count, theta), scatter: Scatter::new(count) }
            }
            Distribution::YcsbZipf { theta } => Kind::YcsbZipf(YcsbZipf::new(count, theta)),
            Distribution::Latest { theta } => Kind::Latest(Zipf::new(count, theta)),
            Distribution::Normal { percent } => Kind::Normal { percent, count },
            Distribution::Sequential => Kind::Sequential { next: start % count, count },
        };
        Self { kind }
    }

    /// The next index.
    #[inline]
    pub fn choose(&mut self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match &mut self.kind {
            Kind::Uniform { count } => below(rng, *count),
            Kind::Zipf { zipf, scatter } => scatter.apply(zipf.draw(rng)),
            Kind::YcsbZipf(zipf) => zipf.draw(rng),
            Kind::Latest(zipf) => zipf.count() - 1 - zipf.draw(rng),
            Kind::Normal { percent, count } => normal(rng, *percent, *count),
            Kind::Sequential { next, count } => {
                let index = *next;
                *next = if index + 1 == *count { 0 } else { index + 1 };
                index
            }
        }
    }

    /// Adds the next index to those chosen from. Zipfian choices stay among the first ones: their
    /// popular indexes would change places.
    pub fn grow(&mut self) {
        match &mut self.kind {
            Kind::Uniform { count }
            | Kind::Normal { count, .. }
            | Kind::Sequential { count, .. } => *count += 1,
            Kind::Latest(zipf) => zipf.set_count(zipf.count() + 1),
            Kind::Zipf { .. } | Kind::YcsbZipf(_) => {}
        }
    }
}

/// G. E. P. Box and M. E. Muller, 1958: two uniform numbers make a normal one.
fn normal(rng: &mut Xoshiro256PlusPlus, percent: f64, count: u64) -> u64 {
    loop {
        let radius = (-2.0 * (1.0 - unit(rng)).ln()).sqrt();
        let deviation = radius * (std::f64::consts::TAU * unit(rng)).cos();
        let place = (0.5 + deviation * percent / 100.0) * count as f64;
        if (0.0..count as f64).contains(&place) {
            return place as u64;
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
    fn uniform_choices_fill_all_cells_alike() {
        let counts = counts(&mut IndexChooser::new(Distribution::Uniform, 100, 0), 100);
        let chi_square: f64 =
            counts.iter().map(|n| (f64::from(*n) - 1000.0).powi(2) / 1000.0).sum();
        // 99 degrees of freedom: 99.9 % lie between 56 and 149.
        assert!((56.0..149.0).contains(&chi_square), "{chi_square}");
    }

    #[test]
    fn latest_prefers_the_newest_also_after_growth() {
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
    fn normal_choices_lie_around_the_middle_as_often_as_they_should() {
        let normal = Distribution::Normal { percent: 10.0 };
        let counts = counts(&mut IndexChooser::new(normal, 1000, 0), 1000);
        for (half_width, share) in [(100, 0.6827), (200, 0.9545)] {
            let drawn: u32 = counts[500 - half_width..500 + half_width].iter().sum();
            let expected = share * f64::from(DRAWS);
            assert!((f64::from(drawn) - expected).abs() < 1000.0, "{half_width}: {drawn}");
        }
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
