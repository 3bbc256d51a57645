//! Inserts operations into memtables.

use terrane_memtable::{Entry, InsertOutcome, Memtable, Readers};

use super::Writer;
use super::target::{BatchTree, WriteTarget, batch_operations};
use crate::base::stats::Counter;
use crate::base::types::{EntryKind, Lsn, SeqNo};
use crate::engine::tree::{ActiveMemtable, LoggedValueRef, Tree, TreeState};
use crate::files::batch::{Batch, Op};
use crate::files::table::filter_hash;
use crate::files::wal::payload_at;

/// The maximum number of batch operations that are inserted together.
const GROUP: usize = 24;

/// Batch operations that are inserted into a memtable together, if that is cheaper. Their order
/// does not matter, because a batch becomes visible as a whole.
struct InsertGroup<'a> {
    memtable: Option<&'a Memtable>,
    entries: [Entry<'a>; GROUP],
    len: usize,
}

impl Default for InsertGroup<'_> {
    fn default() -> Self {
        let none = Entry { key: &[], seq: 0, kind: EntryKind::Tombstone, value: &[] };
        Self { memtable: None, entries: [none; GROUP], len: 0 }
    }
}

impl<'a> InsertGroup<'a> {
    /// Adds an operation to the group. Returns false if the operation must be inserted alone.
    fn take(&mut self, memtable: &'a Memtable, op: &Op<'a>, seq: SeqNo) -> bool {
        let Some((key, kind, value)) = op.point_entry() else { return false };
        if !memtable.takes_groups() {
            return false;
        }
        let is_same = self.memtable.is_some_and(|one| std::ptr::eq(one, memtable));
        if !is_same || self.len == GROUP {
            self.insert();
            self.memtable = Some(memtable);
        }
        self.entries[self.len] = Entry { key, seq, kind, value };
        self.len += 1;
        true
    }

    /// Inserts the operations of the group.
    fn insert(&mut self) {
        if let Some(memtable) = self.memtable {
            memtable.insert_all(&self.entries[..self.len]);
        }
        self.len = 0;
    }
}

impl Writer {
    /// Inserts the operations into their memtables. `begin` is where their record begins in the log.
    /// Returns true if [`Self::reclaim_hidden`] has something to do once the write is visible.
    #[inline(always)]
    pub(super) fn insert(
        &self,
        target: &WriteTarget<'_>,
        first: SeqNo,
        begin: Option<Lsn>,
    ) -> bool {
        debug_assert!(target.states().all(|state| !state.active.is_unwritten()));
        match target {
            WriteTarget::One { op, tree, state } => {
                self.context.counters.add_some(Counter::Deletes, u64::from(op.is_delete()));
                note_put(tree, op);
                if let Some(begin) = begin.filter(|_| state.active.notes_values()) {
                    let at =
                        |value: &[u8]| payload_at(begin, op.encoded_len(tree.id) - value.len());
                    if self.insert_noted((tree, state), op, first, at) {
                        return false;
                    }
                }
                self.insert_one(&state.active, op, (first, first), begin.is_some())
            }
            WriteTarget::Batch { batch, trees } => self.insert_batch(batch, trees, first, begin),
        }
    }

    fn insert_batch(
        &self,
        batch: &Batch,
        trees: &[BatchTree],
        first: SeqNo,
        begin: Option<Lsn>,
    ) -> bool {
        // The encoding is valid: `Write::check` has checked it.
        let encoded = batch.checked().unwrap_or_default();
        let mut deletes = 0;
        let mut needs_reclaim = false;
        let mut group = InsertGroup::default();
        for (seq, op, (tree, state)) in batch_operations(encoded, trees, first) {
            let memtable = &state.active.memtable;
            deletes += u64::from(op.is_delete());
            note_put(tree, &op);
            let begin_noted = begin.filter(|_| state.active.notes_values());
            let is_inserted = begin_noted.is_some_and(|begin| {
                // The value is part of the encoded batch.
                let within = |value: &[u8]| value.as_ptr().addr() - encoded.as_ptr().addr();
                let at = |value: &[u8]| payload_at(begin, within(value));
                self.insert_noted((tree, state), &op, seq, at)
            });
            if !is_inserted && !group.take(memtable, &op, seq) {
                let is_logged = begin.is_some();
                needs_reclaim |= self.insert_one(&state.active, &op, (seq, first), is_logged);
            }
        }
        group.insert();
        self.context.counters.add_some(Counter::Deletes, deletes);
        needs_reclaim
    }

    /// Inserts one operation of a batch that began at `first` into a memtable, which may reclaim
    /// versions that no reader needs. Returns true if the key has hidden versions to reclaim once
    /// the batch is visible.
    #[inline(always)]
    fn insert_one(
        &self,
        active: &ActiveMemtable,
        op: &Op<'_>,
        (seq, first): (SeqNo, SeqNo),
        is_logged: bool,
    ) -> bool {
        if !is_logged && matches!(op, Op::DeleteRange { .. }) {
            active.note_unlogged_range();
        }
        let memtable = &*active.memtable;
        let inserted = insert_one(memtable, op, seq, first, self.pipeline.readers());
        if memtable.front_level().is_some() {
            self.count_inserted(inserted);
        }
        inserted.needs_reclaim
    }

    /// Notes the place in the log of a put's value, which `at` returns, and inserts a pointer to it. Returns
    /// false if the value must be inserted instead.
    #[inline(never)]
    fn insert_noted(
        &self,
        (tree, state): (&Tree, &TreeState),
        op: &Op<'_>,
        seq: SeqNo,
        at: impl Fn(&[u8]) -> Lsn,
    ) -> bool {
        note_value(&state.active, op, seq, &at);
        match (op.point_key(), self.pointers.pointer_to((tree, state), op, at)) {
            (Some(key), Some(pointer)) => {
                // A memtable with pointers reclaims no versions.
                state.active.memtable.insert(key, seq, EntryKind::Separated, &pointer);
                true
            }
            _ => false,
        }
    }
}

/// Counts the write of a key. If the key is put, first removes the range around it from the ranges
/// in which scans found nothing.
#[inline(always)]
fn note_put(tree: &Tree, op: &Op<'_>) {
    let Some(key) = op.point_key() else { return };
    if !op.is_delete() {
        tree.dead().before_put(key);
    }
    if matches!(op, Op::PutExpiring { .. }) {
        tree.usage().note_expiring();
    }
    tree.usage().write(key);
}

/// Notes a large value's place in the log, which `at` returns, if a flush may need it.
#[inline]
fn note_value(active: &ActiveMemtable, op: &Op<'_>, seq: SeqNo, at: impl FnOnce(&[u8]) -> Lsn) {
    if let Op::Put { key, value } = *op
        && let Some(refs) = active.logged_value_refs_for(value.len())
    {
        let (key_len, len) = (key.len() as u32, value.len() as u32);
        refs.add(LoggedValueRef { seq, hash: filter_hash(key), at: at(value), len, key_len });
    }
}

/// Inserts one operation of a batch that began at `first` into a memtable, which may reclaim
/// versions that `readers` do not need.
#[inline(always)]
pub(crate) fn insert_one(
    memtable: &Memtable,
    op: &Op<'_>,
    seq: SeqNo,
    first: SeqNo,
    readers: impl Readers,
) -> InsertOutcome {
    if let Some((key, kind, value)) = op.point_entry() {
        return memtable.update(key, seq, kind, value, readers);
    }
    if let Op::DeleteRange { start, end } = *op {
        memtable.insert_range_tombstone(start, end, seq, first);
    }
    InsertOutcome::default()
}
