//! Chooses a memtable kind for a mix of operations by the expected costs of each kind.
//!
//! For a design with `memtable=auto`, the engine calls [`choose`] at each rotation with the operations
//! since the previous rotation. As in the later implementation of the memory buffer paper, the cost of a
//! kind is the sum, over all kinds of operations, of their number times their cost. The costs are
//! measured for our kinds at several memtable sizes, not asymptotic:
//!
//! | kind | insert | lookup | range |
//! |---|---|---|---|
//! | B-link tree | a search | a search | a search |
//! | vector | constant | a search, after sorting new entries | as a lookup |
//! | vector, `query=scan` | constant | two bytes of every entry since the last range | sorting new entries |
//! | hash vector | a bucket | a bucket | sorting new entries |
//! | FloDB | a slot of a hash table, if the key is already there | a slot, then a search | draining, a search |
//!
//! Skip-list, hash skip-list and hash linked-list are not candidates. At every size and for every
//! operation, another kind costs less. That is true even for ranges within a prefix, because their
//! entries are adjacent in a B-link tree (`docs/papers/memtables.md`). The prefixes of ranges are
//! therefore not recorded.
//!
//! A kind is also charged for its flushes: each key that is written again before the flush leaves a
//! version that the flush drops, whereas FloDB overwrites it in place. Costs depend on the number of
//! threads that write, because appending to a vector takes a lock.
//!
//! The current kind stays unless another is expected to cost at least a twentieth less. An unsuitable
//! kind is replaced before its memtable is full once that pays off: see [`regret`].
//!
//! | module | one line |
//! |---|---|
//! | `costs` | the measured costs of single operations |
//! | `model` | the cost of a mix in a kind |
//! | [`ranking`] | all kinds in order of their cost, with prefixes and buckets |
//! | [`regret`] | when to leave a kind before its memtable is full |

mod costs;
mod model;
pub mod ranking;
pub mod regret;

use std::fmt;

use crate::design::flodb::FloDb;
use crate::design::{MemtableKind, OrderedView, VectorQuery};
use costs::{CostTable, MEASURED};
use model::CostModel;

/// Counts of the operations on a tree during a period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemtableOperations {
    /// Puts and deletes.
    pub writes: u64,
    /// Writes whose key is greater than the previous key.
    pub ascending: u64,
    /// The number of distinct keys written.
    pub distinct: u64,
    /// Bytes of the written keys and values.
    pub written_bytes: u64,
    /// Lookups of single keys.
    pub lookups: u64,
    /// Lookups that memtables answered.
    pub found: u64,
    /// The number of iterators and scans that began.
    pub scans: u64,
    /// The number of memtable entries that iterators and scans stepped over.
    pub scanned: u64,
    /// The number of threads that wrote concurrently; 0 counts as 1.
    pub threads: u32,
}

/// A chosen kind with the reason for the choice.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct MemtableSelection {
    /// The kind; never `auto`.
    pub kind: MemtableKind,
    /// The reason, in a sentence.
    pub reason: String,
}

/// The minimum number of operations after which the kind can change.
pub const OPERATIONS_MIN: u64 = 1000;

/// Another kind replaces the current one only if it is expected to cost less than this fraction.
const WORTH_CHANGING: f64 = 0.95;

/// The overhead of an entry in bytes, used to estimate how many entries fit in a buffer. Each kind's
/// actual overhead differs by at most 16 bytes.
const METADATA_BYTES: f64 = 40.0;

impl MemtableOperations {
    /// Returns the number of operations.
    pub fn total(&self) -> u64 {
        self.writes.saturating_add(self.lookups).saturating_add(self.scans)
    }

    /// Returns the sum of both mixes.
    pub fn and(&self, other: &MemtableOperations) -> Self {
        Self {
            writes: self.writes.saturating_add(other.writes),
            ascending: self.ascending.saturating_add(other.ascending),
            distinct: self.distinct.saturating_add(other.distinct),
            written_bytes: self.written_bytes.saturating_add(other.written_bytes),
            lookups: self.lookups.saturating_add(other.lookups),
            found: self.found.saturating_add(other.found),
            scans: self.scans.saturating_add(other.scans),
            scanned: self.scanned.saturating_add(other.scanned),
            threads: self.threads.max(other.threads),
        }
    }

    /// Returns how sequential the written keys are: 0 for random order, 1 if each key is greater than
    /// the previous one.
    fn sortedness(&self) -> f64 {
        (2.0 * share(self.ascending, self.writes) - 1.0).clamp(0.0, 1.0)
    }

    /// Estimates the number of entries that fit in a buffer.
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
        write!(f, "{:.1}% writes{order}", percent(self.writes))?;
        if self.threads > 1 {
            write!(f, " by {} threads", self.threads)?;
        }
        let repeated = 1.0 - share(self.distinct.min(self.writes), self.writes);
        if repeated >= 0.1 && self.writes > 0 {
            write!(f, " ({:.0}% to keys written before)", repeated * 100.0)?;
        }
        write!(f, ", {:.1}% lookups", percent(self.lookups))?;
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

/// Returns the candidate kinds, each with the cost of a mix.
fn candidates(
    mix: &MemtableOperations,
    buffer_bytes: u64,
    table: &CostTable,
) -> Vec<(MemtableKind, f64)> {
    let model = CostModel::new(mix, mix.entries_of(buffer_bytes), table);
    kinds(model.entries, buffer_bytes).map(|kind| (kind, model.nanos(kind))).collect()
}

/// Returns the kinds to choose from, for memtables of `entries`.
fn kinds(entries: f64, buffer_bytes: u64) -> impl Iterator<Item = MemtableKind> {
    // A power of two, so that small changes of the mix do not change the kind.
    let most = (buffer_bytes / 64).clamp(1, 1 << 24);
    let buckets = (entries as u64).next_power_of_two().clamp(1, most) as u32;
    let hashed = MemtableKind::HashVector { prefix: u8::MAX, buckets, view: OrderedView::Kept };
    let flodb = MemtableKind::FloDb(FloDb::DEFAULT);
    [MemtableKind::BTree, MemtableKind::VECTOR, SCANNED, hashed, flodb].into_iter()
}

/// The vector whose lookups scan unsorted entries.
const SCANNED: MemtableKind = MemtableKind::Vector { prealloc_bytes: 0, query: VectorQuery::Scan };

/// Returns true if two kinds differ at most in the settings of a hash vector.
fn are_alike(one: MemtableKind, other: MemtableKind) -> bool {
    let are_hashed =
        matches!((one, other), (MemtableKind::HashVector { .. }, MemtableKind::HashVector { .. }));
    are_hashed || one == other
}

/// Returns the kind with the least expected cost for this mix, or the current one if it is nearly as
/// good.
pub fn choose(
    mix: &MemtableOperations,
    present: Option<MemtableKind>,
    buffer_bytes: u64,
) -> MemtableSelection {
    choose_by(&MEASURED, mix, present, buffer_bytes)
}

fn choose_by(
    table: &CostTable,
    mix: &MemtableOperations,
    present: Option<MemtableKind>,
    buffer_bytes: u64,
) -> MemtableSelection {
    let present = present.unwrap_or(MemtableKind::BTree);
    if mix.total() < OPERATIONS_MIN {
        let reason = format!("{present} as before: only {} operations were recorded", mix.total());
        return MemtableSelection { kind: present, reason };
    }
    let mut candidates = candidates(mix, buffer_bytes, table);
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
    let reason = format!("expected cost per operation for {mix}: {}", list.join(", "));
    MemtableSelection { kind, reason }
}

#[cfg(test)]
mod tests;
