//! Checks on numbers of several strategies.

use super::loading::Loaded;
use crate::claims::report::{Claim, Report};

impl Report {
    /// A claim on compaction.
    pub(super) fn check(
        &mut self,
        figure: &'static str,
        says: &'static str,
        measured: String,
        holds: bool,
        why: &'static str,
    ) {
        let why = if holds { "" } else { why };
        self.claim(Claim { figure, says, mode: None, measured, holds, why: why.into() });
    }
}

/// A number for each strategy.
#[derive(Debug, Clone)]
pub(super) struct Checks {
    values: Vec<(&'static str, f64)>,
}

impl Checks {
    pub(super) fn of(all: &[Loaded], metric: impl Fn(&Loaded) -> f64) -> Self {
        Self { values: all.iter().map(|one| (one.name, metric(one))).collect() }
    }

    pub(super) fn named(values: Vec<(&'static str, f64)>) -> Self {
        Self { values }
    }

    pub(super) fn get(&self, name: &str) -> f64 {
        self.values.iter().find(|(one, _)| *one == name).map_or(f64::NAN, |(_, value)| *value)
    }

    pub(super) fn among(&self, names: &[&str]) -> Vec<f64> {
        names.iter().map(|name| self.get(name)).collect()
    }

    pub(super) fn all(&self) -> Vec<f64> {
        self.values.iter().map(|(_, value)| *value).collect()
    }

    /// The names from the least to the most.
    pub(super) fn order(&self) -> Vec<&'static str> {
        let mut values = self.values.clone();
        values.sort_by(|a, b| a.1.total_cmp(&b.1));
        values.into_iter().map(|(name, _)| name).collect()
    }
}

pub(super) fn mean_of(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(super) fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::MIN, f64::max)
}

/// The least and the most by which `value` exceeds others.
pub(super) fn times_range(value: f64, others: &[f64]) -> (f64, f64) {
    let least = others.iter().copied().fold(f64::MAX, f64::min);
    (value / most(others), value / least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_name_and_put_in_order() {
        let checks = Checks::named(vec![("full", 6.0), ("tier", 2.0), ("old", 3.0)]);
        assert_eq!(checks.order(), ["tier", "old", "full"]);
        assert_eq!(checks.among(&["old", "tier"]), [3.0, 2.0]);
        assert_eq!(times_range(6.0, &checks.among(&["old", "tier"])), (2.0, 3.0));
        assert!((mean_of(&checks.all()) - 11.0 / 3.0).abs() < 1e-9);
        assert!(checks.get("none").is_nan());
    }
}
