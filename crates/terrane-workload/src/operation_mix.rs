//! Operations in proportions: the workload `mix`.
//!
//! The text form has each kind of operation with its share, and optionally its distribution:
//! `insert=50,update=10@zipf:0.99,get=30,missing=5,scan:16=4,scan:1%=1`. Shares are proportions and
//! need not add up to a hundred. The kinds are those of the compaction paper's generator (§4.3.1):
//! inserts, updates, lookups of existing and of missing keys, range scans of a given length or
//! selectivity, and deletes of existing keys, of missing keys and of ranges.
//!
//! Phases follow each other, separated by `;`, and share their keys. `x3` after a phase gives it three
//! times as many operations as a phase without a factor: `insert=1 x3; get=9,update=1; scan:16=1`.

mod text;

use crate::distribution::Distribution;
use crate::key::KeyOrder;

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OperationKind {
    /// Puts a new key: `insert`.
    Insert,
    /// Puts an existing key: `update`.
    Update,
    /// Gets an existing key: `get`.
    Get,
    /// Gets a deleted or never written key: `missing`.
    Missing,
    /// Reads entries starting at an existing key: `scan:N`, or `scan:P%` of the loaded keys.
    Scan(ScanLength),
    /// Deletes an existing key: `delete`.
    Delete,
    /// Deletes a deleted or never written key: `delete-missing`.
    DeleteMissing,
    /// Deletes the range that begins at an existing key and has this many keys of the client:
    /// `delete-range:N`, or `delete-range:P%` of the loaded keys. Only one client may do this,
    /// because the range also contains other clients' keys.
    DeleteRange(ScanLength),
}

impl OperationKind {
    /// Returns true if the operation writes.
    pub fn writes(self) -> bool {
        match self {
            Self::Insert
            | Self::Update
            | Self::Delete
            | Self::DeleteMissing
            | Self::DeleteRange(_) => true,
            Self::Get | Self::Missing | Self::Scan(_) => false,
        }
    }
}

/// The length of a scan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ScanLength {
    /// A number of entries.
    Entries(u32),
    /// The selectivity: a percentage of the loaded entries.
    Percent(f64),
}

impl ScanLength {
    /// Returns the number of entries, which is at least one, if `loaded` keys were loaded.
    pub fn entries(self, loaded: u64) -> u64 {
        match self {
            Self::Entries(entries) => entries.into(),
            Self::Percent(percent) => ((percent / 100.0 * loaded as f64).round() as u64).max(1),
        }
    }
}

/// A kind of operation with its share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MixPart {
    /// The kind.
    pub kind: OperationKind,
    /// The share relative to the other kinds, above 0.
    pub share: f64,
    /// The distribution of key choices; `None` means the distribution of the run.
    pub distribution: Option<Distribution>,
}

/// The order of operations of different kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MixOrder {
    /// Random, with constant proportions throughout the run.
    #[default]
    Interleaved,
    /// One kind after the other, in the order of the text.
    Serial,
}

/// Consecutive parts of a mix that are mixed with each other.
#[derive(Debug, Clone, PartialEq)]
struct MixPhase {
    /// The operations of the phase relative to those of the other phases, above 0.
    weight: f64,
    /// The number of parts of the phase; they follow those of the previous phase.
    parts: usize,
}

/// Operations in proportions.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationMix {
    /// The parts of all phases.
    parts: Vec<MixPart>,
    phases: Vec<MixPhase>,
    /// The placement of inserted keys.
    placement: KeyOrder,
    /// The order of operations of different kinds.
    pub order: MixOrder,
}

impl Default for OperationMix {
    /// Returns a mix of half writes and half reads that includes every kind.
    fn default() -> Self {
        let part = |kind, share| MixPart { kind, share, distribution: None };
        Self {
            parts: vec![
                part(OperationKind::Insert, 25.0),
                part(OperationKind::Update, 20.0),
                part(OperationKind::Delete, 5.0),
                part(OperationKind::Get, 30.0),
                part(OperationKind::Missing, 10.0),
                part(OperationKind::Scan(ScanLength::Entries(16)), 10.0),
            ],
            phases: vec![MixPhase { weight: 1.0, parts: 6 }],
            placement: KeyOrder::Hashed,
            order: MixOrder::Interleaved,
        }
    }
}

impl OperationMix {
    /// Returns the kinds of all phases with their shares within the phase, in the order of the text.
    pub fn parts(&self) -> &[MixPart] {
        &self.parts
    }

    /// Returns the parts of each phase, in order.
    pub fn phases(&self) -> impl Iterator<Item = &[MixPart]> {
        let mut rest = &self.parts[..];
        self.phases.iter().map(move |phase| {
            let (parts, later) = rest.split_at(phase.parts);
            rest = later;
            parts
        })
    }

    /// Returns the share of each part in all operations; the shares add up to 1.
    pub fn overall_shares(&self) -> Vec<f64> {
        let all: f64 = self.phases.iter().map(|phase| phase.weight).sum();
        let of_phase = |(phase, parts): (&MixPhase, &[MixPart])| -> Vec<f64> {
            let sum: f64 = parts.iter().map(|part| part.share).sum();
            parts.iter().map(|part| phase.weight / all * part.share / sum).collect()
        };
        self.phases.iter().zip(self.phases()).flat_map(of_phase).collect()
    }

    /// Returns the placement of inserted keys in the key space. The loaded keys must have the same
    /// placement, or be ordered.
    pub fn placement(&self) -> KeyOrder {
        self.placement
    }

    /// Returns true if the mix has operations of a kind.
    pub fn has(&self, kind: OperationKind) -> bool {
        self.parts.iter().any(|part| part.kind == kind)
    }

    /// Returns true if the mix writes.
    pub fn writes(&self) -> bool {
        self.parts.iter().any(|part| part.kind.writes())
    }

    /// Returns true if the mix deletes existing keys.
    pub fn deletes(&self) -> bool {
        use OperationKind::{Delete, DeleteRange};
        self.parts.iter().any(|part| matches!(part.kind, Delete | DeleteRange(_)))
    }

    /// Returns true if the mix deletes ranges.
    pub fn deletes_ranges(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.kind, OperationKind::DeleteRange(_)))
    }

    /// Divides `total` operations among the parts of all phases. Each part gets its share to within
    /// one operation, and the counts add up to `total`.
    pub fn counts(&self, total: u64) -> Vec<u64> {
        let shares = self.overall_shares();
        let mut so_far = 0.0;
        let mut given = 0;
        let mut counts = Vec::with_capacity(shares.len());
        for (number, share) in shares.iter().enumerate() {
            so_far += share;
            let upto = (so_far * total as f64).round() as u64;
            let upto = if number + 1 == shares.len() { total } else { upto.min(total) };
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
    fn phases_divide_the_operations_by_weight() {
        let mix: OperationMix = "insert=1 x3; get=3,update=1".parse().unwrap();
        assert_eq!(mix.counts(1600), [1200, 300, 100]);
        assert_eq!(mix.overall_shares(), [0.75, 0.1875, 0.0625]);
        let sizes: Vec<usize> = mix.phases().map(<[MixPart]>::len).collect();
        assert_eq!(sizes, [1, 2]);
    }

    #[test]
    fn selectivity_is_a_share_of_the_loaded_keys() {
        assert_eq!(ScanLength::Percent(1.0).entries(50_000), 500);
        assert_eq!(ScanLength::Percent(0.001).entries(1000), 1);
        assert_eq!(ScanLength::Entries(16).entries(5), 16);
    }
}
