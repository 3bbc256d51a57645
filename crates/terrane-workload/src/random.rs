//! Uniform random numbers, the basis of all distributions.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;

/// Returns a number in [0, 1) with 53 random bits.
#[inline]
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Returns a number below `count`, which must not be zero. Uses D. Lemire's multiplication without
/// the rejection step, so the bias is up to `count / 2^64`.
#[inline]
pub(crate) fn below(rng: &mut Xoshiro256PlusPlus, count: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(count)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_xoshiro::rand_core::SeedableRng;

    #[test]
    fn units_and_numbers_stay_below_their_bounds_and_reach_both_ends() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        let units: Vec<f64> = (0..10_000).map(|_| unit(&mut rng)).collect();
        assert!(units.iter().all(|unit| (0.0..1.0).contains(unit)));
        assert!(units.iter().any(|unit| *unit < 0.001) && units.iter().any(|unit| *unit > 0.999));
        let mut seen = [0u32; 7];
        (0..7000).for_each(|_| seen[below(&mut rng, 7) as usize] += 1);
        assert!(seen.iter().all(|count| (850..1150).contains(count)), "{seen:?}");
        assert_eq!(below(&mut rng, 1), 0);
    }
}
