//! What a compaction may leave out.
//!
//! Snapshots cut sequence numbers into stripes: stripe 0 up to and including the oldest snapshot,
//! stripe 1 from there to the next, and so on; the last stripe is that of readers without one. All
//! readers that see any version of a stripe see the newest of a key in it, or a newer one of a
//! later stripe. So:
//!
//! 1. Of the versions of a key in one stripe only the newest is kept.
//! 2. A version is left out if a range tombstone of the same stripe covers it and is newer.
//! 3. A tombstone is left out if it is in stripe 0, so that all older versions of its key are left
//!    out by 1 or 2, and no older table holds its key.
//! 4. Of the range tombstones over a key in one stripe only the newest is kept; one of stripe 0 is
//!    left out where no older table lies.

use std::sync::Arc;

use terrane_memtable::Fragment;
use terrane_policy::{KeyRange, TableInfo};

use crate::types::SeqNo;

/// The tables that are older than the output and not merged into it, run by run in key order.
#[derive(Debug, Default)]
pub(crate) struct OlderTables {
    runs: Vec<OlderRun>,
}

#[derive(Debug)]
struct OlderRun {
    tables: Vec<Arc<TableInfo>>,
    /// The first table that ends after the key that was asked for last.
    at: usize,
}

impl OlderTables {
    pub(crate) fn new(runs: Vec<Vec<Arc<TableInfo>>>) -> Self {
        Self { runs: runs.into_iter().map(|tables| OlderRun { tables, at: 0 }).collect() }
    }

    /// Whether some table may hold `key`. Keys must be asked for in rising order.
    fn may_hold(&mut self, key: &[u8]) -> bool {
        self.runs.iter_mut().any(|run| {
            let ends_before =
                |table: &Arc<TableInfo>| table.range.end.as_ref().is_some_and(|end| **end <= *key);
            while run.tables.get(run.at).is_some_and(ends_before) {
                run.at += 1;
            }
            run.tables.get(run.at).is_some_and(|table| *table.range.start <= *key)
        })
    }

    fn overlap(&self, range: &KeyRange) -> bool {
        let mut tables = self.runs.iter().flat_map(|run| &run.tables);
        tables.any(|table| table.range.overlaps(range))
    }
}

/// Decides entry by entry.
#[derive(Debug)]
pub(crate) struct DropRules {
    /// Sequence numbers of all snapshots, rising.
    snapshots: Vec<SeqNo>,
    older: OlderTables,
    deleted: Vec<Fragment>,
    /// The first fragment that ends after the current key.
    at: usize,
    is_bottom: bool,
}

impl DropRules {
    /// `snapshots` must be rising.
    pub(crate) fn new(snapshots: Vec<SeqNo>, older: OlderTables) -> Self {
        Self { snapshots, older, deleted: Vec::new(), at: 0, is_bottom: false }
    }

    pub(super) fn set_deleted(&mut self, fragments: Vec<Fragment>) {
        self.deleted = fragments;
    }

    /// The stripe of a sequence number: how many snapshots are older.
    #[inline]
    pub(super) fn stripe(&self, seq: SeqNo) -> usize {
        match self.snapshots.last() {
            None => 0,
            Some(&newest) if newest < seq => self.snapshots.len(),
            Some(_) => self.snapshots.partition_point(|&snapshot| snapshot < seq),
        }
    }

    /// Goes on to `key`, which is above all before.
    #[inline]
    pub(super) fn go_to(&mut self, key: &[u8]) {
        self.is_bottom = !self.older.may_hold(key);
        let ends_before =
            |fragment: &Fragment| fragment.end.as_ref().is_some_and(|end| **end <= *key);
        while self.deleted.get(self.at).is_some_and(ends_before) {
            self.at += 1;
        }
    }

    /// Whether no older table may hold the current key.
    pub(super) fn is_bottom(&self) -> bool {
        self.is_bottom
    }

    /// Rule 2, for the current key.
    #[inline]
    pub(super) fn is_deleted(&self, key: &[u8], seq: SeqNo, stripe: usize) -> bool {
        let Some(fragment) = self.deleted.get(self.at).filter(|fragment| fragment.contains(key))
        else {
            return false;
        };
        fragment.seqs.iter().any(|&deleted| deleted > seq && self.stripe(deleted) == stripe)
    }

    /// Of tombstones over the same keys, newest first, the newest of each stripe: the others make no
    /// difference to any rule.
    pub(crate) fn newest_of_each(&self, seqs: &[SeqNo]) -> Vec<SeqNo> {
        let mut last_stripe = None;
        let is_newest = |seq: &SeqNo| {
            let stripe = self.stripe(*seq);
            last_stripe.replace(stripe) != Some(stripe)
        };
        seqs.iter().copied().filter(is_newest).collect()
    }

    /// Rule 4.
    pub(super) fn kept_fragments(&self, fragments: &[Fragment]) -> Vec<Fragment> {
        let kept = fragments.iter().filter_map(|fragment| {
            let range = KeyRange::new(&fragment.start, fragment.end.as_deref());
            let is_needed = self.older.overlap(&range);
            let mut seqs = self.newest_of_each(&fragment.seqs);
            seqs.retain(|&seq| is_needed || self.stripe(seq) > 0);
            (!seqs.is_empty()).then(|| Fragment { seqs, ..fragment.clone() })
        });
        kept.collect()
    }
}
