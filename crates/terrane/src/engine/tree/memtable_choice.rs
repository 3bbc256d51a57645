//! Creates memtables, and chooses their kind by how they are used.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use terrane_memtable::Memtable;
use terrane_policy::memtable_choice::regret::{Change, RecentUse, Regret, check_every};
use terrane_policy::memtable_choice::{
    MemtableOperations, MemtableSelection, OPERATIONS_MIN, choose,
};
use terrane_policy::{Design, MemtableKind};

use super::memtables::{memtable_of, new_memtable};
use super::state::TreeState;
use super::usage::{Seen, UsageTotals};
use crate::engine::context::MemtableMemory;

/// The kind that was chosen for the memtables of a tree whose design leaves it open.
#[derive(Debug, Default)]
pub(super) struct MemtableChoice {
    inner: Mutex<Choices>,
}

#[derive(Debug, Default)]
struct Choices {
    /// The choice for the active memtable; `None` before the first choice.
    active: Option<MemtableSelection>,
    /// The choice for the most recently created memtable.
    last: Option<MemtableSelection>,
    /// Whether the last choice differs from the one before and has not been reported yet.
    is_news: bool,
    /// The choice for the next memtable, if the active one is replaced early.
    left_for: Option<MemtableSelection>,
    /// The operations up to the last choice.
    chosen_at: UsageTotals,
    /// Operations that were too few for a choice and count towards the next one.
    left_over: MemtableOperations,
    /// The active memtable is about to be replaced early.
    was_left: bool,
    regret: Regret,
    /// The operations up to the last computation of regret.
    checked_at: UsageTotals,
}

impl MemtableChoice {
    fn lock(&self) -> MutexGuard<'_, Choices> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Choices {
    /// Chooses the kind of the next memtable.
    fn choose(&mut self, design: &Design, recent: MemtableOperations) -> MemtableKind {
        let present = self.last.as_ref().map(|last| last.kind);
        let next = self.left_for.take().unwrap_or_else(|| {
            let recent = recent.and(&self.left_over);
            let is_too_little = recent.total() < OPERATIONS_MIN;
            self.left_over = if is_too_little { recent } else { MemtableOperations::default() };
            choose(&recent, present, design.buffer_bytes)
        });
        self.is_news |= present != Some(next.kind);
        self.last.insert(next).kind
    }
}

impl MemtableChoice {
    /// Creates an empty memtable. If the design leaves the kind open, the tree's operations since
    /// the last choice determine it.
    pub(super) fn create(
        &self,
        design: &Design,
        state: &TreeState,
        memory: &MemtableMemory,
    ) -> Arc<Memtable> {
        let before = (!state.active.is_unwritten()).then_some(&*state.active.memtable);
        let mut choices = self.lock();
        if design.memtable != MemtableKind::Auto {
            *choices = Choices::default();
            return new_memtable(design, memory, before);
        }
        // The first memtable has the default kind.
        let Some(before) = before else { return new_memtable(design, memory, None) };
        let totals = state.usage.totals();
        let distinct = Some(state.usage.take_distinct());
        let recent = totals.since(&choices.chosen_at, distinct, Seen::of(state));
        choices.chosen_at = totals;
        let kind = choices.choose(design, recent);
        drop(choices);
        memtable_of(kind, design.buffer_bytes, memory, Some(before))
    }

    /// Notes that the most recently created memtable becomes the active one.
    pub(super) fn begin(&self, design: &Design, state: &TreeState) {
        let mut choices = self.lock();
        choices.active = choices.last.clone();
        let Some(active) = &choices.active else { return };
        let kind = active.kind;
        let was_early = std::mem::take(&mut choices.was_left);
        choices.regret.begin(was_early);
        choices.checked_at = state.usage.totals();
        state.usage.check_every(check_every(kind, capacity(state, design)));
    }

    /// Returns a change to the active memtable, if readers have requested a check and the change is
    /// due.
    pub(super) fn due_change(
        &self,
        design: impl FnOnce() -> Design,
        state: &TreeState,
    ) -> Option<Change> {
        if !state.usage.take_due() {
            return None;
        }
        let design = &design();
        let mut choices = self.lock();
        let kind = choices.active.as_ref()?.kind;
        let totals = state.usage.totals();
        let recent = totals.since(&choices.checked_at, None, Seen::of(state));
        choices.checked_at = totals;
        choices.regret.note(&RecentUse {
            kind,
            entries: state.active.memtable.len() as u64,
            capacity: capacity(state, design),
            buffer_bytes: design.buffer_bytes,
            operations: &recent,
        })
    }

    /// Notes that the active memtable is about to be replaced by one of the selected kind.
    pub(super) fn leave_for(&self, selection: MemtableSelection) {
        let mut choices = self.lock();
        choices.was_left = true;
        choices.left_for = Some(selection);
    }

    /// Returns the last choice if it differs from the previous choice and has not been returned yet.
    pub(super) fn take_news(&self) -> Option<MemtableSelection> {
        let mut choices = self.lock();
        std::mem::take(&mut choices.is_news).then(|| choices.last.clone()).flatten()
    }

    /// Returns the choice for the active memtable.
    pub(super) fn active(&self) -> Option<MemtableSelection> {
        self.lock().active.clone()
    }
}

impl Seen {
    fn of(state: &TreeState) -> Self {
        let active = &state.active.memtable;
        let entries = active.len() as u64;
        let levels = &state.version.shape().levels;
        let tables = levels.iter().flat_map(|level| &level.runs).flat_map(|run| &run.tables);
        let in_tables: u64 = tables.map(|table| table.entries).sum();
        Self {
            entry_bytes: active.memory().data_bytes as f64 / entries.max(1) as f64,
            in_memory: entries as f64 / entries.saturating_add(in_tables).max(1) as f64,
        }
    }
}

/// Estimates the number of entries that fill one of the tree's memtables.
fn capacity(state: &TreeState, design: &Design) -> u64 {
    let immutables = state.immutables.iter().map(|immutable| &immutable.memtable);
    let mut memtables = std::iter::once(&state.active.memtable).chain(immutables);
    let seen = memtables.find(|memtable| memtable.len() > 100);
    let entry = seen.map_or(ENTRY_BYTES_GUESS, |seen| (seen.filled_bytes() / seen.len()) as u64);
    design.buffer_bytes / entry.max(1)
}

/// The assumed size of an entry until a memtable has entries.
const ENTRY_BYTES_GUESS: u64 = 200;
