//! Lethe's allocation of the delete persistence threshold (Lethe §4.1).

/// Returns the age at which a tombstone must leave each level to pass through all levels within
/// `threshold`. The time that a tombstone may spend in a level grows with the capacity of the
/// level, d_i = T · d_(i−1), and these times add up to the threshold.
///
/// `ratios` are the size ratios of levels 1, 2, … to the level above, so there is one more deadline
/// than ratios. Ages count from the delete, not from when the table entered its level, so the
/// deadline of a level is the sum of the times of this level and of all levels above. The
/// compaction paper's artifact compares the age with the time of the level alone, and therefore
/// acts earlier than necessary.
pub fn ttl_deadlines(threshold: u64, ratios: &[u64]) -> Vec<u64> {
    let mut weights = vec![1.0f64];
    for &ratio in ratios {
        let above = weights.last().copied().unwrap_or(1.0);
        weights.push(above * ratio.max(1) as f64);
    }
    let total: f64 = weights.iter().sum();
    let mut sum = 0.0;
    let count = weights.len();
    weights
        .into_iter()
        .enumerate()
        .map(|(level, weight)| {
            sum += weight;
            // The last deadline is exact, however the others were rounded.
            let share = if level + 1 == count { 1.0 } else { sum / total };
            if share >= 1.0 { threshold } else { ((threshold as f64 * share) as u64).max(1) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_follow_lethes_formula_for_a_uniform_ratio() {
        // d_i = D (T − 1) / (T^(L−1) − 1) · T^i for L − 1 = 3 levels: D/111 · 10^i.
        assert_eq!(ttl_deadlines(111_000, &[10, 10]), [1000, 11_000, 111_000]);
        assert_eq!(ttl_deadlines(7, &[]), [7]);
    }

    #[test]
    fn deadlines_rise_to_the_threshold() {
        for threshold in [10, 1000, u64::MAX] {
            for ratios in [vec![2; 3], vec![10; 8], vec![4, 16, 2]] {
                let deadlines = ttl_deadlines(threshold, &ratios);
                assert!(deadlines.is_sorted() && deadlines.last() == Some(&threshold));
                assert!(deadlines[0] > 0);
            }
        }
    }
}
