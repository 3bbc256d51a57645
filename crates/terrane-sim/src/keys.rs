//! The popularity of keys, and the number of distinct keys in runs.
//!
//! Keys form groups of similar popularity, each spread evenly over the key space. The content of a
//! run is, per group, the expected number of its entries and tombstones, and the share of the
//! group's keys that its writes hit. Runs of updates are independent, so a merge keeps the share
//! `Π (1 - hit)` of an older run, where the product is over all newer runs. Inserts and loads in
//! random order write keys that no older run has: they add entries and hit nothing.
//!
//! A range delete erases a share of the key space at a random place: a merge keeps the share `1 -
//! erased` of an older run. If deleted keys are never written again, their tombstones are never
//! overwritten, and every delete reduces the number of keys to choose from.
//!
//! An expired value is a tombstone, but writes continue to choose its key (`expiry`).

mod expiry;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use libm::{exp, expm1, log, log1p, pow};
use terrane_policy::ParseError;

use crate::mix::WriteMix;
pub(crate) use expiry::ExpiringValues;
use expiry::{CohortSum, Cohorts};

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
    /// The number of keys to choose from. Inserts increase it, and deletes decrease it if deleted
    /// keys are not written again.
    live: f64,
    records: f64,
    groups: Arc<[KeyGroup]>,
    /// True if all keys are equally likely, inserted keys included. Otherwise, inserted keys are in
    /// the last group, and no write hits them again.
    is_uniform: bool,
}

/// The expected content of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    groups: Arc<[GroupContent]>,
    /// The share of the key space that the run's range deletes erase from older runs.
    erased: f64,
    /// The number of range tombstones.
    range_tombstones: f64,
    /// True if writes never hit a key after its tombstone.
    is_final: bool,
    /// The values that expire.
    cohorts: Cohorts,
}

/// The part of a run in one group of keys. The numbers are those of a run over the whole key space.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct GroupContent {
    /// The share of the older keys that the run's writes hit.
    hit: f64,
    /// Entries, tombstones included.
    entries: f64,
    /// Tombstones of deletes.
    tombstones: f64,
    /// Expired values, which count as tombstones.
    expired: f64,
}

impl GroupContent {
    /// Returns the entries that are not tombstones.
    fn values(&self) -> f64 {
        self.entries - self.tombstones - self.expired
    }
}

impl Population {
    /// Returns a population of `records` keys.
    pub fn new(records: f64, skew: Skew) -> Self {
        let records = records.max(1.0);
        let is_uniform = skew == Skew::Uniform;
        let groups = match skew {
            Skew::Uniform => vec![KeyGroup { keys: records, probability: 1.0 / records }],
            Skew::Zipf(theta) => zipf(records, theta),
        };
        Self { live: records, records, groups: groups.into(), is_uniform }
    }

    /// Returns a population with a group for inserted keys, which is empty at first. A uniform
    /// population needs none.
    #[must_use]
    pub fn with_inserts(mut self) -> Self {
        if !self.is_uniform {
            let groups = self.groups.iter().copied();
            self.groups = groups.chain([KeyGroup { keys: 0.0, probability: 0.0 }]).collect();
        }
        self
    }

    /// Returns the number of keys that were loaded.
    pub fn records(&self) -> f64 {
        self.records
    }

    /// Returns the number of keys that exist or may be written again.
    pub fn live(&self) -> f64 {
        self.live
    }

    /// Returns the content of a memtable after `writes` updates.
    pub fn after_updates(&self, writes: f64) -> Content {
        self.after_writes(writes, &WriteMix::default())
    }

    /// Returns the content of a memtable after `writes` writes of several kinds.
    pub fn after_writes(&self, writes: f64, mix: &WriteMix) -> Content {
        let hitting = writes * (1.0 - mix.inserts - mix.range_deletes).max(0.0);
        let tombstones = if hitting > 0.0 { writes * mix.deletes / hitting } else { 0.0 };
        // The expected number of range deletes that cover a given key.
        let covered = writes * mix.range_deletes * mix.range_width;
        let last = self.groups.len() - 1;
        let group = |(at, group): (usize, &KeyGroup)| {
            let (keys, probability) = match self.is_uniform {
                true => (self.live, 1.0 / self.live),
                false => (group.keys, group.probability),
            };
            let times = -hitting * log1p(-probability.min(0.999_999_9));
            let hit = -expm1(-times);
            // The share of keys whose last operation is a write, not a range delete.
            let left = match covered > 0.0 && times > 0.0 {
                true => times / (times + covered) * -expm1(-(times + covered)),
                false => hit,
            };
            let updated = left * keys;
            let new = if at == last { writes * mix.inserts } else { 0.0 };
            let new = new * if covered > 0.0 { -expm1(-covered) / covered } else { 1.0 };
            // If deleted keys do not return, each delete leaves one tombstone.
            let dead = match mix.deleted_return {
                true => updated * tombstones,
                false => (hitting * tombstones * self.share_of(group)).min(updated),
            };
            GroupContent { hit, entries: updated + new, tombstones: dead, expired: 0.0 }
        };
        Content {
            groups: self.groups.iter().enumerate().map(group).collect(),
            erased: -expm1(-covered),
            range_tombstones: writes * mix.range_deletes,
            is_final: !mix.deleted_return,
            cohorts: Cohorts::default(),
        }
    }

    /// Returns the share of writes that go to a group.
    fn share_of(&self, group: &KeyGroup) -> f64 {
        if self.is_uniform { 1.0 } else { group.keys * group.probability }
    }

    /// Updates the number of keys after writes of several kinds.
    pub(crate) fn grow(&mut self, writes: f64, mix: &WriteMix) {
        self.live += writes * mix.inserts;
        if !mix.deleted_return {
            self.live -= writes * mix.deletes;
            self.live *= exp(-writes * mix.range_deletes * mix.range_width);
        }
        // An operation that needs a key inserts one if there is none.
        self.live = self.live.max(1.0);
    }

    /// Returns the content of a memtable after `writes` writes of a load in random order.
    pub fn after_load(&self, writes: f64) -> Content {
        let share = (writes / self.records).min(1.0);
        let group = |group: &KeyGroup| GroupContent {
            entries: share * group.keys,
            ..GroupContent::default()
        };
        Content {
            groups: self.groups.iter().map(group).collect(),
            erased: 0.0,
            range_tombstones: 0.0,
            is_final: false,
            cohorts: Cohorts::default(),
        }
    }

    /// Returns the expected number of entries that a run has in a fraction `width` of the key
    /// space, tombstones included.
    pub fn entries(&self, content: &Content, width: f64) -> f64 {
        width * content.groups.iter().map(|group| group.entries).sum::<f64>()
    }

    /// Returns the number of groups of keys.
    pub(crate) fn groups(&self) -> usize {
        self.groups.len()
    }

    /// Returns the expected number of a run's values that never expire, by group.
    pub(crate) fn lasting_by_group(&self, content: &Content) -> Vec<f64> {
        let groups = content.groups.iter().enumerate();
        groups.map(|(at, group)| (group.values() - content.expiring_of(at)).max(0.0)).collect()
    }

    /// Reduces each group's remaining share of older runs by the share that a newer run overwrites.
    /// A load overwrites nothing.
    pub(crate) fn overwrite(&self, left: &mut [f64], newer: &Content) {
        let kept = 1.0 - newer.erased;
        left.iter_mut().zip(&*newer.groups).for_each(|(left, group)| {
            *left *= (1.0 - group.hit) * kept;
        });
    }

    /// Returns the content of a merge of runs, listed newest first.
    pub fn union<'a>(&self, contents: impl IntoIterator<Item = &'a Content>) -> Content {
        let mut merged = Content {
            groups: Arc::default(),
            erased: 0.0,
            range_tombstones: 0.0,
            is_final: false,
            cohorts: Cohorts::default(),
        };
        let mut groups = vec![GroupContent::default(); self.groups.len()];
        let mut cohorts = CohortSum::default();
        for content in contents {
            let kept = 1.0 - merged.erased;
            cohorts.add(&content.cohorts, |group| (1.0 - groups[group].hit) * kept);
            for (sum, older) in groups.iter_mut().zip(&*content.groups) {
                let left = (1.0 - sum.hit) * kept;
                let left_dead = if content.is_final { kept } else { left };
                let dead = older.tombstones * left_dead;
                sum.entries += (older.entries - older.tombstones) * left + dead;
                sum.tombstones += dead;
                sum.expired += older.expired * left;
                sum.hit = 1.0 - (1.0 - sum.hit) * (1.0 - older.hit);
            }
            merged.erased = 1.0 - kept * (1.0 - content.erased);
            merged.range_tombstones += content.range_tombstones;
            merged.is_final |= content.is_final;
        }
        Content { groups: groups.into(), cohorts: cohorts.finish(), ..merged }
    }

    /// Returns the content of adjacent ranges taken together, from the content and width of each.
    pub fn average(&self, parts: &[(Content, f64)]) -> Content {
        let total: f64 = parts.iter().map(|(_, width)| width).sum();
        let weight =
            |width: f64| if total > 0.0 { width / total } else { 1.0 / parts.len() as f64 };
        let mut groups = vec![GroupContent::default(); self.groups.len()];
        let (mut erased, mut range_tombstones, mut is_final) = (0.0, 0.0, false);
        let mut cohorts = CohortSum::default();
        for (content, width) in parts {
            let weight = weight(*width);
            erased += content.erased * weight;
            range_tombstones += content.range_tombstones * weight;
            is_final |= content.is_final;
            cohorts.add(&content.cohorts, |_| weight);
            for (sum, part) in groups.iter_mut().zip(&*content.groups) {
                sum.hit += part.hit * weight;
                sum.entries += part.entries * weight;
                sum.tombstones += part.tombstones * weight;
                sum.expired += part.expired * weight;
            }
        }
        let cohorts = cohorts.finish();
        Content { groups: groups.into(), erased, range_tombstones, is_final, cohorts }
    }
}

impl Content {
    /// Returns the expected number of tombstones in a fraction `width` of the key space, including
    /// expired values.
    pub fn tombstones(&self, width: f64) -> f64 {
        width * self.groups.iter().map(|group| group.tombstones + group.expired).sum::<f64>()
    }

    /// Returns the expected number of range tombstones in a fraction `width` of the key space.
    pub fn range_tombstones(&self, width: f64) -> f64 {
        width * self.range_tombstones
    }

    /// Returns true if the run has tombstones.
    pub fn has_tombstones(&self) -> bool {
        let is_dead = |group: &GroupContent| group.tombstones + group.expired > 0.0;
        self.range_tombstones > 0.0 || self.groups.iter().any(is_dead)
    }

    /// Returns the content without its tombstones: the result of a merge with no older data below
    /// it.
    #[must_use]
    pub fn without_tombstones(&self) -> Self {
        let group = |group: &GroupContent| GroupContent {
            entries: group.values(),
            tombstones: 0.0,
            expired: 0.0,
            ..*group
        };
        Self {
            groups: self.groups.iter().map(group).collect(),
            erased: 0.0,
            range_tombstones: 0.0,
            is_final: self.is_final,
            cohorts: self.cohorts.clone(),
        }
    }
}

fn zipf(records: f64, theta: f64) -> Vec<KeyGroup> {
    let weight = |from: f64, upto: f64| -> f64 {
        // Add up a few ranks; approximate many by the integral between their midpoints.
        if upto - from < 64.0 {
            let mut sum = 0.0;
            let mut rank = from;
            while rank < upto {
                sum += pow(rank, -theta);
                rank += 1.0;
            }
            return sum;
        }
        let (a, b) = (from - 0.5, upto - 0.5);
        if (theta - 1.0).abs() < 1e-9 {
            log(b / a)
        } else {
            (pow(b, 1.0 - theta) - pow(a, 1.0 - theta)) / (1.0 - theta)
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
    fn tombstones_hide_older_entries_until_nothing_is_older() {
        let keys = Population::new(1e6, Skew::Uniform);
        let everything = keys.after_load(1e6);
        // Every key is deleted about once per million deletes.
        let deletes = WriteMix { deletes: 1.0, ..WriteMix::default() };
        let newer = keys.after_writes(1e6, &deletes);
        assert!((newer.tombstones(1.0) - keys.entries(&newer, 1.0)).abs() < 1e-6);
        let merged = keys.union([&newer, &everything]);
        let left = (-1f64).exp() * 1e6;
        assert!((keys.entries(&merged, 1.0) - 1e6).abs() < 1.0);
        let settled = merged.without_tombstones();
        assert!((keys.entries(&settled, 1.0) - left).abs() < 1.0);
        assert!(merged.has_tombstones() && !settled.has_tombstones());
        // In reverse order, the load is newer and hides nothing.
        let wrong = keys.union([&everything, &newer]);
        assert!(keys.entries(&wrong, 1.0) > 1.6e6);
    }

    #[test]
    fn keys_deleted_for_good_shrink_the_choice_and_inserts_grow_it() {
        let mut keys = Population::new(1000.0, Skew::Uniform);
        let mix = WriteMix { deletes: 0.5, deleted_return: false, ..WriteMix::default() };
        let content = keys.after_writes(400.0, &mix);
        assert!((content.tombstones(1.0) - 200.0).abs() < 1e-9);
        keys.grow(400.0, &mix);
        assert_eq!(keys.live(), 800.0);
        let inserts = WriteMix { inserts: 1.0, ..mix };
        let new = keys.after_writes(300.0, &WriteMix { deletes: 0.0, ..inserts });
        assert!((keys.entries(&new, 1.0) - 300.0).abs() < 1e-9);
        keys.grow(300.0, &WriteMix { deletes: 0.0, ..inserts });
        assert_eq!(keys.live(), 1100.0);
        // Inserts hit nothing: no older entry is dropped.
        let both = keys.union([&new, &content]);
        let sum = keys.entries(&new, 1.0) + keys.entries(&content, 1.0);
        assert!((keys.entries(&both, 1.0) - sum).abs() < 1e-9);
    }

    #[test]
    fn range_deletes_erase_their_share_of_older_entries() {
        let keys = Population::new(1e5, Skew::Uniform);
        let mix = WriteMix { range_deletes: 1.0, range_width: 0.01, ..WriteMix::default() };
        let ranges = keys.after_writes(100.0, &mix);
        assert_eq!(keys.entries(&ranges, 1.0), 0.0);
        let merged = keys.union([&ranges, &keys.after_load(1e5)]);
        let left = (-1f64).exp() * 1e5;
        assert!((keys.entries(&merged, 1.0) - left).abs() < 1.0);
        assert_eq!(merged.range_tombstones(1.0), 100.0);
        assert_eq!(merged.without_tombstones().range_tombstones(1.0), 0.0);
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
