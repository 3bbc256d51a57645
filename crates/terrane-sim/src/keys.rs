//! The popularity of keys, and the number of distinct keys in runs.
//!
//! Keys form groups of similar popularity, each spread evenly over the key space. The content of a
//! run is, per group, the expected share of its keys that the run contains. Runs of updates are
//! independent, so a merge contains the share `1 - Π (1 - share)` of a group. Runs of a load in
//! random order are disjoint, so their shares add up.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use terrane_policy::ParseError;

/// In a skewed distribution, the upper rank of each group is this many times the upper rank of the
/// previous group.
const GROUP_GROWTH: f64 = 1.6;

/// How writes are distributed over keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Skew {
    /// Every key is equally likely.
    Uniform,
    /// The key of rank r has a probability proportional to `r^-theta`.
    Zipf(f64),
}

impl fmt::Display for Skew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Uniform => f.write_str("uniform"),
            Self::Zipf(theta) => write!(f, "zipf({theta})"),
        }
    }
}

impl FromStr for Skew {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("keys", text, "uniform, zipf or zipf(0.99)");
        match text {
            "uniform" => return Ok(Self::Uniform),
            "zipf" => return Ok(Self::Zipf(0.99)),
            _ => {}
        }
        let theta = text.strip_prefix("zipf(").and_then(|rest| rest.strip_suffix(')'));
        let theta: f64 = theta.and_then(|theta| theta.parse().ok()).ok_or_else(bad)?;
        if theta > 0.0 && theta < 5.0 { Ok(Self::Zipf(theta)) } else { Err(bad()) }
    }
}

/// Keys of similar popularity.
#[derive(Debug, Clone, Copy, PartialEq)]
struct KeyGroup {
    keys: f64,
    /// The probability that a write updates a given key of the group.
    probability: f64,
}

/// All keys of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct Population {
    records: f64,
    groups: Arc<[KeyGroup]>,
}

/// For each group, the share of the keys of a range that a run is expected to contain.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// The share written by the load, the same for all groups.
    loaded: f64,
    /// The share written by updates, by group.
    updated: Arc<[f64]>,
}

impl Population {
    /// Returns a population of `records` keys.
    pub fn new(records: f64, skew: Skew) -> Self {
        let records = records.max(1.0);
        let groups = match skew {
            Skew::Uniform => vec![KeyGroup { keys: records, probability: 1.0 / records }],
            Skew::Zipf(theta) => zipf(records, theta),
        };
        Self { records, groups: groups.into() }
    }

    /// Returns the number of keys.
    pub fn records(&self) -> f64 {
        self.records
    }

    /// Returns the content of a memtable after `writes` updates.
    pub fn after_updates(&self, writes: f64) -> Content {
        let share = |group: &KeyGroup| {
            -f64::exp_m1(writes * f64::ln_1p(-group.probability.min(0.999_999_9)))
        };
        Content { loaded: 0.0, updated: self.groups.iter().map(share).collect() }
    }

    /// Returns the content of a memtable after `writes` writes of a load in random order.
    pub fn after_load(&self, writes: f64) -> Content {
        let loaded = (writes / self.records).min(1.0);
        Content { loaded, updated: self.groups.iter().map(|_| 0.0).collect() }
    }

    /// Returns how many entries a run is expected to have in a fraction `width` of the key space.
    pub fn entries(&self, content: &Content, width: f64) -> f64 {
        let groups = self.groups.iter().zip(&*content.updated);
        let present = |updated: f64| 1.0 - (1.0 - content.loaded) * (1.0 - updated);
        width * groups.map(|(group, updated)| group.keys * present(*updated)).sum::<f64>()
    }

    /// Returns the number of groups of keys.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Returns how many entries of each group a run is expected to have.
    pub(crate) fn entries_by_group(&self, content: &Content) -> Vec<f64> {
        let present = |updated: f64| 1.0 - (1.0 - content.loaded) * (1.0 - updated);
        let groups = self.groups.iter().zip(&*content.updated);
        groups.map(|(group, updated)| group.keys * present(*updated)).collect()
    }

    /// Reduces the share of each group that is left of older runs by what a run overwrites of it. A
    /// load overwrites nothing.
    pub(crate) fn overwrite(&self, left: &mut [f64], newer: &Content) {
        left.iter_mut().zip(&*newer.updated).for_each(|(left, updated)| *left *= 1.0 - updated);
    }

    /// Returns the content of a merge of runs.
    pub fn union<'a>(&self, contents: impl IntoIterator<Item = &'a Content>) -> Content {
        let mut loaded = 0.0;
        let mut missing = vec![1.0; self.groups.len()];
        for content in contents {
            loaded += content.loaded;
            for (missing, updated) in missing.iter_mut().zip(&*content.updated) {
                *missing *= 1.0 - updated;
            }
        }
        Content {
            loaded: f64::min(loaded, 1.0),
            updated: missing.into_iter().map(|missing| 1.0 - missing).collect(),
        }
    }

    /// Returns the content of adjacent ranges taken together, from the content and width of each.
    pub fn average(&self, parts: &[(Content, f64)]) -> Content {
        let total: f64 = parts.iter().map(|(_, width)| width).sum();
        let weight =
            |width: f64| if total > 0.0 { width / total } else { 1.0 / parts.len() as f64 };
        let mut updated = vec![0.0; self.groups.len()];
        let mut loaded = 0.0;
        for (content, width) in parts {
            loaded += content.loaded * weight(*width);
            for (sum, share) in updated.iter_mut().zip(&*content.updated) {
                *sum += share * weight(*width);
            }
        }
        Content { loaded, updated: updated.into() }
    }
}

fn zipf(records: f64, theta: f64) -> Vec<KeyGroup> {
    let weight = |from: f64, upto: f64| -> f64 {
        // Add up a few ranks; approximate many by the integral between their midpoints.
        if upto - from < 64.0 {
            let mut sum = 0.0;
            let mut rank = from;
            while rank < upto {
                sum += rank.powf(-theta);
                rank += 1.0;
            }
            return sum;
        }
        let (a, b) = (from - 0.5, upto - 0.5);
        if (theta - 1.0).abs() < 1e-9 {
            (b / a).ln()
        } else {
            (b.powf(1.0 - theta) - a.powf(1.0 - theta)) / (1.0 - theta)
        }
    };
    let mut groups = Vec::new();
    let mut from = 1.0;
    while from <= records {
        let upto = (from * GROUP_GROWTH).ceil().max(from + 1.0).min(records.floor() + 1.0);
        groups.push((upto - from, weight(from, upto)));
        from = upto;
    }
    let total: f64 = groups.iter().map(|(_, weight)| weight).sum();
    groups
        .iter()
        .map(|&(keys, weight)| KeyGroup { keys, probability: weight / total / keys })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_merge_of_updates_equals_one_memtable_with_all_of_them() {
        for skew in [Skew::Uniform, Skew::Zipf(0.99), Skew::Zipf(1.3)] {
            let keys = Population::new(1e6, skew);
            let parts: Vec<Content> = (1..=5).map(|n| keys.after_updates(n as f64 * 1e5)).collect();
            let merged = keys.entries(&keys.union(&parts), 1.0);
            let at_once = keys.entries(&keys.after_updates(15e5), 1.0);
            assert!((merged - at_once).abs() < 1.0, "{skew}: {merged} {at_once}");
        }
    }

    #[test]
    fn a_load_writes_every_key_once() {
        let keys = Population::new(1e6, Skew::Zipf(0.8));
        let parts: Vec<Content> = (0..10).map(|_| keys.after_load(1e5)).collect();
        assert!((keys.entries(&keys.union(&parts), 1.0) - 1e6).abs() < 1e-3);
        assert!((keys.entries(&keys.union(&parts[..3]), 0.5) - 1.5e5).abs() < 1e-3);
    }

    #[test]
    fn few_keys_match_the_expected_number_of_distinct_ones() {
        // 100 writes to 100 keys hit 100 · (1 - 0.99^100) distinct keys.
        let keys = Population::new(100.0, Skew::Uniform);
        let expected = 100.0 * (1.0 - 0.99f64.powi(100));
        assert!((keys.entries(&keys.after_updates(100.0), 1.0) - expected).abs() < 1e-6);
        // Skewed writes hit fewer distinct keys.
        let skewed = Population::new(100.0, Skew::Zipf(1.0));
        assert!(skewed.entries(&skewed.after_updates(100.0), 1.0) < expected);
    }

    #[test]
    fn distributions_print_as_they_parse() {
        for text in ["uniform", "zipf(0.99)", "zipf(1.2)"] {
            assert_eq!(text.parse::<Skew>().unwrap().to_string(), text);
        }
        for text in ["", "zipf(", "zipf(0)", "zipf(x)", "normal"] {
            assert!(text.parse::<Skew>().is_err(), "{text}");
        }
    }
}
