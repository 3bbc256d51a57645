//! YCSB's skewed choice of records, reproduced bit for bit.
//!
//! `ScrambledZipfianGenerator` of YCSB draws a rank out of 10,000,000,001 by the formula of J. Gray
//! et al., "Quickly generating billion-record synthetic databases", SIGMOD 1994, hashes the rank
//! with FNV and takes the remainder by the number of records. This approximation is flatter than its
//! exponent says: the formula makes rank 3 a fifth too likely, and the remainder folds ten billion
//! ranks onto the records. Using it makes results comparable with published YCSB results;
//! [`Zipf`](crate::zipf::Zipf) is the exact distribution.
//!
//! For the exponent 0.99, whose normalising sum is a constant in YCSB, the same uniform number gives
//! the same record as YCSB's Java code. For other exponents YCSB adds up ten billion terms, which
//! takes minutes; here the Euler-Maclaurin formula gives the sum, without YCSB's rounding errors.

use rand_xoshiro::Xoshiro256PlusPlus;

use crate::random::unit;

/// The number of ranks: YCSB's `ITEM_COUNT` plus one, because YCSB includes both ends of the range.
const RANKS: f64 = 10_000_000_001.0;
const YCSB_THETA: f64 = 0.99;
/// YCSB's `ZETAN`.
const YCSB_ZETA: f64 = 26.46902820178302;

/// Draws record numbers like YCSB's `ScrambledZipfianGenerator`.
#[derive(Debug, Clone, Copy)]
pub struct YcsbZipf {
    count: u64,
    zeta: f64,
    /// The upper end of rank 1: `1 + 0.5^theta`.
    two_ranks: f64,
    eta: f64,
    alpha: f64,
}

impl YcsbZipf {
    /// Returns a chooser among `count` records, at least one; the exponent is between 0 and 1.
    pub fn new(count: u64, theta: f64) -> Self {
        let is_default = theta == YCSB_THETA;
        let zeta = if is_default { YCSB_ZETA } else { zeta(RANKS, theta) };
        let two_ranks = 1.0 + 0.5f64.powf(theta);
        let zeta_of_two = 1.0 + 1.0 / 2.0f64.powf(theta);
        let eta = (1.0 - (2.0 / RANKS).powf(1.0 - theta)) / (1.0 - zeta_of_two / zeta);
        Self { count: count.max(1), zeta, two_ranks, eta, alpha: 1.0 / (1.0 - theta) }
    }

    /// Draws a record number.
    #[inline]
    pub fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        self.record_at(unit(rng))
    }

    /// Returns the record that YCSB chooses for a number in [0, 1).
    #[inline]
    fn record_at(&self, uniform: f64) -> u64 {
        fnv_hash(self.rank_at(uniform)) % self.count
    }

    #[inline]
    fn rank_at(&self, uniform: f64) -> u64 {
        let scaled = uniform * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < self.two_ranks {
            return 1;
        }
        (RANKS * (self.eta * uniform - self.eta + 1.0).powf(self.alpha)) as u64
    }
}

/// YCSB's `fnvhash64`: FNV-1a over eight bytes, lowest first, with the sign removed.
#[inline]
fn fnv_hash(value: u64) -> u64 {
    const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 1_099_511_628_211;
    let hash = value
        .to_le_bytes()
        .iter()
        .fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME));
    hash.cast_signed().unsigned_abs()
}

/// Returns the sum of `1 / i^theta` for `i` from 1 to `count`. The first terms are added one by
/// one; the Euler-Maclaurin formula gives the rest, with an error below 1e-12 from 10,000 terms on.
fn zeta(count: f64, theta: f64) -> f64 {
    const FIRST: u32 = 10_000;
    let power = |x: f64| x.powf(-theta);
    let head: f64 = (1..FIRST).map(|i| power(f64::from(i))).sum();
    let first = f64::from(FIRST);
    let integral = (count.powf(1.0 - theta) - first.powf(1.0 - theta)) / (1.0 - theta);
    let ends = f64::midpoint(power(first), power(count));
    let slopes = theta * (power(first) / first - power(count) / count) / 12.0;
    head + integral + ends + slopes
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn records_equal_those_of_the_java_code() {
        // Printed by ScrambledZipfianGenerator(0, 999999, 0.99) of YCSB, master of 2026, with its
        // random source replaced by these numbers.
        let records = [
            (0.0, 377_211),
            (0.01, 377_211),
            (0.03778, 377_211),
            (0.05, 966_620),
            (0.06, 198_393),
            (0.1, 995_587),
            (0.25, 933_614),
            (0.5, 280_260),
            (0.75, 210_439),
            (0.9, 781_670),
            (0.99, 761_521),
            (0.999_999, 16_089),
            (0.999_999_999_999_999_9, 288_917),
        ];
        let zipf = YcsbZipf::new(1_000_000, 0.99);
        for (uniform, record) in records {
            assert_eq!(zipf.record_at(uniform), record, "{uniform}");
        }
    }

    #[test]
    fn hashes_equal_those_of_the_java_code() {
        for (value, hash) in [
            (0, 6_284_781_860_667_377_211),
            (1, 8_517_097_267_634_966_620),
            (2, 1_820_151_046_732_198_393),
            (12_345, 1_792_800_413_050_876_852),
            (9_999_999_999, 3_605_131_173_811_637_474),
        ] {
            assert_eq!(fnv_hash(value), hash);
        }
    }

    #[test]
    fn the_sum_agrees_with_ycsbs_constant_and_with_direct_summation() {
        // YCSB's constant is the sum of 10^10 terms, one less than the number of ranks for which
        // YCSB uses it.
        assert!((zeta(1e10, 0.99) - YCSB_ZETA).abs() < 1e-6);
        let added: f64 = (1..=1_000_000).map(|i| f64::from(i).powf(-0.7)).sum();
        assert!((zeta(1e6, 0.7) - added).abs() < 1e-6);
    }

    #[test]
    fn the_hottest_record_has_the_share_of_rank_zero() {
        let zipf = YcsbZipf::new(100_000, 0.99);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        let hottest = fnv_hash(0) % 100_000;
        let draws = 200_000;
        let hits = (0..draws).filter(|_| zipf.draw(&mut rng) == hottest).count();
        let share = hits as f64 / f64::from(draws);
        assert!((share - 1.0 / YCSB_ZETA).abs() < 0.002, "{share}");
    }
}
