//! Values that expire: when the values of a run expire, and how many remain at a given time.
//!
//! The expiring values of a run form cohorts. A cohort expires evenly over an interval of time, and has a
//! number of values for each group of keys. A memtable is one cohort, because its writes arrived one after
//! another; a merge has its inputs' cohorts without the values that newer runs overwrote.

use std::sync::Arc;

use super::Content;

/// The maximum number of cohorts in a run. Beyond it, the cohorts closest in time are combined.
const COHORTS_MAX: usize = 16;

/// Values of a run that expire within an interval, evenly distributed over it.
#[derive(Debug, Clone, PartialEq)]
struct Cohort {
    /// The interval, in seconds.
    from: f64,
    until: f64,
    /// The number of values in each group of keys, for a run over the whole key space.
    values: Vec<f64>,
}

/// The expiring values of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Cohorts(Arc<[Cohort]>);

/// The expiring values in a part of the key space.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ExpiringValues {
    pub(crate) values: f64,
    /// When the first and the last of them expire, in seconds.
    pub(crate) first: f64,
    pub(crate) last: f64,
}

/// Collects the cohorts of a merge.
#[derive(Default)]
pub(super) struct CohortSum(Vec<Cohort>);

impl Cohort {
    fn sum(&self) -> f64 {
        self.values.iter().sum()
    }

    /// Returns the share that has expired at a time.
    fn expired_share(&self, now: f64) -> f64 {
        match self.until > self.from {
            true => ((now - self.from) / (self.until - self.from)).clamp(0.0, 1.0),
            false => f64::from(u8::from(self.until <= now)),
        }
    }

    fn absorb(&mut self, other: &Self) {
        self.from = self.from.min(other.from);
        self.until = self.until.max(other.until);
        self.values.iter_mut().zip(&other.values).for_each(|(sum, values)| *sum += values);
    }
}

impl Cohorts {
    fn expiring(&self) -> impl Iterator<Item = &Cohort> {
        self.0.iter().filter(|cohort| cohort.sum() > 0.0)
    }
}

impl CohortSum {
    /// Adds the cohorts of a run, reduced to the share `left` of each group.
    pub(super) fn add(&mut self, cohorts: &Cohorts, left: impl Fn(usize) -> f64) {
        for cohort in &*cohorts.0 {
            let values = cohort.values.iter().enumerate();
            let values: Vec<f64> = values.map(|(group, values)| values * left(group)).collect();
            let added = Cohort { values, ..*cohort };
            let is_same =
                |other: &&mut Cohort| other.from == added.from && other.until == added.until;
            match self.0.iter_mut().find(is_same) {
                Some(same) => same.absorb(&added),
                None => self.0.push(added),
            }
        }
    }

    pub(super) fn finish(mut self) -> Cohorts {
        self.0.sort_by(|a, b| a.from.total_cmp(&b.from).then(a.until.total_cmp(&b.until)));
        while self.0.len() > COHORTS_MAX {
            let span = |at: &usize| {
                let (one, next) = (&self.0[*at], &self.0[*at + 1]);
                one.until.max(next.until) - one.from
            };
            let closest = (0..self.0.len() - 1).min_by(|a, b| span(a).total_cmp(&span(b)));
            let Some(at) = closest else { break };
            let next = self.0.remove(at + 1);
            self.0[at].absorb(&next);
        }
        Cohorts(self.0.into())
    }
}

impl Content {
    /// Returns the content of a memtable in which the share `expiring` of the values expires, evenly over an
    /// interval of time in seconds.
    #[must_use]
    pub fn expiring(self, expiring: f64, (from, until): (f64, f64)) -> Self {
        if expiring <= 0.0 {
            return self;
        }
        let values = self.groups.iter().map(|group| group.values() * expiring).collect();
        Self { cohorts: Cohorts([Cohort { from, until, values }].into()), ..self }
    }

    /// Returns the content at a time, in seconds, with expired values as tombstones.
    #[must_use]
    pub fn at(self, now: f64) -> Self {
        if !self.cohorts.0.iter().any(|cohort| cohort.from <= now) {
            return self;
        }
        let mut groups = self.groups.to_vec();
        let mut left = Vec::new();
        for cohort in &*self.cohorts.0 {
            let share = cohort.expired_share(now);
            for (group, values) in groups.iter_mut().zip(&cohort.values) {
                group.expired += values * share;
            }
            if share < 1.0 {
                let values = cohort.values.iter().map(|values| values * (1.0 - share)).collect();
                left.push(Cohort { from: cohort.from.max(now), values, ..*cohort });
            }
        }
        Self { groups: groups.into(), cohorts: Cohorts(left.into()), ..self }
    }

    /// Returns the expected expiring values in a fraction `width` of the key space; `None` if there are
    /// none.
    pub(crate) fn expiring_values(&self, width: f64) -> Option<ExpiringValues> {
        let times = |of: fn(&Cohort) -> f64| self.cohorts.expiring().map(of);
        let first = times(|cohort| cohort.from).reduce(f64::min)?;
        let last = times(|cohort| cohort.until).reduce(f64::max)?;
        let values = width * self.cohorts.expiring().map(Cohort::sum).sum::<f64>();
        Some(ExpiringValues { values, first, last })
    }

    /// Returns the number of expiring values in a group.
    pub(super) fn expiring_of(&self, group: usize) -> f64 {
        self.cohorts.0.iter().filter_map(|cohort| cohort.values.get(group)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Population, Skew};
    use super::*;

    #[test]
    fn values_become_tombstones_evenly_over_their_interval() {
        let keys = Population::new(1000.0, Skew::Uniform);
        let run = keys.after_load(1000.0).expiring(0.5, (10.0, 20.0));
        assert_eq!(run.expiring_values(1.0).unwrap().values, 500.0);
        for (now, expired) in [(0.0, 0.0), (10.0, 0.0), (15.0, 250.0), (20.0, 500.0), (99.0, 500.0)]
        {
            let then = run.clone().at(now);
            assert_eq!(then.tombstones(1.0), expired, "{now}");
            assert_eq!(keys.entries(&then, 1.0), 1000.0);
            assert_eq!(then.expiring_values(1.0).map_or(0.0, |left| left.values), 500.0 - expired);
        }
        let half = run.at(15.0).at(17.5);
        assert_eq!(half.tombstones(1.0), 375.0, "the rest expires evenly as well");
    }

    #[test]
    fn a_merge_keeps_the_expiry_times_of_values_that_are_not_overwritten() {
        let keys = Population::new(1000.0, Skew::Uniform);
        let older = keys.after_load(1000.0).expiring(1.0, (1.0, 2.0));
        let newer = keys.after_updates(1000.0);
        let merged = keys.union([&newer, &older]);
        let left = 1000.0 / std::f64::consts::E;
        assert!((merged.expiring_values(1.0).unwrap().values - left).abs() < 1.0);
        let settled = merged.at(5.0).without_tombstones();
        let values = keys.entries(&settled, 1.0);
        assert!((values - keys.entries(&newer, 1.0)).abs() < 1e-6, "{values}");
        // An expired value hides older ones until it is dropped, and can be overwritten like them.
        let expired = keys.union([&newer, &older.at(5.0)]);
        assert!((expired.tombstones(1.0) - left).abs() < 1.0);
    }

    #[test]
    fn many_cohorts_are_few_and_lose_no_value() {
        let keys = Population::new(1e6, Skew::Zipf(0.99));
        let load = |at: u32| {
            let from = f64::from(at);
            keys.after_load(1e4).expiring(1.0, (from, from + 1.0))
        };
        let runs: Vec<Content> = (0..100).map(load).collect();
        let merged = keys.union(&runs);
        assert_eq!(merged.cohorts.0.len(), COHORTS_MAX);
        let expiring = merged.expiring_values(1.0).unwrap();
        assert!((expiring.values - 1e6).abs() < 1e-3);
        assert_eq!((expiring.first, expiring.last), (0.0, 100.0));
        let middle = merged.at(50.0).tombstones(1.0);
        assert!((4.8e5..5.2e5).contains(&middle), "{middle}");
    }
}
