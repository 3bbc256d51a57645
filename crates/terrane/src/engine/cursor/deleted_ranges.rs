//! The deletions that a reader must consider in addition to point tombstones.

use std::sync::Arc;

use terrane_memtable::{Memtable, RangeTombstones};

use super::dead_ranges::{DeadRange, DeadRanges, Sight};
use super::merge::Direction;
use crate::base::error::Result;
use crate::base::types::SeqNo;
use crate::engine::version::Version;

/// The range tombstones and dead ranges that a reader must consider.
#[derive(Debug, Clone)]
pub(crate) struct DeletedRanges {
    memtables: Vec<Arc<Memtable>>,
    version: Option<Arc<Version>>,
    dead: Arc<DeadRanges>,
    /// The reader's sources contain all writes up to this sequence number.
    known: SeqNo,
    sight: Sight,
}

/// Keys after a dead key that a reader need not visit, with their exclusive end, if any.
pub(super) enum DeadRest {
    /// Their versions up to this sequence number are deleted.
    Deleted(Option<Vec<u8>>, SeqNo),
    /// They were noted as dead.
    Noted(Option<Vec<u8>>),
}

impl DeletedRanges {
    /// Collects the range tombstones of `memtables` and `version` for a reader. `dead` are
    /// the dead ranges of the tree, with the sequence number up to which these sources contain all
    /// writes.
    pub(crate) fn new<'a>(
        memtables: impl Iterator<Item = &'a Arc<Memtable>>,
        version: &Arc<Version>,
        (dead, known): (&Arc<DeadRanges>, SeqNo),
        sight: Sight,
    ) -> Result<Self> {
        let deletes = |memtable: &&Arc<Memtable>| !memtable.range_tombstones().is_empty();
        let has_tombstones = version.range_tombstones()?.is_some();
        Ok(Self {
            memtables: memtables.filter(deletes).cloned().collect(),
            version: has_tombstones.then(|| Arc::clone(version)),
            dead: Arc::clone(dead),
            known,
            sight,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.memtables.is_empty() && self.version.is_none()
    }

    /// Notes that the reader found no live key from `start` to the exclusive `end`.
    pub(super) fn enter(&self, start: &[u8], end: &[u8], direction: Direction) {
        self.dead.enter(start, end, direction, (self.known, self.sight));
    }

    /// Returns the dead range around `key`.
    pub(super) fn dead_around(&self, key: &[u8]) -> Option<DeadRange> {
        self.dead.around(key, self.sight)
    }

    /// Returns the newest range tombstone visible to this reader that deletes the version of `key`
    /// written at `seq`, and the set that contains this tombstone.
    pub(super) fn covering(
        &self,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<(&RangeTombstones, SeqNo)>> {
        let tables = match &self.version {
            Some(version) => version.range_tombstones()?,
            None => None,
        };
        let sets = self.memtables.iter().map(|memtable| memtable.range_tombstones()).chain(tables);
        let newest = sets
            .filter_map(|set| Some((set, set.newest_covering(key, self.sight.seq)?)))
            .max_by_key(|(_, deleted)| *deleted);
        Ok(newest.filter(|(_, deleted)| *deleted > seq))
    }

    /// Returns the rest of a range of dead keys: of the range tombstone in `covering`, which deletes
    /// `key`, or of the noted range around `key`, whichever reaches further. Ranges that were deleted one
    /// after the other, such as those of the entries of a queue, are separate tombstones but one noted
    /// range.
    pub(super) fn rest_of(
        &self,
        key: &[u8],
        covering: Option<(&RangeTombstones, SeqNo)>,
    ) -> Option<DeadRest> {
        let deleted = covering.and_then(|(set, seq)| Some((set.end_of(key)?, seq)));
        let noted = self.dead_around(key).map(|noted| noted.end);
        match (deleted, noted) {
            (Some((end, seq)), Some(noted)) if !is_end_after(noted.as_deref(), end.as_deref()) => {
                Some(DeadRest::Deleted(end.map(Vec::from), seq))
            }
            (Some((end, seq)), None) => Some(DeadRest::Deleted(end.map(Vec::from), seq)),
            (_, Some(noted)) => Some(DeadRest::Noted(noted)),
            (None, None) => None,
        }
    }
}

/// Returns true if the end `a` is after the end `b`; `None` is the greatest end.
fn is_end_after(a: Option<&[u8]>, b: Option<&[u8]>) -> bool {
    b.is_some_and(|b| a.is_none_or(|a| a > b))
}
