//! What a filter lets through.

/// Bits of a line: a key sets and tests all of its bits within one cache line.
const LINE_BITS: f64 = 512.0;

/// The share of missing keys that a filter of this engine lets through, with so many bits per key.
///
/// Its bits are in lines of 512, and keys fall into lines by chance: the mean over lines of what a
/// Bloom filter of their load lets through (Putze, Sanders, Singler 2007, §3). That is more than
/// [`false_positive_rate`](crate::allocation::false_positive_rate), which allocations go by: 0.96
/// in place of 0.82 of a hundred at ten bits.
pub fn blocked_false_positive_rate(bits_per_key: f64) -> f64 {
    if bits_per_key <= 0.0 || bits_per_key.is_nan() {
        return 1.0;
    }
    let probes = probes(bits_per_key);
    let keys = LINE_BITS / bits_per_key;
    let unset_by_one = (1.0 - 1.0 / LINE_BITS).powf(probes);
    // The Poisson distribution of keys in a line, from term to term, with the logarithm of the
    // first so that it does not vanish for loaded lines.
    let (mut log_weight, mut unset, mut rate) = (-keys, 1.0, 0.0);
    let most = (keys + 12.0 * keys.sqrt() + 12.0).ceil() as u32;
    for count in 0..=most {
        if count > 0 {
            log_weight += (keys / f64::from(count)).ln();
            unset *= unset_by_one;
        }
        rate += log_weight.exp() * (1.0 - unset).powf(probes);
    }
    rate.clamp(0.0, 1.0)
}

/// How many bits a key sets: as the engine has it.
fn probes(bits_per_key: f64) -> f64 {
    let ideal = bits_per_key * std::f64::consts::LN_2;
    let crowded = if bits_per_key > 8.0 { ideal * 0.9 } else { ideal };
    crowded.round().clamp(1.0, 16.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::allocation::false_positive_rate;

    #[test]
    fn rates_are_above_those_of_one_large_filter_and_below_what_ours_are_held_to() {
        // The right column is what the engine's own test of its filters allows.
        for (bits, most) in [(0.5, 0.87), (2.0, 0.40), (5.0, 0.10), (10.0, 0.0125), (16.0, 0.0015)]
        {
            let rate = blocked_false_positive_rate(bits);
            assert!(rate >= false_positive_rate(bits) && rate <= most * 1.01, "{bits}: {rate}");
        }
        assert_eq!(blocked_false_positive_rate(0.0), 1.0);
    }
}
