//! Operations in proportions: the workload `mix`.
//!
//! The text form names each kind of operation with its share, and where keys are chosen how:
//! `insert=50,update=10@zipf:0.99,get=30,missing=5,scan:16=4,scan:1%=1`. Shares are proportions and
//! need not add up to a hundred. The kinds are those of the compaction paper's generator (§4.3.1):
//! inserts, updates, lookups of keys that are there and that are not, ranges by their length or by
//! their share of the keys (selectivity), and deletes of keys that are there.

mod text;

use crate::distribution::Distribution;
use crate::key::KeyOrder;

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OperationKind {
    /// Puts a new key: `insert`.
    Insert,
    /// Puts a key that is there: `update`.
    Update,
    /// Gets a key that is there: `get`.
    Get,
    /// Gets a key that is not there, as it never was or was deleted: `missing`.
    Missing,
    /// Reads entries from a key on that is there: `scan:N`, or `scan:P%` of the loaded keys.
    Scan(ScanLength),
    /// Deletes a key that is there: `delete`.
    Delete,
}

/// How much a scan reads.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScanLength {
    /// So many entries.
    Entries(u32),
    /// So many entries of a hundred that were loaded: the selectivity, in percent.
    Percent(f64),
}

impl ScanLength {
    /// The number of entries, where `loaded` keys were loaded; at least one.
    pub fn entries(self, loaded: u64) -> u64 {
        match self {
            Self::Entries(entries) => entries.into(),
            Self::Percent(percent) => ((percent / 100.0 * loaded as f64).round() as u64).max(1),
        }
    }
}

/// A kind of operation, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Part {
    /// What is done.
    pub kind: OperationKind,
    /// Its proportion to the others, above 0.
    pub share: f64,
    /// How keys are chosen; `None` for how the run chooses them.
    pub distribution: Option<Distribution>,
}

/// How operations of different kinds follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MixOrder {
    /// In random order, in their proportions at every time.
    #[default]
    Interleaved,
    /// All of one kind before the next, in the order of the text.
    Serial,
}

/// Operations in proportions.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationMix {
    parts: Vec<Part>,
    /// Where new keys fall.
    placement: KeyOrder,
    /// How the kinds follow each other.
    pub order: MixOrder,
}

impl Default for OperationMix {
    /// Half writes, half reads, a bit of everything.
    fn default() -> Self {
        let part = |kind, share| Part { kind, share, distribution: None };
        Self {
            parts: vec![
                part(OperationKind::Insert, 25.0),
                part(OperationKind::Update, 20.0),
                part(OperationKind::Delete, 5.0),
                part(OperationKind::Get, 30.0),
                part(OperationKind::Missing, 10.0),
                part(OperationKind::Scan(ScanLength::Entries(16)), 10.0),
            ],
            placement: KeyOrder::Hashed,
            order: MixOrder::Interleaved,
        }
    }
}

impl OperationMix {
    /// The kinds with their shares, in the order of the text.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Where inserts put new keys among all possible ones. Those that the mix works on must have
    /// been put there too, or in order.
    pub fn placement(&self) -> KeyOrder {
        self.placement
    }

    /// Whether there are operations of a kind.
    pub fn has(&self, kind: OperationKind) -> bool {
        self.parts.iter().any(|part| part.kind == kind)
    }

    /// Whether anything is written.
    pub fn writes(&self) -> bool {
        [OperationKind::Insert, OperationKind::Update, OperationKind::Delete]
            .into_iter()
            .any(|kind| self.has(kind))
    }

    /// How `total` operations divide into the parts: exact to one operation, and all of them.
    pub fn counts(&self, total: u64) -> Vec<u64> {
        let sum: f64 = self.parts.iter().map(|part| part.share).sum();
        let mut so_far = 0.0;
        let mut given = 0;
        let mut counts = Vec::with_capacity(self.parts.len());
        for (number, part) in self.parts.iter().enumerate() {
            so_far += part.share;
            let upto = (so_far / sum * total as f64).round() as u64;
            let upto = if number + 1 == self.parts.len() { total } else { upto.min(total) };
            counts.push(upto.saturating_sub(given));
            given = given.max(upto);
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_keep_the_proportions_and_leave_nothing_over() {
        let mix: OperationMix = "insert=1,get=1,missing=1".parse().unwrap();
        assert_eq!(mix.counts(300), [100, 100, 100]);
        for total in [0, 1, 2, 7, 1_000_003] {
            let counts = mix.counts(total);
            assert_eq!(counts.iter().sum::<u64>(), total);
            assert!(counts.iter().all(|count| count.abs_diff(total / 3) <= 1), "{counts:?}");
        }
        assert_eq!(OperationMix::default().counts(100), [25, 20, 5, 30, 10, 10]);
    }

    #[test]
    fn selectivity_is_a_share_of_the_loaded_keys() {
        assert_eq!(ScanLength::Percent(1.0).entries(50_000), 500);
        assert_eq!(ScanLength::Percent(0.001).entries(1000), 1);
        assert_eq!(ScanLength::Entries(16).entries(5), 16);
    }
}
