//! Monkey's allocation of filter memory (Monkey §4; Dostoevsky §4 for several runs a level).
//!
//! A lookup of a missing key costs the sum of the false positive rates of all runs. With `n` keys in
//! a level of `r` runs, and rates of e^(−bits·ln²2), the sum is minimal for a given amount of memory
//! if the rate of each level is proportional to n/r: deep levels get few bits, shallow ones many. A
//! level whose rate would exceed one gets no filter, and its memory goes to the other levels.

use libm::{exp, log};

/// The facts about a level that the allocation of filter memory needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelLoad {
    /// The number of keys in the level, in any unit.
    pub keys: f64,
    /// The maximum number of runs that the level holds; each lookup checks all of them.
    pub runs: f64,
}

/// The maximum number of bits per key; more bits never pay off.
const BITS_MAX: f64 = 64.0;

/// (ln 2)²: one more bit per key multiplies the rate by e to the power of −(ln 2)².
const LN2_SQUARED: f64 = std::f64::consts::LN_2 * std::f64::consts::LN_2;

/// Returns the fraction of missing keys that a filter with these bits per key lets through.
pub fn false_positive_rate(bits_per_key: f64) -> f64 {
    exp(-bits_per_key * LN2_SQUARED)
}

/// Returns the bits per key of a filter that lets this fraction of missing keys through.
pub fn bits_for_rate(rate: f64) -> f64 {
    -log(rate) / LN2_SQUARED
}

/// Returns the bits per key for each level; weighted by keys, they average `average_bits`.
pub fn filter_bits(average_bits: f64, levels: &[LevelLoad]) -> Vec<f64> {
    let mut bits = vec![0.0; levels.len()];
    // Levels that get a filter. A level whose rate would exceed one is removed; the worst level
    // goes first.
    let mut with: Vec<usize> =
        (0..levels.len()).filter(|&at| levels.get(at).is_some_and(|l| l.keys > 0.0)).collect();
    let total: f64 = levels.iter().map(|level| level.keys.max(0.0)).sum();
    let memory = average_bits * total;
    while !with.is_empty() {
        // memory = Σ keys · −ln(λ keys / runs) / ln²2, solved for ln λ.
        let keys: f64 = with.iter().map(|&at| levels[at].keys).sum();
        let logs: f64 = with.iter().map(|&at| levels[at].keys * log_load(levels[at])).sum();
        let ln_lambda = -(memory * LN2_SQUARED + logs) / keys;
        let rate = |at: usize| ln_lambda + log_load(levels[at]);
        let worst = with.iter().copied().max_by(|&a, &b| rate(a).total_cmp(&rate(b)));
        match worst.filter(|&at| rate(at) > 0.0) {
            Some(at) => with.retain(|&other| other != at),
            None => {
                for &at in &with {
                    bits[at] = (-rate(at) / LN2_SQUARED).clamp(0.0, BITS_MAX);
                }
                break;
            }
        }
    }
    bits
}

fn log_load(level: LevelLoad) -> f64 {
    log(level.keys / level.runs.max(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leveling(ratio: f64, levels: i32) -> Vec<LevelLoad> {
        (0..levels).map(|level| LevelLoad { keys: ratio.powi(level), runs: 1.0 }).collect()
    }

    fn cost(bits: &[f64], levels: &[LevelLoad]) -> f64 {
        bits.iter().zip(levels).map(|(bits, level)| level.runs * false_positive_rate(*bits)).sum()
    }

    fn memory(bits: &[f64], levels: &[LevelLoad]) -> f64 {
        bits.iter().zip(levels).map(|(bits, level)| bits * level.keys).sum()
    }

    #[test]
    fn rates_are_proportional_to_the_keys_of_the_level() {
        let levels = leveling(10.0, 4);
        let bits = filter_bits(10.0, &levels);
        for pair in bits.windows(2) {
            let ratio = false_positive_rate(pair[1]) / false_positive_rate(pair[0]);
            assert!((ratio - 10.0).abs() < 1e-6, "{bits:?}");
        }
        assert!((memory(&bits, &levels) / 11_110.0 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn lookups_never_cost_more_than_with_equal_bits_per_key() {
        for average in [0.1, 0.5, 2.0, 10.0] {
            for ratio in [2.0, 4.0, 10.0] {
                for runs in [1.0, ratio - 1.0] {
                    let mut levels = leveling(ratio, 5);
                    for level in &mut levels[..4] {
                        level.runs = runs;
                    }
                    let (ours, equal) = (filter_bits(average, &levels), vec![average; 5]);
                    let (used, given) = (memory(&ours, &levels), memory(&equal, &levels));
                    assert!(used <= given * 1.000_001, "{used} of {given}");
                    assert!(cost(&ours, &levels) <= cost(&equal, &levels) + 1e-9);
                }
            }
        }
    }

    #[test]
    fn scarce_memory_goes_to_small_levels_only() {
        let levels = leveling(10.0, 4);
        let bits = filter_bits(0.1, &levels);
        assert!(bits[3] == 0.0 && bits[0] > 1.0, "{bits:?}");
        assert_eq!(filter_bits(10.0, &[]), Vec::<f64>::new());
    }
}
