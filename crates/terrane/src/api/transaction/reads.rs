//! What a transaction read: the keys that it looked up, and the ranges in which it searched.

use std::collections::BTreeMap;
use std::ops::Bound::{Included, Unbounded};
use std::sync::Arc;

use super::by_keyspace::ByKeyspace;
use super::key_ranges::KeyRanges;
use super::writes::ENTRY_BYTES;
use crate::base::error::Result;
use crate::base::memory_ledger::{MemoryLedger, SteppedCharge};
use crate::base::types::{KeyspaceId, SeqNo};
use crate::engine::{Engine, Tree, WrittenKeys};
use crate::files::value::Key;

/// The number of a range that an iterator has not finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OpenRange(u64);

/// The reads of a transaction in all keyspaces.
#[derive(Debug)]
pub(super) struct Reads {
    trees: ByKeyspace<TreeReads>,
    charge: SteppedCharge,
    /// The whole ranges of iterators that are in use, or were never dropped.
    open: BTreeMap<OpenRange, (Arc<Tree>, KeyRanges)>,
    next_open: u64,
}

/// The reads in one keyspace.
#[derive(Debug, Default)]
struct TreeReads {
    /// The keys, and whether each had a value.
    keys: BTreeMap<Key, bool>,
    ranges: KeyRanges,
}

impl Reads {
    pub(super) fn new(ledger: &Arc<MemoryLedger>) -> Self {
        let charge = SteppedCharge::new(ledger, |ledger| &ledger.transactions);
        Self { trees: ByKeyspace::default(), charge, open: BTreeMap::new(), next_open: 0 }
    }

    /// Notes a lookup, and whether it found a value.
    pub(super) fn add_key(&mut self, tree: &Arc<Tree>, key: &[u8], was_found: bool) {
        let reads = self.trees.get_or_insert(tree);
        reads.keys.entry(key.into()).or_insert_with(|| {
            self.charge.add(ENTRY_BYTES + key.len());
            was_found
        });
    }

    /// Notes a range that an iterator may read until [`Self::close_range`].
    pub(super) fn open_range(
        &mut self,
        tree: &Arc<Tree>,
        start: &[u8],
        end: Option<&[u8]>,
    ) -> OpenRange {
        // `is_changed` looks for open ranges only in these trees.
        self.trees.get_or_insert(tree);
        let number = OpenRange(self.next_open);
        self.next_open += 1;
        let mut range = KeyRanges::default();
        range.add(start, end);
        self.open.insert(number, (Arc::clone(tree), range));
        number
    }

    /// Replaces a range by the parts that the iterator read.
    pub(super) fn close_range<'a>(
        &mut self,
        number: OpenRange,
        read: impl IntoIterator<Item = (&'a [u8], Option<&'a [u8]>)>,
    ) {
        let Some((tree, _)) = self.open.remove(&number) else { return };
        let reads = self.trees.get_or_insert(&tree);
        for (start, end) in read {
            reads.ranges.add(start, end);
            self.charge.add(ENTRY_BYTES + start.len() + end.map_or(0, <[u8]>::len));
        }
    }

    fn open_in(&self, id: KeyspaceId) -> impl Iterator<Item = &KeyRanges> {
        self.open.values().filter(move |(open, _)| open.id == id).map(|(_, ranges)| ranges)
    }

    /// Returns whether any of the reads would return something different now than as of `since`.
    pub(super) fn is_changed(&self, engine: &Engine, since: SeqNo) -> Result<bool> {
        for (tree, TreeReads { keys, ranges }) in self.trees.iter() {
            if tree.last_seq() <= since {
                continue;
            }
            for (key, was_found) in keys {
                if engine.reader.is_key_changed(tree, key, *was_found, since)? {
                    return Ok(true);
                }
            }
            for (start, end) in
                std::iter::once(ranges).chain(self.open_in(tree.id)).flat_map(KeyRanges::iter)
            {
                if engine.reader.is_range_changed(tree, (start, end), since)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns whether a write to these keys could change the result of a read.
    pub(super) fn concerns(&self, written: &WrittenKeys) -> bool {
        let (WrittenKeys::One(id, _) | WrittenKeys::Range(id, ..)) = written;
        let Some(TreeReads { keys, ranges }) = self.trees.get(*id) else { return false };
        let mut all = std::iter::once(ranges).chain(self.open_in(*id));
        match written {
            WrittenKeys::One(_, key) => {
                keys.contains_key(&**key) || all.any(|ranges| ranges.contains(key))
            }
            WrittenKeys::Range(_, start, end) => {
                let read = keys.range::<[u8], _>((Included(&**start), Unbounded)).next();
                let is_read =
                    read.is_some_and(|(key, _)| end.as_ref().is_none_or(|end| **key < **end));
                is_read || all.any(|ranges| ranges.overlaps(start, end.as_deref()))
            }
        }
    }
}
