//! Ranks all kinds of memtables by their expected cost for a mix, for `terrane advise`.
//!
//! For the hashed kinds this includes the length of the prefix and the number of buckets, X and H
//! of the memory buffer paper: the shortest prefix that gives nearly every entry of a memtable its
//! own bucket, and, if there are ranges, the longest prefix within which most ranges stay.

use libm::{exp, log2};

use super::costs::{self, MEASURED};
use super::model::CostModel;
use super::{MemtableOperations, SCANNED, choose};
use crate::design::flodb::FloDb;
use crate::design::{MemtableKind, OrderedView, VectorQuery};

/// The nanoseconds that a lookup spends on each doubling of a skip-list bucket, on each entry that
/// it passes in a linked list, and on each entry in an array. The source is the table of lookups by
/// number of buckets in `docs/papers/memtables.md` (§3.4 of the paper).
const DOUBLING: f64 = 60.0;
const LIST_ENTRY: f64 = 40.0;
const ARRAY_ENTRY: f64 = 10.0;

/// A prefix is long enough if it gives this many buckets for each entry.
const ENOUGH: f64 = 0.9;

/// Most ranges stay within a prefix that has this many times as many entries as a range.
const WITHIN: f64 = 4.0;

/// The default bucket length at which a linked list becomes a skip-list.
const THRESHOLD: u32 = 256;

/// The prefixes of a database's keys, estimated from keys that are neighbours in key order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PrefixSample {
    /// The number of keys in the database.
    records: f64,
    /// The share of neighbours whose prefixes differ, by prefix length.
    differ: Vec<f64>,
}

impl PrefixSample {
    /// Returns a sample from runs of keys. The keys of each run are neighbours in the database, which has
    /// `records` keys. Returns `None` if no run has two keys.
    pub fn of_runs<K: AsRef<[u8]>>(runs: &[Vec<K>], records: f64) -> Option<Self> {
        let pairs = || runs.iter().flat_map(|run| run.windows(2));
        let count = pairs().count();
        let longest = runs.iter().flatten().map(|key| key.as_ref().len()).max()?;
        let longest = longest.min(u8::MAX.into());
        let mut differ = vec![0.0; longest + 1];
        for pair in pairs() {
            let keys = pair.iter().map(AsRef::as_ref).collect::<Vec<&[u8]>>();
            let (one, other) = (keys[0], keys[1]);
            let common = one.iter().zip(other).take_while(|(one, other)| one == other).count();
            differ.iter_mut().skip(common + 1).for_each(|pairs| *pairs += 1.0);
        }
        differ.iter_mut().for_each(|pairs| *pairs /= count.max(1) as f64);
        (count > 0).then_some(Self { records, differ })
    }

    /// Estimates the number of prefixes of a length in the database.
    fn prefixes(&self, length: u8) -> f64 {
        let share = self.differ.get(usize::from(length)).or(self.differ.last());
        1.0 + share.copied().unwrap_or_default() * self.records
    }

    /// Estimates the number of prefixes among some entries.
    fn among(&self, length: u8, entries: f64) -> f64 {
        let all = self.prefixes(length);
        all * (1.0 - exp(-entries / all))
    }

    /// Returns the shortest prefix that gives nearly every entry a bucket of its own.
    fn shortest(&self, entries: f64) -> u8 {
        let longest = u8::try_from(self.differ.len().saturating_sub(1)).unwrap_or(u8::MAX);
        let most = self.among(longest, entries);
        let is_enough = |length: &u8| self.among(*length, entries) >= ENOUGH * most;
        (0..=longest).find(is_enough).unwrap_or(longest)
    }

    /// Returns the longest prefix within which most ranges of `scanned` entries stay, if there is one.
    fn of_ranges(&self, scanned: f64) -> Option<u8> {
        let stay = |length: &u8| self.records / self.prefixes(*length) >= WITHIN * scanned;
        let longest = u8::try_from(self.differ.len().saturating_sub(1)).unwrap_or(u8::MAX);
        (1..=longest).rev().find(stay)
    }
}

/// A kind with its expected cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankedMemtable {
    /// The kind; never `auto`.
    pub kind: MemtableKind,
    /// Nanoseconds per operation in the memtable, and for the flush.
    pub nanos: f64,
}

/// Ranks all kinds for a mix, lowest cost first, and returns the cost of the present kind. `sample` gives
/// the prefixes of the keys; without it, the first eight bytes of all keys are assumed to differ.
pub fn rank_memtables(
    mix: &MemtableOperations,
    buffer_bytes: u64,
    sample: Option<&PrefixSample>,
    present: MemtableKind,
) -> (Vec<RankedMemtable>, f64) {
    let model = CostModel::new(mix, mix.entries_of(buffer_bytes), &MEASURED);
    let ranking = Ranking { mix, sample, buffer_bytes, model: &model };
    let mut ranked: Vec<RankedMemtable> = ranking.candidates();
    ranked.sort_by(|one, other| one.nanos.total_cmp(&other.nanos));
    let present = match present {
        MemtableKind::Auto => choose(mix, None, buffer_bytes).kind,
        other => other,
    };
    (ranked, ranking.nanos(present))
}

struct Ranking<'a> {
    mix: &'a MemtableOperations,
    sample: Option<&'a PrefixSample>,
    buffer_bytes: u64,
    model: &'a CostModel<'a>,
}

impl Ranking<'_> {
    fn candidates(&self) -> Vec<RankedMemtable> {
        let mut kinds = vec![
            MemtableKind::BTree,
            MemtableKind::SKIP_LIST,
            MemtableKind::VECTOR,
            SCANNED,
            MemtableKind::FloDb(FloDb::DEFAULT),
        ];
        let view = OrderedView::Kept;
        let (all, buckets) = (u8::MAX, self.buckets(u8::MAX));
        kinds.push(MemtableKind::HashVector { prefix: all, buckets, view });
        let entries = self.model.entries;
        let shortest = self.sample.map_or(8, |sample| sample.shortest(entries));
        let scanned = self.mix.scanned as f64 / self.mix.scans.max(1) as f64;
        let ranges = self.sample.filter(|_| self.mix.scans > 0);
        let ranges = ranges.and_then(|sample| sample.of_ranges(scanned.max(1.0)));
        for prefix in std::iter::once(shortest).chain(ranges.filter(|prefix| *prefix != shortest)) {
            let buckets = self.buckets(prefix);
            kinds.push(MemtableKind::HashSkipList { prefix, buckets, height: 12, view });
            let threshold = THRESHOLD;
            kinds.push(MemtableKind::HashLinkedList { prefix, buckets, threshold, view });
        }
        kinds.into_iter().map(|kind| RankedMemtable { kind, nanos: self.nanos(kind) }).collect()
    }

    /// Returns the number of prefixes among the entries of a full memtable.
    fn prefixes(&self, length: u8) -> f64 {
        let entries = self.model.entries;
        self.sample.map_or(entries, |sample| sample.among(length, entries)).max(1.0)
    }

    /// Returns a bucket for each prefix of a full memtable.
    fn buckets(&self, prefix: u8) -> u32 {
        let most = (self.buffer_bytes / 64).clamp(1, 1 << 24);
        (self.prefixes(prefix) as u64).next_power_of_two().clamp(1, most) as u32
    }

    /// Returns the cost of an operation of the mix.
    fn nanos(&self, kind: MemtableKind) -> f64 {
        let sorted = if self.stays_in_prefix(kind) { self.sorting(kind) } else { 0.0 };
        let all = self.model.nanos(kind) - sorted + self.crowding(kind) + self.copying(kind);
        all / self.mix.total().max(1) as f64
    }

    /// Returns true if ranges of the mix stay in the prefixes of a hashed kind, which then sorts nothing.
    fn stays_in_prefix(&self, kind: MemtableKind) -> bool {
        let (MemtableKind::HashSkipList { prefix, .. }
        | MemtableKind::HashLinkedList { prefix, .. }) = kind
        else {
            return false;
        };
        let scanned = self.mix.scanned as f64 / self.mix.scans.max(1) as f64;
        let longest = self.sample.and_then(|sample| sample.of_ranges(scanned.max(1.0)));
        self.mix.scans > 0 && longest.is_some_and(|longest| prefix <= longest)
    }

    /// Returns the cost of sorting for ranges.
    fn sorting(&self, kind: MemtableKind) -> f64 {
        let (costs, half) = (self.model.costs(kind), self.model.searched(kind));
        self.model.ordered(costs, half, self.mix.scans) - self.model.ordered(costs, half, 0)
    }

    /// Returns the cost of searches in buckets with several entries.
    fn crowding(&self, kind: MemtableKind) -> f64 {
        let each = |prefix: u8, buckets: u32| {
            // A memtable is half full on average.
            self.model.entries / 2.0 / self.prefixes(prefix).min(buckets.into())
        };
        let skips = |entries: f64| log2(entries.max(1.0)) * DOUBLING;
        let (search, is_searched_by_inserts) = match kind {
            MemtableKind::HashSkipList { prefix, buckets, .. } => {
                (skips(each(prefix, buckets)), true)
            }
            MemtableKind::HashLinkedList { prefix, buckets, threshold, .. } => {
                match each(prefix, buckets) {
                    few if threshold == 0 || few < threshold.into() => {
                        ((few - 1.0).max(0.0) / 2.0 * LIST_ENTRY, true)
                    }
                    many => (skips(many), true),
                }
            }
            MemtableKind::HashVector { prefix, buckets, .. } => {
                ((each(prefix, buckets) - 1.0).max(0.0) * ARRAY_ENTRY, false)
            }
            _ => (0.0, false),
        };
        let inserts = if is_searched_by_inserts { self.mix.writes } else { 0 };
        (self.mix.lookups + self.mix.scans + inserts) as f64 * search
    }

    /// Returns the cost of copying and sorting all entries for a read.
    fn copying(&self, kind: MemtableKind) -> f64 {
        let reads = match kind {
            MemtableKind::Vector { query: VectorQuery::Copy, .. } => {
                self.mix.lookups + self.mix.scans
            }
            MemtableKind::HashSkipList { view: OrderedView::Copy, .. }
            | MemtableKind::HashLinkedList { view: OrderedView::Copy, .. }
            | MemtableKind::HashVector { view: OrderedView::Copy, .. } => self.mix.scans,
            _ => 0,
        };
        let entries = self.model.entries;
        let order = costs::at(&self.model.costs(kind).order, entries);
        reads as f64 * entries / 2.0 * order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUFFER: u64 = 64 << 20;

    fn mix(writes: u64, lookups: u64, scans: u64) -> MemtableOperations {
        MemtableOperations {
            writes,
            ascending: writes / 2,
            distinct: writes,
            written_bytes: writes * 116,
            lookups,
            found: lookups / 2,
            scans,
            scanned: scans * 10,
            threads: 1,
        }
    }

    /// Keys of 12 digits: 1000 groups of 1000 numbers.
    fn sample() -> PrefixSample {
        let keys = |from: u64| (from..from + 64).map(|n| format!("{:06}{:06}", n / 1000, n % 1000));
        let runs: Vec<Vec<String>> = (0..100).map(|run| keys(run * 9_973).collect()).collect();
        PrefixSample::of_runs(&runs, 1e6).unwrap()
    }

    #[test]
    fn prefixes_are_estimated_from_neighbours() {
        let sample = sample();
        let near = |length, expected: f64| {
            let found = sample.prefixes(length);
            assert!((found / expected - 1.0).abs() < 0.6, "{length}: {found}");
        };
        near(0, 1.0);
        near(6, 1000.0);
        near(11, 100_000.0);
        near(12, 1_000_000.0);
        assert_eq!(sample.shortest(50_000.0), 12);
        assert_eq!(sample.shortest(5_000.0), 11);
        // A range of 10 entries stays within a prefix that 100 keys share, on average.
        assert_eq!(sample.of_ranges(10.0), Some(10));
        assert_eq!(sample.of_ranges(1e6), None);
        assert_eq!(PrefixSample::of_runs::<&str>(&[vec![], vec!["a"]], 9.0), None);
    }

    #[test]
    fn the_first_of_the_ranking_is_what_auto_chooses() {
        for (writes, lookups, scans) in [(1000, 0, 0), (500, 500, 0), (500, 0, 500), (10, 990, 0)] {
            let mix = mix(writes * 1000, lookups * 1000, scans * 1000);
            let (ranked, now) = rank_memtables(&mix, BUFFER, None, MemtableKind::Auto);
            let chosen = choose(&mix, None, BUFFER).kind;
            let place = ranked.iter().position(|one| super::super::are_alike(one.kind, chosen));
            assert!(place.is_some_and(|place| place < 3), "{chosen}: {ranked:?}");
            assert!(now <= ranked[0].nanos * 1.2, "{now}: {ranked:?}");
        }
    }

    #[test]
    fn prefix_and_buckets_follow_the_keys() {
        let sample = sample();
        let mix = mix(500_000, 500_000, 0);
        let cost = |kind: &str| {
            let kind = kind.parse().unwrap();
            rank_memtables(&mix, BUFFER, Some(&sample), kind).1
        };
        let good = cost("hash-linkedlist(prefix=12,buckets=524288)");
        assert!(cost("hash-linkedlist(prefix=12,buckets=100)") > 1.3 * good);
        assert!(cost("hash-linkedlist(prefix=6,buckets=524288)") > 1.3 * good);
        assert!(cost("vector(query=copy)") > 100.0 * good);
        let (ranked, _) = rank_memtables(&mix, BUFFER, Some(&sample), MemtableKind::BTree);
        let found = ranked.iter().find_map(|one| match one.kind {
            MemtableKind::HashLinkedList { prefix, buckets, .. } => Some((prefix, buckets)),
            _ => None,
        });
        assert_eq!(found, Some((12, 1 << 19)));
        assert!(ranked.windows(2).all(|pair| pair[0].nanos <= pair[1].nanos));
    }
}
