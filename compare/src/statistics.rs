//! Medians, and ratios within repetitions.

/// Returns the middle of `values`, or the mean of the two middle values; `None` if there are no
/// values.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        return values.get(middle).copied();
    }
    Some(f64::midpoint(*values.get(middle.checked_sub(1)?)?, *values.get(middle)?))
}

/// Returns the smallest and the largest of `values`; `None` if there are no values.
pub(crate) fn range(values: &[f64]) -> Option<(f64, f64)> {
    let min = values.iter().copied().min_by(f64::total_cmp)?;
    let max = values.iter().copied().max_by(f64::total_cmp)?;
    Some((min, max))
}

/// Returns the ratios of two engines in the repetitions that have both: a disturbance of the
/// machine during a repetition affects both engines. Each measurement comes with its repetition.
pub(crate) fn ratios(ours: &[(u32, f64)], theirs: &[(u32, f64)]) -> Vec<f64> {
    ours.iter()
        .filter_map(|(repetition, our_value)| {
            let (_, their_value) = theirs.iter().find(|(other, _)| other == repetition)?;
            (*their_value > 0.0).then(|| our_value / their_value)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 2.0, 9.0]), Some(3.0));
    }

    #[test]
    fn ratios_are_taken_within_repetitions() {
        // The machine was half as fast in the second repetition, which does not change the ratio.
        let ours = [(1, 200.0), (2, 100.0), (3, 200.0)];
        let theirs = [(2, 50.0), (1, 100.0), (4, 7.0)];
        assert_eq!(ratios(&ours, &theirs), [2.0, 2.0]);
        assert_eq!(ratios(&ours, &[(1, 0.0)]), [0.0; 0]);
    }

    #[test]
    fn the_range_is_from_smallest_to_largest() {
        assert_eq!(range(&[2.0, 1.0, 3.0]), Some((1.0, 3.0)));
        assert_eq!(range(&[]), None);
    }
}
