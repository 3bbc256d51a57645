//! Inserts operations into memtables.

use terrane_memtable::{Entry, InsertOutcome, Memtable, Readers};

use crate::base::types::{EntryKind, Lsn, SeqNo};
use crate::engine::tree::{ActiveMemtable, LoggedValueRef, Tree};
use crate::files::batch::Op;
use crate::files::table::filter_hash;

/// The maximum number of batch operations that are inserted together.
const GROUP: usize = 24;

/// Batch operations that are inserted into a memtable together, if that is cheaper. Their order
/// does not matter, because a batch becomes visible as a whole.
pub(super) struct InsertGroup<'a> {
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
    pub(super) fn take(&mut self, memtable: &'a Memtable, op: &Op<'a>, seq: SeqNo) -> bool {
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
    pub(super) fn insert(&mut self) {
        if let Some(memtable) = self.memtable {
            memtable.insert_all(&self.entries[..self.len]);
        }
        self.len = 0;
    }
}

/// Counts the write of a key. If the key is put, first removes the range around it from the ranges
/// in which scans found nothing.
#[inline]
pub(super) fn note_put(tree: &Tree, op: &Op<'_>) {
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
pub(super) fn note_value(
    active: &ActiveMemtable,
    op: &Op<'_>,
    seq: SeqNo,
    at: impl FnOnce(&[u8]) -> Lsn,
) {
    if let Op::Put { key, value } = *op
        && let Some(refs) = active.logged_value_refs_for(value.len())
    {
        let (key_len, len) = (key.len() as u32, value.len() as u32);
        refs.add(LoggedValueRef { seq, hash: filter_hash(key), at: at(value), len, key_len });
    }
}

/// Inserts one operation of a batch that began at `first` into a memtable, which may reclaim
/// versions that `readers` do not need.
#[inline]
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
