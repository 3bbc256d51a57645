//! The entries that a compaction may drop.
//!
//! Snapshots divide sequence numbers into stripes. Stripe 0 extends up to and including the oldest
//! snapshot, stripe 1 from there to the next snapshot, and so on; the last stripe belongs to
//! readers without a snapshot. A reader that can see one version of a stripe can see all of them,
//! because no snapshot lies between them, so the reader needs only the newest version of each key
//! in the stripe. Therefore:
//!
//! 1. Of the versions of a key in one stripe, only the newest is kept.
//! 2. A version is dropped if a newer range tombstone of the same stripe covers it.
//! 3. A tombstone is dropped if it is in stripe 0 and no older table contains its key. Rules 1 and 2
//!    drop all older versions among the inputs.
//! 4. A value that has expired for all readers counts as a tombstone.
//! 5. A version of the last stripe that a compaction filter removes counts as a tombstone
//!    ([`super::filtering`]).
//! 6. Of the range tombstones over a key in one stripe, only the newest is kept. A range
//!    tombstone of stripe 0 is dropped if no older table overlaps it.

use std::sync::Arc;

use terrane_memtable::Fragment;
use terrane_policy::{KeyRange, TableInfo};

use super::filtering::Filtering;
use super::operands::{self, Below};
use super::output::{Output, Version};
use crate::base::error::Result;
use crate::base::expiry::expires_at_micros;
use crate::base::merge_operator::{MergeOperator, OperandChain, Part};
use crate::base::types::{EntryKind, SeqNo};

/// The tables that are older than the output and not merged into it, run by run in key order.
#[derive(Debug, Default)]
pub(crate) struct OlderTables {
    runs: Vec<OlderRun>,
}

#[derive(Debug)]
struct OlderRun {
    tables: Vec<Arc<TableInfo>>,
    /// The first table that ends after the most recent key.
    at: usize,
}

impl OlderTables {
    pub(crate) fn new(runs: Vec<Vec<Arc<TableInfo>>>) -> Self {
        Self { runs: runs.into_iter().map(|tables| OlderRun { tables, at: 0 }).collect() }
    }

    /// Returns true if some table may contain `key`. Keys must be passed in ascending order.
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

/// Decides for each entry whether it is dropped.
#[derive(Debug)]
pub(crate) struct DropRules {
    /// Sequence numbers of all snapshots, ascending.
    snapshots: Vec<SeqNo>,
    older: OlderTables,
    deleted: Vec<Fragment>,
    /// The first fragment that ends after the current key.
    at: usize,
    is_bottom: bool,
    /// Values that expire up to this time have expired for all readers.
    expired_micros: u64,
    /// Combines operands.
    operator: Option<Arc<dyn MergeOperator>>,
    /// Filters values, if the keyspace has a filter.
    filtering: Option<Filtering>,
}

impl DropRules {
    /// `snapshots` must be ascending.
    pub(crate) fn new(snapshots: Vec<SeqNo>, older: OlderTables) -> Self {
        Self {
            snapshots,
            older,
            deleted: Vec::new(),
            at: 0,
            is_bottom: false,
            expired_micros: 0,
            operator: None,
            filtering: None,
        }
    }

    /// Combines operands with this operator, if any.
    pub(crate) fn combining(self, operator: Option<&Arc<dyn MergeOperator>>) -> Self {
        Self { operator: operator.cloned(), ..self }
    }

    /// Applies this filter, if any, to the versions that no snapshot sees.
    pub(crate) fn filtering(self, filtering: Option<Filtering>) -> Self {
        Self { filtering, ..self }
    }

    #[inline]
    pub(super) fn has_filter(&self) -> bool {
        self.filtering.is_some()
    }

    pub(super) fn operator(&self) -> Option<&dyn MergeOperator> {
        self.operator.as_deref()
    }

    /// Adds the next older version of the key to the operands at the top of a stripe. Returns false
    /// if the version must be kept below them.
    pub(super) fn decide(
        &self,
        chain: &mut OperandChain,
        key: &[u8],
        Version { seq, kind, value }: Version<'_>,
        is_same_stripe: bool,
        output: &mut Output<'_>,
    ) -> Result<bool> {
        let below = match kind {
            // Snapshots in between see this version without the operands.
            _ if !is_same_stripe => Below::Unknown,
            _ if self.is_deleted(key, seq, self.stripe(seq)) => Below::Nothing,
            EntryKind::Tombstone => Below::Nothing,
            EntryKind::Value => Below::Value(value, seq),
            EntryKind::Operand => {
                chain.push(self.operator(), key, (seq, value));
                if let Some(Part { seq, bytes, .. }) = chain.take_excess() {
                    output.add(key, seq, EntryKind::Operand, &bytes)?;
                }
                return Ok(true);
            }
            EntryKind::Separated | EntryKind::Expiring => Below::Unknown,
        };
        operands::write(chain, self, key, &below, output)?;
        Ok(!matches!(below, Below::Unknown))
    }

    /// Writes the newest version of the current key. Applies the filter to it if it is in the last
    /// stripe, and keeps it otherwise. Returns how many bytes of values were read from value files.
    #[inline(never)]
    pub(super) fn write_newest(
        &self,
        key: &[u8],
        version: Version<'_>,
        output: &mut Output<'_>,
    ) -> Result<usize> {
        let Version { seq, kind, value } = version;
        if let Some(filtering) = &self.filtering {
            let stripe = self.stripe(seq);
            let is_filtered = kind.is_value() && kind.hides_older();
            if is_filtered && stripe == self.snapshots.len() {
                let drops_tombstone = stripe == 0 && self.is_bottom;
                return filtering.write(key, version, drops_tombstone, output);
            }
        }
        output.add(key, seq, kind, value)
    }

    /// Writes the operands that are left after the last version of the current key.
    #[inline]
    pub(super) fn end_key(
        &self,
        operands: &mut OperandChain,
        key: &[u8],
        output: &mut Output<'_>,
    ) -> Result<()> {
        if operands.is_empty() {
            return Ok(());
        }
        let below = if self.is_bottom { Below::Nothing } else { Below::Unknown };
        operands::write(operands, self, key, &below, output)
    }

    /// Applies rule 4 to values that expire up to a time, in microseconds since the Unix epoch.
    pub(crate) fn expiring_up_to(self, expired_micros: u64) -> Self {
        Self { expired_micros, ..self }
    }

    /// Returns true if a stored value of this kind has expired for all readers.
    #[inline]
    pub(super) fn has_expired(&self, kind: EntryKind, stored: &[u8]) -> bool {
        kind == EntryKind::Expiring && expires_at_micros(stored) <= self.expired_micros
    }

    pub(super) fn set_deleted(&mut self, fragments: Vec<Fragment>) {
        self.deleted = fragments;
    }

    /// Returns the stripe of a sequence number: the number of snapshots before it.
    #[inline]
    pub(super) fn stripe(&self, seq: SeqNo) -> usize {
        match self.snapshots.last() {
            None => 0,
            Some(&newest) if newest < seq => self.snapshots.len(),
            Some(_) => self.snapshots.partition_point(|&snapshot| snapshot < seq),
        }
    }

    /// Advances to `key`, which must be above all previous keys.
    #[inline]
    pub(super) fn go_to(&mut self, key: &[u8]) {
        self.is_bottom = !self.older.may_hold(key);
        let ends_before =
            |fragment: &Fragment| fragment.end.as_ref().is_some_and(|end| **end <= *key);
        while self.deleted.get(self.at).is_some_and(ends_before) {
            self.at += 1;
        }
    }

    /// Returns true if no older table can contain the current key.
    pub(super) fn is_bottom(&self) -> bool {
        self.is_bottom
    }

    /// Applies rule 2 to a version of the current key.
    #[inline]
    pub(super) fn is_deleted(&self, key: &[u8], seq: SeqNo, stripe: usize) -> bool {
        let Some(fragment) = self.deleted.get(self.at).filter(|fragment| fragment.contains(key))
        else {
            return false;
        };
        fragment.seqs.iter().any(|&deleted| deleted > seq && self.stripe(deleted) == stripe)
    }

    /// Returns the newest of `seqs` in each stripe. `seqs` are range tombstones over the same keys,
    /// newest first; the other ones affect no rule.
    pub(crate) fn newest_of_each(&self, seqs: &[SeqNo]) -> Vec<SeqNo> {
        let mut last_stripe = None;
        let is_newest = |seq: &SeqNo| {
            let stripe = self.stripe(*seq);
            last_stripe.replace(stripe) != Some(stripe)
        };
        seqs.iter().copied().filter(is_newest).collect()
    }

    /// Applies rule 6.
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
