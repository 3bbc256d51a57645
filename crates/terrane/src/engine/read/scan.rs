//! Cursors over the memtables and tables that a reader sees.

use std::sync::Arc;

use arc_swap::Guard;
use terrane_memtable::Memtable;

use super::{AsOf, Reader};
use crate::base::clock::Clock;
use crate::base::error::Result;
use crate::base::merge_operator::MergeOperator;
use crate::base::types::SeqNo;
use crate::engine::cursor::{
    DeadRanges, DeletedRanges, Direction, MergeCursor, RunCursor, Sight, Source, ValueSource,
    VisibleCursor,
};
use crate::engine::tree::{Tree, TreeState};

/// A tree as of a sequence number. The state of the tree is kept until the view is dropped.
#[derive(Debug, Clone)]
pub(crate) struct ReadView {
    state: Arc<TreeState>,
    dead: Arc<DeadRanges>,
    /// The state contains every write up to this sequence number.
    known: SeqNo,
    /// The view contains the versions up to this sequence number.
    seq: SeqNo,
    /// It contains the values that expire after this time, in microseconds since the Unix epoch.
    micros: u64,
    /// Combines operands with values, if the tree has an operator.
    operator: Option<Arc<dyn MergeOperator>>,
    /// The results of a completed scan; if set, cursors of the view walk only these.
    results: Option<Arc<Memtable>>,
}

impl Reader {
    /// Returns a view of a tree as of `at`, or now.
    pub(crate) fn view(&self, tree: &Tree, at: Option<AsOf<'_>>) -> Result<ReadView> {
        self.context.health.check_open()?;
        // This number is read before the state, because the state may lack writes that become
        // visible later.
        let known = at.map_or_else(|| self.pipeline.visible(), |at| at.seq);
        // The state is loaded before the sequence number, so that it contains everything that is
        // visible at that number.
        let state = Guard::into_inner(Self::state(tree, at));
        let now = || {
            let seq = state.readable(self.pipeline.visible());
            // Visible values that expire were noted before their sequence numbers became visible.
            let micros =
                if state.may_expire() { self.pipeline.snapshot_clock().now_micros() } else { 0 };
            (seq, micros)
        };
        let at = at.map_or_else(now, |at| (at.seq, at.micros));
        Ok(self.view_of(tree, state, at, known))
    }

    /// Returns a view of a state of a tree, which contains every write up to `known`.
    pub(super) fn view_of(
        &self,
        tree: &Tree,
        state: Arc<TreeState>,
        (seq, micros): (SeqNo, u64),
        known: SeqNo,
    ) -> ReadView {
        let dead = Arc::clone(tree.dead());
        // Loaded after the number, so that the operator is known if operands are visible.
        let operator = tree.functions.merge_operator().get().cloned();
        ReadView { state, dead, known, seq, micros, operator, results: None }
    }
}

impl ReadView {
    /// Puts a cursor on the first key at or after `key` into `place`, which is empty after an
    /// error. The caller needs no key from `end` on.
    // A cursor is large, so it is not moved.
    pub(crate) fn put_cursor_from(
        &self,
        place: &mut Option<VisibleCursor>,
        key: &[u8],
        end: Option<&[u8]>,
    ) -> Result<()> {
        *place = None;
        let cursor = place.insert(self.cursor(Direction::Forward, end)?);
        let sought = cursor.seek(key);
        if sought.is_err() {
            *place = None;
        }
        sought
    }

    /// Returns a cursor on the last key before `key`, or on the last key of the tree if `key` is
    /// `None`. The caller needs no key before `first`.
    pub(crate) fn cursor_before(&self, key: Option<&[u8]>, first: &[u8]) -> Result<VisibleCursor> {
        let mut cursor = self.cursor(Direction::Backward, Some(first))?;
        cursor.seek_before(key)?;
        Ok(cursor)
    }

    /// Returns a view that contains only the results of a scan that was completed in this view.
    pub(super) fn of_results(&self, results: Arc<Memtable>) -> Self {
        Self { results: Some(results), ..self.clone() }
    }

    pub(super) fn state(&self) -> &TreeState {
        &self.state
    }

    /// Returns a cursor without a position that skips the Membuffers.
    pub(super) fn drained_cursor(
        &self,
        direction: Direction,
        limit: Option<&[u8]>,
    ) -> Result<VisibleCursor> {
        let mut merge = MergeCursor::empty();
        for mut source in self.memtables(direction, limit) {
            if let Source::Memtable(cursor) = &mut source {
                cursor.skip_front_level();
            }
            merge.add(source);
        }
        self.runs().for_each(|run| merge.add(Source::Run(run)));
        self.visible(merge, limit)
    }

    fn visible(&self, merge: MergeCursor, limit: Option<&[u8]>) -> Result<VisibleCursor> {
        Ok(VisibleCursor::new(
            merge,
            (self.seq, self.micros),
            self.deleted()?,
            limit.map(Into::into),
        ))
    }

    /// Returns a cursor without a position.
    fn cursor(&self, direction: Direction, limit: Option<&[u8]>) -> Result<VisibleCursor> {
        let mut merge = MergeCursor::empty();
        self.memtables(direction, limit).for_each(|source| merge.add(source));
        self.runs().for_each(|run| merge.add(Source::Run(run)));
        self.visible(merge, limit)
    }

    /// Returns cursors over the memtables. The cursors move in `direction`, up to `limit`.
    fn memtables(
        &self,
        direction: Direction,
        limit: Option<&[u8]>,
    ) -> impl Iterator<Item = Source> {
        let of_state =
            self.state.memtables().take(if self.results.is_some() { 0 } else { usize::MAX });
        let memtables = self.results.iter().chain(of_state).filter(|memtable| !memtable.is_empty());
        memtables.map(move |memtable| {
            let mut cursor = memtable.cursor();
            match direction {
                Direction::Forward => cursor.limit_to(None, limit),
                Direction::Backward => cursor.limit_to(limit, None),
            }
            Source::Memtable(cursor)
        })
    }

    fn runs(&self) -> impl Iterator<Item = RunCursor> {
        let all = self.state.version.runs();
        let runs: &[_] = if self.results.is_some() { &[] } else { all };
        runs.iter().map(|run| RunCursor::new(Arc::clone(run)))
    }

    fn deleted(&self) -> Result<DeletedRanges> {
        let TreeState { version, number, .. } = &*self.state;
        let sight = Sight { seq: self.seq, state: *number };
        DeletedRanges::new(self.state.memtables(), version, (&self.dead, self.known), sight)
    }

    /// Returns true if the sequence number of the view must be held, because a memtable reclaims
    /// versions.
    pub(crate) fn needs_snapshot(&self) -> bool {
        self.state.reclaims_versions()
    }

    /// The parameters with which cursors of the view load values.
    #[inline]
    pub(crate) fn values(&self) -> ValueSource<'_> {
        ValueSource { files: self.state.version.values(), operator: self.operator.as_deref() }
    }

    /// Returns true if memtables and tables contain every value as readers see it.
    pub(crate) fn has_values_in_place(&self) -> bool {
        self.operator.is_none() && self.state.version.values().is_empty()
    }

    /// Counts a completed scan over `entries` entries. Returns true if a thread should now check
    /// whether the kind of the memtable suits the operations.
    pub(crate) fn count_scan(&self, entries: u64) -> bool {
        self.state.usage.scan(entries)
    }

    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::storage::MemoryStorage;
    use crate::{Background, Options};

    /// A scan took the tree's state, the memtable was replaced, a key was put into the next one,
    /// and the scan took its sequence number. The scan did not find the key, which its state does
    /// not contain, and noted the range as dead, so that later scans skipped the key.
    #[test]
    fn a_scan_says_nothing_of_keys_that_were_put_after_its_state_was_taken() {
        let storage = Arc::new(MemoryStorage::new(1));
        let options = Options::new().storage(storage).background(Background::Inline);
        let db = options.open("db").unwrap();
        for number in 0..300 {
            db.put(format!("k{number:03}"), "value").unwrap();
        }
        for number in 0..300 {
            db.delete(format!("k{number:03}")).unwrap();
        }
        let keyspace = db.keyspace("default", crate::KeyspaceOptions::new()).unwrap();
        let (engine, tree) = (&keyspace.handle.engine, &keyspace.tree);
        let pipeline = &engine.pipeline;
        // The range is noted as dead; the put must remove that note.
        assert_eq!(db.iter().unwrap().count(), 0);
        let sight = Sight { seq: pipeline.visible(), state: tree.state().number };
        assert!(tree.dead().around(b"k150", sight).is_some());
        let before = engine.reader.view(tree, None).unwrap();
        pipeline.rotate(&mut pipeline.lock(), tree, crate::base::event::FlushReason::Requested);
        db.put("k150", "there").unwrap();
        let late = ReadView { seq: pipeline.visible(), micros: 0, ..before };
        let mut cursor = None;
        late.put_cursor_from(&mut cursor, b"k", None).unwrap();
        assert!(!cursor.unwrap().is_valid(), "its state is the old one");
        assert!(!late.cursor_before(None, b"k").unwrap().is_valid());
        assert_eq!(db.iter().unwrap().count(), 1);
        assert_eq!(db.iter().unwrap().rev().count(), 1);
    }
}
