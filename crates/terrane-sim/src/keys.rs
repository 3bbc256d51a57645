//! Which keys are written, and how many different ones runs hold.
//!
//! Keys are in groups of like popularity, spread evenly over the key space. What a run holds is for
//! each group the share of its keys that are expected to be there. Runs of updates are independent
//! of each other, so that of the keys of a group a merge leaves `1 - Π (1 - share)`. Runs of a load
//! in random order have no key in common: their shares add up.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use terrane_policy::ParseError;

/// Ranks of a group of a skewed distribution reach so many times further than those of the one
/// before it.
const GROUP_GROWTH: f64 = 1.6;

/// How popular keys are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Skew {
    /// All alike.
    Uniform,
    /// The key of rank r in proportion to `r^-theta`.
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

/// Keys of like popularity.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Group {
    keys: f64,
    /// The probability that a write is of one given key of the group.
    probability: f64,
}

/// All keys there are.
#[derive(Debug, Clone, PartialEq)]
pub struct Population {
    records: f64,
    groups: Arc<[Group]>,
}

/// The shares of the keys of some range that are expected to be in a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    /// Written by the load, whatever their popularity.
    loaded: f64,
    /// Written by updates, for each group.
    updated: Arc<[f64]>,
}

impl Population {
    /// `records` keys.
    pub fn new(records: f64, skew: Skew) -> Self {
        let records = records.max(1.0);
        let groups = match skew {
            Skew::Uniform => vec![Group { keys: records, probability: 1.0 / records }],
            Skew::Zipf(theta) => zipf(records, theta),
        };
        Self { records, groups: groups.into() }
    }

    /// How many keys there are.
    pub fn records(&self) -> f64 {
        self.records
    }

    /// What a buffer holds after so many updates.
    pub fn after_updates(&self, writes: f64) -> Content {
        let share =
            |group: &Group| -f64::exp_m1(writes * f64::ln_1p(-group.probability.min(0.999_999_9)));
        Content { loaded: 0.0, updated: self.groups.iter().map(share).collect() }
    }

    /// What a buffer holds after so many writes of a load in random order.
    pub fn after_load(&self, writes: f64) -> Content {
        let loaded = (writes / self.records).min(1.0);
        Content { loaded, updated: self.groups.iter().map(|_| 0.0).collect() }
    }

    /// Expected entries of a run over a part of the key space.
    pub fn entries(&self, content: &Content, width: f64) -> f64 {
        let groups = self.groups.iter().zip(&*content.updated);
        let present = |updated: f64| 1.0 - (1.0 - content.loaded) * (1.0 - updated);
        width * groups.map(|(group, updated)| group.keys * present(*updated)).sum::<f64>()
    }

    /// What a merge of runs holds.
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

    /// What neighbouring parts of the key space hold together, each with its width.
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

fn zipf(records: f64, theta: f64) -> Vec<Group> {
    let weight = |from: f64, upto: f64| -> f64 {
        // Few ranks are added up; many are close to the integral between their middles.
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
        .map(|&(keys, weight)| Group { keys, probability: weight / total / keys })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_updates_hold_what_all_of_them_together_would() {
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
    fn few_keys_are_counted_as_chance_has_them() {
        // 100 writes of 100 keys leave 100 · (1 - 0.99^100) different ones.
        let keys = Population::new(100.0, Skew::Uniform);
        let expected = 100.0 * (1.0 - 0.99f64.powi(100));
        assert!((keys.entries(&keys.after_updates(100.0), 1.0) - expected).abs() < 1e-6);
        // A skew leaves fewer.
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
