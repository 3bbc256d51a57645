//! When to replace a memtable's kind before the memtable is full.
//!
//! A kind is chosen when a memtable is created. If few keys are written after that, the memtable
//! stays, however badly its kind suits the reads: a lookup in a full vector that was never sorted
//! takes 60 µs. The engine therefore passes the operations of each short period to
//! [`Regret::note`], which sums up their excess cost over the best other kind. Once this regret
//! exceeds the cost of a change, the change is due. A change that proves useless thus costs at most
//! as much as the regret before it: the ski-rental rule.
//!
//! A vector that lookups scan is sorted once, which needs no flush. Any other change replaces the
//! memtable, which is flushed early: level 0 gets a smaller run, and the merges that it causes move fewer
//! bytes each time. Each early flush doubles the regret required for the next; after `n` of them, `2^n`
//! consecutive full memtables reset the requirement. This prevents two kinds from alternating: regret of
//! `r` causes at most `log2(r / cost)` flushes.

use super::costs::{self, MEASURED};
use super::model::{CostModel, FLUSHED};
use super::{MemtableOperations, MemtableSelection, SCANNED, are_alike, kinds};
use crate::design::MemtableKind;

/// The time of a lookup that finds its key in cached blocks of a table, and of one that a run's filter
/// answers: the prices of `terrane advise`.
const TABLE_FOUND: f64 = 1100.0;
const TABLE_MISSING: f64 = 100.0;

/// The time that merges spend on an entry of a flush: the default of `terrane simulate`.
const MERGED: f64 = 600.0;

/// The minimum cost of an early flush: a table, its syncs, and a run that scans visit.
const FLUSH_LEAST: f64 = 5e6;

/// The required regret doubles at most this often, so that no phase gets stuck with a kind.
const DOUBLINGS_MAX: u32 = 6;

/// The minimum and maximum number of lookups between two checks.
const CHECK: (f64, f64) = (64.0, 65_536.0);

/// An active memtable, and the operations since the last call of [`Regret::note`].
#[derive(Debug, Clone, Copy)]
pub struct RecentUse<'a> {
    /// The kind of the memtable.
    pub kind: MemtableKind,
    /// The number of its entries.
    pub entries: u64,
    /// The number of entries that fill it.
    pub capacity: u64,
    /// The size at which it is replaced.
    pub buffer_bytes: u64,
    /// The operations.
    pub operations: &'a MemtableOperations,
}

/// A change that pays off, with its reason.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Sort the entries of the memtable.
    Sort(String),
    /// Replace the memtable with one of this kind.
    Replace(MemtableSelection),
}

/// The regret since a memtable became active.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Regret {
    /// The excess cost of the operations over their cost in a sorted, or a replaced, memtable.
    unsorted_nanos: f64,
    kind_nanos: f64,
    /// The entries added since the memtable was sorted, for a vector whose lookups scan.
    unsorted: f64,
    /// The number of entries at the last call.
    entries: u64,
    /// The number of lookups since the regret was zero.
    lookups: u64,
    /// The number of early flushes, and of consecutive full memtables since the last one.
    early: u32,
    full: u32,
}

impl Regret {
    /// Begins again for a new active memtable. `was_early` says whether the previous one was replaced
    /// early.
    pub fn begin(&mut self, was_early: bool) {
        let (mut early, mut full) = (self.early, self.full + 1);
        if was_early {
            (early, full) = ((early + 1).min(DOUBLINGS_MAX), 0);
        } else if full >= 1 << early {
            // Enough consecutive memtables filled up: the kind is suitable.
            (early, full) = (0, 0);
        }
        *self = Self { early, full, ..Self::default() };
    }

    /// Adds operations. Returns a change if it is due.
    pub fn note(&mut self, recent: &RecentUse<'_>) -> Option<Change> {
        let new =
            recent.entries.saturating_sub(std::mem::replace(&mut self.entries, recent.entries));
        let mut mix = *recent.operations;
        // FloDB overwrote in place all writes that did not add an entry.
        let is_flodb = matches!(recent.kind, MemtableKind::FloDb(_));
        mix.distinct = if is_flodb { new.min(mix.writes) } else { mix.writes };
        self.count_unsorted(&mix, recent.entries as f64);
        self.lookups += mix.lookups;
        if recent.kind == SCANNED
            && let Some(change) = self.note_unsorted(&mix, recent)
        {
            return Some(change);
        }
        let costs_now = self.costs_now(&mix, recent);
        let (best, costs_then) = costs_after(&mix, recent)?;
        self.kind_nanos = (self.kind_nanos + costs_now - costs_then).max(0.0);
        if self.kind_nanos == 0.0 && self.unsorted_nanos == 0.0 {
            self.lookups = 0;
        }
        let price = replacing_nanos(recent) * f64::from(1 << self.early);
        (self.kind_nanos > price).then(|| {
            let each = |nanos: f64| nanos / mix.total().max(1) as f64;
            let reason = format!(
                "{} was left early: operations cost {:.0} ns instead of {:.0} ns, together {:.1} ms, \
                 more than the {:.1} ms of a flush ({mix})",
                recent.kind,
                each(costs_now),
                each(costs_then),
                self.kind_nanos / 1e6,
                price / 1e6,
            );
            Change::Replace(MemtableSelection { kind: best, reason })
        })
    }

    fn count_unsorted(&mut self, mix: &MemtableOperations, entries: f64) {
        let added = match mix.scans {
            0 => self.unsorted + mix.writes as f64,
            scans => (mix.writes / scans) as f64,
        };
        self.unsorted = added.min(entries);
    }

    /// Adds the excess cost of lookups over those in a sorted vector.
    fn note_unsorted(
        &mut self,
        mix: &MemtableOperations,
        recent: &RecentUse<'_>,
    ) -> Option<Change> {
        let entries = recent.entries as f64;
        let model = CostModel::new(mix, entries, &MEASURED);
        let (scanned, sorted) = (model.costs(SCANNED), model.costs(MemtableKind::VECTOR));
        let lost = model.lookups(scanned, self.unsorted) - model.lookups(sorted, entries);
        self.unsorted_nanos = (self.unsorted_nanos + lost).max(0.0);
        let price = self.unsorted * costs::at(&scanned.order, entries);
        if self.unsorted < 1.0 || self.unsorted_nanos <= price {
            return None;
        }
        let reason = format!(
            "{} was sorted once: {} lookups among {:.0} unsorted entries cost {:.1} ms more than \
             sorted, more than the {:.1} ms of sorting",
            recent.kind,
            self.lookups,
            self.unsorted,
            self.unsorted_nanos / 1e6,
            price / 1e6,
        );
        (self.unsorted, self.unsorted_nanos, self.lookups) = (0.0, 0.0, 0);
        Some(Change::Sort(reason))
    }

    /// Returns the cost of operations in the present memtable.
    fn costs_now(&self, mix: &MemtableOperations, recent: &RecentUse<'_>) -> f64 {
        let model = CostModel::present(mix, recent.entries as f64, &MEASURED);
        if recent.kind != SCANNED {
            return model.nanos(recent.kind);
        }
        let none = MemtableOperations { lookups: 0, found: 0, ..*mix };
        let others = CostModel::present(&none, model.entries, &MEASURED).nanos(SCANNED);
        let (scanned, sorted) = (model.costs(SCANNED), model.costs(MemtableKind::VECTOR));
        let in_order = recent.entries as f64 - self.unsorted;
        let in_order = if in_order < 1.0 { 0.0 } else { model.lookups(sorted, in_order) };
        let unsorted =
            if self.unsorted < 1.0 { 0.0 } else { model.lookups(scanned, self.unsorted) };
        others + in_order + unsorted
    }
}

/// Returns the best other kind for operations after the memtable is replaced, and their cost: lookups
/// then find the entries of the replaced memtable in a table, and the next memtable fills.
fn costs_after(mix: &MemtableOperations, recent: &RecentUse<'_>) -> Option<(MemtableKind, f64)> {
    let model = CostModel::new(mix, recent.capacity as f64, &MEASURED);
    let found = mix.found.min(mix.lookups) as f64;
    let in_tables = found * TABLE_FOUND + (mix.lookups as f64 - found) * TABLE_MISSING;
    // A short period says nothing about keys that repeat over a whole memtable.
    let others = kinds(recent.capacity as f64, recent.buffer_bytes)
        .filter(|kind| !matches!(kind, MemtableKind::FloDb(_)) && !are_alike(*kind, recent.kind));
    others
        .map(|kind| (kind, model.nanos(kind) + in_tables))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// Returns the cost of flushing a memtable before it is full.
pub(super) fn replacing_nanos(recent: &RecentUse<'_>) -> f64 {
    let left = recent.capacity.saturating_sub(recent.entries).max(recent.capacity / 16);
    FLUSH_LEAST + left as f64 * (FLUSHED + MERGED)
}

/// Returns the number of lookups after which [`Regret::note`] should be called to detect an unsuitable
/// kind in time, however the operations change.
pub fn check_every(kind: MemtableKind, capacity: u64) -> u64 {
    let one = MemtableOperations { lookups: 1, ..MemtableOperations::default() };
    let model = CostModel::new(&one, capacity as f64, &MEASURED);
    let lookup = model.lookups(model.costs(kind), capacity as f64);
    let sort = costs::at(&model.costs(kind).order, capacity as f64) * capacity as f64;
    let least = if kind == SCANNED { sort.min(FLUSH_LEAST) } else { FLUSH_LEAST };
    let lookups = (least / lookup.max(1.0)).clamp(CHECK.0, CHECK.1);
    (lookups as u64 + 1).next_power_of_two() / 2
}

#[cfg(test)]
mod tests;
