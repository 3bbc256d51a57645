//! Which memtable suits a mix of operations, by what each kind is expected to cost.
//!
//! For a design with `memtable=auto` the engine asks at each rotation, with the operations that the
//! tree had since the one before. The model has the form of that of the memory buffer paper's later
//! program (for each kind, each sort of operation times its cost), with costs that were measured on
//! our kinds at several sizes of a memtable in the place of asymptotic ones:
//!
//! | kind | insert | lookup | range |
//! |---|---|---|---|
//! | B-link tree | a search | a search | a search |
//! | vector | constant | a search, and what came since is sorted | as a lookup |
//! | vector, `query=scan` | constant | two bytes of every entry since the last range | what came since is sorted |
//! | hash vector | a bucket | a bucket | what came since is sorted |
//!
//! Skip-list, hash skip-list and hash linked-list are not chosen from: one of the others costs less
//! at every size and for every operation, ranges within a prefix included, whose entries lie side by
//! side in a B-link tree (`docs/memtables.md`). So the prefix that ranges stay in decides nothing,
//! and is not looked at. FloDB's levels pay where few keys are overwritten again and again, which is
//! not looked at either. What a kind costs whoever flushes it does not count.
//!
//! A kind that is better by a little only is not worth a change: the present one stays unless
//! another is expected to cost a tenth less.

mod costs;

use std::fmt;

use crate::design::{MemtableKind, OrderedView, VectorQuery};
use costs::KindCosts;

/// The operations of a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemtableOperations {
    /// Puts and deletes.
    pub writes: u64,
    /// Of the writes, those of a key after the one before.
    pub ascending: u64,
    /// Bytes of their keys and values.
    pub written_bytes: u64,
    /// Lookups of single keys.
    pub lookups: u64,
    /// Of the lookups, those that memtables answered.
    pub found: u64,
    /// Iterators and scans begun.
    pub scans: u64,
    /// Entries of memtables that they went over.
    pub scanned: u64,
}

/// A kind, and why.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MemtableSelection {
    /// One that is not `auto`.
    pub kind: MemtableKind,
    /// Why, in a sentence.
    pub reason: String,
}

/// With fewer operations there is nothing to go by.
pub const OPERATIONS_MIN: u64 = 1000;

/// Another kind must be expected to cost less than this share of the present one.
const WORTH_CHANGING: f64 = 0.9;

/// Bytes that an entry takes beside key and value, to guess how many fit a buffer: the kinds are
/// within 16 of it.
const METADATA_BYTES: f64 = 40.0;

impl MemtableOperations {
    /// All operations.
    pub fn total(&self) -> u64 {
        self.writes.saturating_add(self.lookups).saturating_add(self.scans)
    }

    /// These and others.
    pub fn and(&self, other: &MemtableOperations) -> Self {
        Self {
            writes: self.writes.saturating_add(other.writes),
            ascending: self.ascending.saturating_add(other.ascending),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            lookups: self.lookups.saturating_add(other.lookups),
            found: self.found.saturating_add(other.found),
            scans: self.scans.saturating_add(other.scans),
            scanned: self.scanned.saturating_add(other.scanned),
        }
    }

    /// How far inserts are in the order of keys: 0 if they are random, 1 if each comes after the
    /// one before.
    fn sortedness(&self) -> f64 {
        (2.0 * share(self.ascending, self.writes) - 1.0).clamp(0.0, 1.0)
    }

    /// Entries that fit a buffer.
    fn entries_of(&self, buffer_bytes: u64) -> f64 {
        let entry_bytes = share(self.written_bytes, self.writes) + METADATA_BYTES;
        (buffer_bytes as f64 / entry_bytes).max(1.0)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

impl fmt::Display for MemtableOperations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |part: u64| share(part, self.total()) * 100.0;
        let order = if self.sortedness() > 0.5 { " in order" } else { "" };
        write!(
            f,
            "{:.1}% writes{order}, {:.1}% lookups",
            percent(self.writes),
            percent(self.lookups)
        )?;
        if self.lookups > 0 {
            write!(f, " ({:.0}% found)", share(self.found, self.lookups) * 100.0)?;
        }
        write!(f, ", {:.1}% scans", percent(self.scans))?;
        if self.scans > 0 {
            write!(f, " of {:.0} entries", share(self.scanned, self.scans))?;
        }
        Ok(())
    }
}

/// What all operations of a mix cost in a memtable of a size.
struct CostModel<'a> {
    mix: &'a MemtableOperations,
    /// Entries of a full memtable.
    entries: f64,
}

impl CostModel<'_> {
    fn inserts(&self, costs: &KindCosts) -> f64 {
        let sortedness = self.mix.sortedness();
        let random = costs::at(&costs.insert, self.entries);
        let ascending = costs::at(&costs.insert_ascending, self.entries);
        self.mix.writes as f64 * (random * (1.0 - sortedness) + ascending * sortedness)
    }

    /// Lookups that look for their key among `entries`.
    fn lookups(&self, costs: &KindCosts, entries: f64) -> f64 {
        let found = self.mix.found.min(self.mix.lookups) as f64;
        let missing = self.mix.lookups as f64 - found;
        found * costs::at(&costs.lookup, entries)
            + missing * costs::at(&costs.lookup_missing, entries)
    }

    /// Scans; and where `reads` ask for an order of what was written, that.
    fn ordered(&self, costs: &KindCosts, reads: u64) -> f64 {
        let MemtableOperations { writes, scans, scanned, .. } = *self.mix;
        let half = self.half();
        let seek = costs::at(&costs.seek, half);
        let mut nanos = scans as f64 * seek + scanned as f64 * costs::at(&costs.step, half);
        if reads > 0 {
            nanos += writes as f64 * costs::at(&costs.order, self.entries);
            let fresh = (costs::at(&costs.seek_fresh, half) - seek).max(0.0);
            nanos += reads.min(writes) as f64 * fresh;
        }
        nanos
    }

    /// What a memtable holds on average while it is filled.
    fn half(&self) -> f64 {
        self.entries / 2.0
    }

    fn tree(&self) -> f64 {
        let costs = &costs::BTREE;
        self.inserts(costs) + self.lookups(costs, self.half()) + self.ordered(costs, 0)
    }

    fn vector(&self) -> f64 {
        let costs = &costs::VECTOR;
        let reads = self.mix.lookups + self.mix.scans;
        self.inserts(costs) + self.lookups(costs, self.half()) + self.ordered(costs, reads)
    }

    fn scanned_vector(&self) -> f64 {
        let costs = &costs::VECTOR_SCANNED;
        // What came since the last scan is searched entry by entry, the rest as in a vector.
        let unsorted = self.half().min(share(self.mix.writes, self.mix.scans));
        let mut lookups = self.lookups(costs, unsorted);
        if self.mix.scans > 0 {
            lookups += self.lookups(&costs::VECTOR, self.half());
        }
        self.inserts(costs) + lookups + self.ordered(costs, self.mix.scans)
    }

    fn hash_vector(&self) -> f64 {
        let costs = &costs::HASH_VECTOR;
        let half = self.half();
        self.inserts(costs) + self.lookups(costs, half) + self.ordered(costs, self.mix.scans)
    }
}

/// The kinds that are chosen from, and what a mix costs with each.
fn candidates(mix: &MemtableOperations, buffer_bytes: u64) -> Vec<(MemtableKind, f64)> {
    let entries = mix.entries_of(buffer_bytes);
    let expected = CostModel { mix, entries };
    let scanned = MemtableKind::Vector { prealloc_bytes: 0, query: VectorQuery::Scan };
    // A power of two, so that a little more or less of a thing is no other kind.
    let most = (buffer_bytes / 64).clamp(1, 1 << 24);
    let buckets = (entries as u64).next_power_of_two().clamp(1, most) as u32;
    let hashed = MemtableKind::HashVector { prefix: u8::MAX, buckets, view: OrderedView::Kept };
    vec![
        (MemtableKind::BTree, expected.tree()),
        (MemtableKind::VECTOR, expected.vector()),
        (scanned, expected.scanned_vector()),
        (hashed, expected.hash_vector()),
    ]
}

/// Whether two kinds differ in the number of buckets only.
fn are_alike(one: MemtableKind, other: MemtableKind) -> bool {
    let are_hashed =
        matches!((one, other), (MemtableKind::HashVector { .. }, MemtableKind::HashVector { .. }));
    are_hashed || one == other
}

/// The kind that is expected to cost least in this mix; the present one if it is nearly as good.
pub fn choose(
    mix: &MemtableOperations,
    present: Option<MemtableKind>,
    buffer_bytes: u64,
) -> MemtableSelection {
    let present = present.unwrap_or(MemtableKind::BTree);
    if mix.total() < OPERATIONS_MIN {
        let reason = format!("{present} as before: only {} operations to go by", mix.total());
        return MemtableSelection { kind: present, reason };
    }
    let mut candidates = candidates(mix, buffer_bytes);
    candidates.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let (best, least) = candidates.first().copied().unwrap_or((present, 0.0));
    let stays = candidates.iter().find(|(kind, _)| are_alike(*kind, present));
    let kind = match stays {
        Some((kind, cost)) if least >= cost * WORTH_CHANGING => *kind,
        _ => best,
    };
    let each = |cost: f64| cost / mix.total() as f64;
    let list: Vec<String> =
        candidates.iter().map(|(kind, cost)| format!("{kind} {:.0} ns", each(*cost))).collect();
    let reason = format!("of {mix}, expected for each: {}", list.join(", "));
    MemtableSelection { kind, reason }
}

#[cfg(test)]
mod tests;
