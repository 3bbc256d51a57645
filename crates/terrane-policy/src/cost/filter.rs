//! The false positive rate of this engine's filters.

use libm::{exp, log, pow};

/// Bits of a cache line; a key sets and tests all of its bits within one line.
const LINE_BITS: f64 = 512.0;

/// Returns the fraction of missing keys that a filter of this engine lets through. Each key sets
/// `probes` bits, by default the number with the fewest false positives.
///
/// The filter consists of lines of 512 bits, and keys hash to lines at random. The rate is the
/// mean, over all lines, of the rate of a Bloom filter with that line's load (Putze, Sanders,
/// Singler 2007, §3). It exceeds [`false_positive_rate`](crate::allocation::false_positive_rate),
/// on which allocations are based: 0.96 % instead of 0.82 % at ten bits.
pub fn blocked_false_positive_rate(bits_per_key: f64, probes: Option<u8>) -> f64 {
    if bits_per_key <= 0.0 || bits_per_key.is_nan() {
        return 1.0;
    }
    let probes = probes.map_or_else(|| best_probes(bits_per_key), f64::from);
    let keys = LINE_BITS / bits_per_key;
    let unset_by_one = pow(1.0 - 1.0 / LINE_BITS, probes);
    // Sums the Poisson distribution of keys per line term by term. The first term is kept as a
    // logarithm so that it does not underflow for loaded lines.
    let (mut log_weight, mut unset, mut rate) = (-keys, 1.0, 0.0);
    let most = (keys + 12.0 * keys.sqrt() + 12.0).ceil() as u32;
    for count in 0..=most {
        if count > 0 {
            log_weight += log(keys / f64::from(count));
            unset *= unset_by_one;
        }
        rate += exp(log_weight) * pow(1.0 - unset, probes);
    }
    rate.clamp(0.0, 1.0)
}

/// The number of bits that a key sets, as in the engine.
fn best_probes(bits_per_key: f64) -> f64 {
    let ideal = bits_per_key * std::f64::consts::LN_2;
    let crowded = if bits_per_key > 8.0 { ideal * 0.9 } else { ideal };
    crowded.round().clamp(1.0, 16.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::false_positive_rate;

    #[test]
    fn rates_lie_between_one_large_filter_and_the_limit_of_the_engines_test() {
        // The right column repeats the limits of the engine's own filter test.
        for (bits, most) in [(0.5, 0.87), (2.0, 0.40), (5.0, 0.10), (10.0, 0.0125), (16.0, 0.0015)]
        {
            let rate = blocked_false_positive_rate(bits, None);
            assert!(rate >= false_positive_rate(bits) && rate <= most * 1.01, "{bits}: {rate}");
        }
        assert_eq!(blocked_false_positive_rate(0.0, None), 1.0);
        assert_eq!(blocked_false_positive_rate(0.0, Some(3)), 1.0);
    }

    #[test]
    fn a_given_number_of_probes_is_worse_than_the_best() {
        for (bits, probes) in [(0.5, 3), (10.0, 3), (10.0, 12)] {
            let [given, best] =
                [Some(probes), None].map(|probes| blocked_false_positive_rate(bits, probes));
            assert!(given > best, "{bits}: {given} {best}");
        }
        // Dent's filter: three hash functions at half a bit, (1 - e^(-3/0.5))^3.
        assert!((blocked_false_positive_rate(0.5, Some(3)) - 0.993).abs() < 0.002);
    }
}
