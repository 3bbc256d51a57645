//! Bijections that scatter integers.
//!
//! Keys must look random and be distinct, so they are permuted instead of drawn: every step of the
//! mix (xor with the upper half, multiplication by an odd number) is invertible modulo a power of
//! two. The 64-bit constant is from Pelle Evensen and degski, truncated to the width in use.

/// Odd, with about half of the bits of each byte set, so that every truncation mixes well.
const MULTIPLIER: u64 = 0xd6e8_feb8_6659_fd93;

/// A bijection on the integers of a given bit width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    shift: u32,
    mask: u64,
}

impl Mix {
    /// Returns a bijection on the integers below `2^bits`, for 1 to 64 `bits`.
    pub const fn new(bits: u32) -> Self {
        let half = if bits < 2 { 1 } else { bits / 2 };
        Self { shift: half, mask: u64::MAX >> (64 - bits) }
    }

    /// Returns the image of `value`, which is truncated to the width first.
    #[inline]
    pub const fn apply(self, value: u64) -> u64 {
        let mut mixed = value & self.mask;
        mixed ^= mixed >> self.shift;
        mixed = mixed.wrapping_mul(MULTIPLIER) & self.mask;
        mixed ^= mixed >> self.shift;
        mixed = mixed.wrapping_mul(MULTIPLIER) & self.mask;
        mixed ^ (mixed >> self.shift)
    }

    /// Returns the largest integer of the width.
    pub const fn mask(self) -> u64 {
        self.mask
    }
}

/// A bijection on the integers below any count.
///
/// Successive ranks are mapped a golden-section step apart, so that any number of them is spread
/// almost evenly. It scatters the popular ranks of a skewed distribution over all indexes.
#[derive(Debug, Clone, Copy)]
pub struct Scatter {
    step: u64,
    count: u64,
}

impl Scatter {
    /// Returns a bijection on the integers below `count`, which must not be zero.
    pub fn new(count: u64) -> Self {
        // The constant is 2^64 divided by the golden ratio.
        let golden = (u128::from(count) * 0x9e37_79b9_7f4a_7c15) >> 64;
        let mut step = (golden as u64).max(1);
        while greatest_common_divisor(step, count) != 1 {
            step += 1;
        }
        Self { step, count }
    }

    /// Returns the image of `rank`, which must be below the count.
    #[inline]
    pub const fn apply(&self, rank: u64) -> u64 {
        debug_assert!(rank < self.count);
        match (rank + 1).checked_mul(self.step) {
            Some(place) => place % self.count,
            // A 128-bit division costs 20 ns more, and is needed only if the count is above 2^32.
            None => ((rank + 1) as u128 * self.step as u128 % self.count as u128) as u64,
        }
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mix_is_a_bijection_at_every_small_width() {
        for bits in 1..=18 {
            let mix = Mix::new(bits);
            let mut seen = vec![false; 1 << bits];
            for value in 0..1u64 << bits {
                let place = mix.apply(value) as usize;
                assert!(!seen[place], "{bits} bits: two values go to {place}");
                seen[place] = true;
            }
        }
    }

    #[test]
    fn mix_flips_half_of_the_bits_for_neighbours() {
        for bits in [32, 64] {
            let mix = Mix::new(bits);
            let flipped: u32 =
                (0..10_000).map(|v| (mix.apply(v) ^ mix.apply(v + 1)).count_ones()).sum();
            let mean = f64::from(flipped) / 10_000.0;
            let half = f64::from(bits) / 2.0;
            assert!((mean - half).abs() < half / 10.0, "{bits} bits: {mean} bits flip");
        }
    }

    #[test]
    fn scatter_is_a_bijection_for_any_count() {
        for count in [1, 2, 3, 4, 6, 7, 64, 65, 1000, 4097, 30_030] {
            let scatter = Scatter::new(count);
            let mut places: Vec<u64> = (0..count).map(|rank| scatter.apply(rank)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn scatter_keeps_popular_ranks_apart_even_if_products_overflow() {
        for count in [1_000_000, 1 << 40, u64::MAX / 2] {
            let scatter = Scatter::new(count);
            let mut places: Vec<u64> = (0..100).map(|rank| scatter.apply(rank)).collect();
            places.sort_unstable();
            let nearest = places.windows(2).map(|pair| pair[1] - pair[0]).min().unwrap();
            assert!(nearest > count / 300, "{count}: {nearest} apart");
            let late = scatter.apply(count - 1);
            assert!(late < count && late == 0, "the last rank closes the circle: {late}");
        }
    }
}
