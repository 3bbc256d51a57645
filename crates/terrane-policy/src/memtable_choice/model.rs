//! The cost of a mix of operations in a kind of memtable, in nanoseconds of the executing threads and
//! of the flush.

use super::costs::{self, CostTable, KindCosts};
use super::{MemtableOperations, share};
use crate::design::{MemtableKind, VectorQuery};

/// The time that a flush spends on an entry that it writes: the default of `terrane simulate`, which
/// `terrane simulate calibrate` measures.
pub(super) const FLUSHED: f64 = 500.0;

/// The time that a flush spends on a version that it drops in favour of a newer one: sorting, and a
/// comparison.
pub(super) const DROPPED: f64 = 150.0;

/// The share of a buffer whose keys FloDB overwrites in place. Its Membuffer holds a quarter of the
/// buffer, but not every bucket is full.
const IN_PLACE: f64 = 0.2;

/// The cost of a mix in memtables of a size.
pub(super) struct CostModel<'a> {
    mix: &'a MemtableOperations,
    /// The number of entries in a full memtable.
    pub(super) entries: f64,
    table: &'a CostTable,
    /// Whether the operations use a memtable of this size, rather than memtables that fill up to it.
    is_present: bool,
}

impl<'a> CostModel<'a> {
    pub(super) fn new(mix: &'a MemtableOperations, entries: f64, table: &'a CostTable) -> Self {
        Self { mix, entries, table, is_present: false }
    }

    /// Returns the costs in a memtable with this many entries. In FloDB, all writes beyond the first to
    /// each key are in place.
    pub(super) fn present(mix: &'a MemtableOperations, entries: f64, table: &'a CostTable) -> Self {
        Self { mix, entries, table, is_present: true }
    }

    /// Returns the costs of single operations in a kind.
    pub(super) fn costs(&self, kind: MemtableKind) -> &'a KindCosts {
        self.table.of(kind)
    }

    /// Returns the cost of the mix.
    pub(super) fn nanos(&self, kind: MemtableKind) -> f64 {
        let costs = self.costs(kind);
        let reads = self.mix.lookups + self.mix.scans;
        let half = self.searched(kind);
        let used = match kind {
            MemtableKind::Vector { query: VectorQuery::Scan, .. } => {
                // Entries that were added since the last scan are compared one by one; the other
                // entries are searched as in a vector.
                let unsorted = half.min(share(self.mix.writes, self.mix.scans));
                let mut lookups = self.lookups(costs, unsorted);
                if self.mix.scans > 0 {
                    lookups += self.lookups(self.costs(MemtableKind::VECTOR), half);
                }
                lookups + self.ordered(costs, half, self.mix.scans)
            }
            MemtableKind::Vector { .. } => {
                self.lookups(costs, half) + self.ordered(costs, half, reads)
            }
            // A scan sorts or drains the entries written since the last scan.
            MemtableKind::HashVector { .. }
            | MemtableKind::HashSkipList { .. }
            | MemtableKind::HashLinkedList { .. }
            | MemtableKind::FloDb(_) => {
                self.lookups(costs, half) + self.ordered(costs, half, self.mix.scans)
            }
            MemtableKind::BTree | MemtableKind::SkipList { .. } | MemtableKind::Auto => {
                self.lookups(costs, half) + self.ordered(costs, half, 0)
            }
        };
        used + self.inserts(kind, costs) + self.flushes(kind)
    }

    /// Returns the average number of entries through which reads search.
    pub(super) fn searched(&self, kind: MemtableKind) -> f64 {
        if self.is_present {
            self.entries
        } else if self.in_place(kind) > 0.0 {
            self.entries.min(self.mix.distinct as f64)
        } else {
            self.entries / 2.0
        }
    }

    /// Returns the share of writes that a kind overwrites in place.
    fn in_place(&self, kind: MemtableKind) -> f64 {
        let keys = self.mix.distinct.min(self.mix.writes);
        let fits = self.is_present || keys as f64 <= self.entries * IN_PLACE;
        match kind {
            MemtableKind::FloDb(_) if fits => 1.0 - share(keys, self.mix.writes),
            _ => 0.0,
        }
    }

    fn inserts(&self, kind: MemtableKind, costs: &KindCosts) -> f64 {
        let MemtableOperations { writes, threads, .. } = *self.mix;
        let sortedness = self.mix.sortedness();
        let random = costs.write(threads, self.entries, |costs| &costs.insert);
        let ascending = costs.write(threads, self.entries, |costs| &costs.insert_ascending);
        let new = random * (1.0 - sortedness) + ascending * sortedness;
        let in_place = self.in_place(kind);
        let update = costs.write(threads, self.searched(kind), |costs| &costs.update);
        writes as f64 * (new * (1.0 - in_place) + update * in_place)
    }

    fn flushes(&self, kind: MemtableKind) -> f64 {
        let writes = self.mix.writes as f64;
        let written = self.mix.distinct.min(self.mix.writes) as f64;
        // This overestimates FloDB's flushes: the longer a memtable takes to fill, the more it
        // overwrites.
        let dropped = (writes - written) - writes * self.in_place(kind);
        written * FLUSHED + dropped.max(0.0) * DROPPED
    }

    /// Returns the cost of lookups that search `entries`.
    pub(super) fn lookups(&self, costs: &KindCosts, entries: f64) -> f64 {
        let found = self.mix.found.min(self.mix.lookups) as f64;
        let missing = self.mix.lookups as f64 - found;
        found * costs::at(&costs.lookup, entries)
            + missing * costs::at(&costs.lookup_missing, entries)
    }

    /// Returns the cost of scans, and of sorting all writes if `reads` is not zero.
    pub(super) fn ordered(&self, costs: &KindCosts, half: f64, reads: u64) -> f64 {
        let MemtableOperations { writes, scans, scanned, .. } = *self.mix;
        let seek = costs::at(&costs.seek, half);
        let mut nanos = scans as f64 * seek + scanned as f64 * costs::at(&costs.step, half);
        if reads > 0 {
            nanos += writes as f64 * costs::at(&costs.order, self.entries);
            let fresh = (costs::at(&costs.seek_fresh, half) - seek).max(0.0);
            nanos += reads.min(writes) as f64 * fresh;
        }
        nanos
    }
}
