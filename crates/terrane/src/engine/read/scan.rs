//! Cursors over everything that a reader sees.

use std::sync::Arc;
use std::time::Instant;

use super::Reader;
use super::parallel::{Start, position_runs};
use super::pool::ReadPool;
use crate::engine::tree::ScanCount;
use crate::engine::tree::{Tree, TreeState};
use crate::error::Result;
use crate::iter::{
    DeadRanges, DeletedRanges, Direction, MergeCursor, RunCursor, Source, VisibleCursor,
};
use crate::types::SeqNo;

/// A tree at a sequence number, kept as it is for as long as someone reads it.
#[derive(Debug, Clone)]
pub(crate) struct ReadView {
    state: Arc<TreeState>,
    dead: Arc<DeadRanges>,
    /// The state holds everything that was written up to this.
    known: SeqNo,
    seq: SeqNo,
    pool: Option<Arc<ReadPool>>,
}

impl Reader {
    /// What a reader sees of a tree as of `seq`, or now.
    pub(crate) fn view(&self, tree: &Tree, seq: Option<SeqNo>) -> Result<ReadView> {
        self.context.health.check_open()?;
        // Of what becomes visible from here on, the state may miss some.
        let known = seq.unwrap_or_else(|| self.pipeline.visible());
        // The state first: then nothing that is visible can have left it.
        let state = tree.state_arc();
        let seq = seq.unwrap_or_else(|| self.pipeline.visible());
        let dead = Arc::clone(tree.dead());
        Ok(ReadView { state, dead, known, seq, pool: self.pool.clone() })
    }
}

impl ReadView {
    /// A cursor on the first key at or after `key`, where none from `end` on is asked for.
    pub(crate) fn cursor_from(&self, key: &[u8], end: Option<&[u8]>) -> Result<VisibleCursor> {
        if let Some(pool) = self.pool_for_runs() {
            let start = Start::From(key.into(), self.seq);
            return self.positioned(pool, start, Direction::Forward, end);
        }
        let mut cursor = self.cursor(Direction::Forward, end)?;
        self.noting(|| cursor.seek(key))?;
        Ok(cursor)
    }

    /// A cursor on the last key before `key`, or of all keys if there is none to be before; where
    /// none before `first` is asked for.
    pub(crate) fn cursor_before(&self, key: Option<&[u8]>, first: &[u8]) -> Result<VisibleCursor> {
        if let Some(pool) = self.pool_for_runs() {
            let start = key.map_or(Start::Last, |key| Start::Before(key.into()));
            return self.positioned(pool, start, Direction::Backward, Some(first));
        }
        let mut cursor = self.cursor(Direction::Backward, Some(first))?;
        self.noting(|| cursor.seek_before(key))?;
        Ok(cursor)
    }

    /// A cursor on no entry yet.
    fn cursor(&self, direction: Direction, limit: Option<&[u8]>) -> Result<VisibleCursor> {
        let mut sources = self.memtables(direction, limit);
        sources.extend(self.runs().map(Source::Run));
        let limit = limit.map(<[u8]>::to_vec);
        Ok(VisibleCursor::new(MergeCursor::new(sources), self.seq, self.deleted()?, limit))
    }

    /// The pool, where there is something to be done at the same time that is slow.
    fn pool_for_runs(&self) -> Option<&ReadPool> {
        self.pool.as_deref().filter(|pool| self.state.version.runs().len() > 1 && pool.helps())
    }

    /// Tells the pool, if there is one, what one thread took.
    fn noting(&self, read: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(pool) = &self.pool else { return read() };
        let start = Instant::now();
        let done = read();
        pool.note(start.elapsed());
        done
    }

    fn positioned(
        &self,
        pool: &ReadPool,
        start: Start,
        direction: Direction,
        limit: Option<&[u8]>,
    ) -> Result<VisibleCursor> {
        let mut sources = self.memtables(direction, limit);
        sources.iter_mut().try_for_each(|source| start.position(source))?;
        sources.extend(position_runs(pool, self.runs().collect(), start)?);
        let merge = MergeCursor::positioned(sources, direction);
        VisibleCursor::positioned(merge, self.seq, self.deleted()?, limit.map(<[u8]>::to_vec))
    }

    /// Cursors that go in a direction up to a limit.
    fn memtables(&self, direction: Direction, limit: Option<&[u8]>) -> Vec<Source> {
        let memtables = self.state.memtables().filter(|memtable| !memtable.is_empty());
        let cursors = memtables.map(|memtable| {
            let mut cursor = memtable.cursor();
            match direction {
                Direction::Forward => cursor.limit_to(None, limit),
                Direction::Backward => cursor.limit_to(limit, None),
            }
            Source::Memtable(cursor)
        });
        cursors.collect()
    }

    fn runs(&self) -> impl Iterator<Item = RunCursor> {
        self.state.version.runs().iter().map(|run| RunCursor::new(Arc::clone(run)))
    }

    fn deleted(&self) -> Result<DeletedRanges> {
        let TreeState { version, .. } = &*self.state;
        let dead = (&self.dead, self.known);
        DeletedRanges::new(self.state.memtables(), version, dead, self.seq)
    }

    /// Whether its sequence number must be held for what it sees to stay.
    pub(crate) fn must_be_held(&self) -> bool {
        self.state.forgets()
    }

    /// Counts a scan of it.
    pub(crate) fn begin_scan(&self) -> ScanCount {
        self.state.usage.begin_scan()
    }

    pub(crate) fn seq(&self) -> SeqNo {
        self.seq
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;
    use crate::{Background, Options};

    /// A scan took the tree's state, then the memtable was replaced, a key was put into the next
    /// one, and the scan took its number. It found nothing where the key is, as its state does not
    /// hold it, and entered the range as dead for all later scans, which jumped over the key.
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
        let pipeline = engine.pipeline();
        // Known to be dead before; the put says otherwise.
        assert_eq!(db.iter().unwrap().count(), 0);
        assert!(tree.dead().around(b"k150", pipeline.visible()).is_some());
        let before = engine.view(tree, None).unwrap();
        pipeline.rotate(&mut pipeline.lock(), tree, crate::event::FlushReason::Requested);
        db.put("k150", "there").unwrap();
        let late = ReadView { seq: pipeline.visible(), ..before };
        assert!(!late.cursor_from(b"k", None).unwrap().is_valid(), "its state is the old one");
        assert!(!late.cursor_before(None, b"k").unwrap().is_valid());
        assert_eq!(db.iter().unwrap().count(), 1);
        assert_eq!(db.iter().unwrap().rev().count(), 1);
    }
}
