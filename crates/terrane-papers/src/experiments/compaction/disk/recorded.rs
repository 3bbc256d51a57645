//! The rounds of a metric.

use crate::results::Results;

/// The values of a metric, one for each round.
#[derive(Debug, Clone, Default)]
pub(super) struct Rounds(Vec<f64>);

impl FromIterator<f64> for Rounds {
    fn from_iter<All: IntoIterator<Item = f64>>(all: All) -> Self {
        Self(all.into_iter().collect())
    }
}

impl Rounds {
    /// Records the median and all rounds.
    pub(super) fn record(&self, results: &mut Results, metric: &str, keys: &[&str]) {
        results.record_rounds(metric, keys, median(&self.0), &self.0);
    }
}

/// Returns the median; NaN without rounds.
pub(super) fn median(all: &[f64]) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Formats the median of rounds with about three digits.
pub(super) fn shown(all: &[f64]) -> String {
    let median = median(all);
    let digits = match median.abs() {
        large if large >= 100.0 => 0,
        medium if medium >= 10.0 => 1,
        _ => 2,
    };
    format!("{median:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_rounds_is_shown_with_three_digits() {
        assert_eq!(shown(&[1.0, 3.25, 2.125]), "2.12");
        assert_eq!(shown(&[30.14]), "30.1");
        assert_eq!(shown(&[5000.4, 100.0, 123.4]), "123");
    }
}
