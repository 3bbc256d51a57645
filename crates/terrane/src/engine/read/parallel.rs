//! Point lookups and the first position of scans, with the help of the read pool.
//!
//! A lookup asks the filters itself, which takes no input or output where they are in memory, and
//! hands over the runs that may hold the key. What it answers is what the serial search answers:
//! the first run, from new to old, that has a version of the key, a range tombstone over it, or an
//! error. An error in a run older than the answer is dropped: the serial search would not have
//! come to it, and a damaged old table must not hide what is newer. Counters may be larger, as runs
//! older than the answer may have been looked into.

use std::sync::Arc;
use std::time::Instant;

use super::Reader;
use super::lookup::newest_deletion;
use super::pool::ReadPool;
use crate::engine::tree::TreeState;
use crate::error::Result;
use crate::iter::{RunCursor, Source};
use crate::stats::Counter;
use crate::table::{FoundVersion, Table, filter_hash};
use crate::types::SeqNo;

/// The runs that a lookup must search.
#[derive(Debug, Default)]
struct Candidates {
    /// Newest first; each has passed its filter.
    tables: Vec<Arc<Table>>,
    /// The newest range tombstone over the key in the oldest run that was looked at; 0 if there is
    /// none. Runs older than that one hold nothing that is visible.
    deleted: SeqNo,
}

impl Reader {
    /// The newest version of `key` in tables as of `seq`, as `Engine::find` looks for it.
    pub(crate) fn find_in_parallel(
        &self,
        pool: &ReadPool,
        state: &TreeState,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<FoundVersion>> {
        let start = Instant::now();
        let mut candidates = Candidates::default();
        let gathered = gather(&mut candidates, state, key, seq);
        let Candidates { tables, deleted } = candidates;
        let counters = Arc::clone(&self.context.counters);
        let owned: Box<[u8]> = key.into();
        let search = move |table: Arc<Table>| {
            let found = table.get(&owned, seq)?;
            if found.is_none() {
                counters.add(Counter::FilterFalsePositives, 1);
            }
            Ok(found)
        };
        let results = match <[Arc<Table>; 1]>::try_from(tables) {
            Ok([table]) => {
                let result = search(table);
                pool.note(start.elapsed());
                vec![result]
            }
            Err(tables) if tables.is_empty() => {
                pool.note(start.elapsed());
                Vec::new()
            }
            Err(tables) => pool.search(tables, is_answer, search)?,
        };
        match results.into_iter().find(is_answer) {
            Some(answer) => Ok(answer?.filter(|found| found.seq > deleted)),
            // Older runs could not be looked at.
            None => gathered.map(|()| None),
        }
    }
}

fn is_answer(result: &Result<Option<FoundVersion>>) -> bool {
    !matches!(result, Ok(None))
}

/// Looks for candidates from new to old. After an error those before it are there.
fn gather(candidates: &mut Candidates, state: &TreeState, key: &[u8], seq: SeqNo) -> Result<()> {
    let hash = filter_hash(key);
    for run in state.version.runs() {
        let Some(table) = run.table_for(key) else { continue };
        let deleted = newest_deletion(table, key, seq)?;
        if table.info().smallest_seq <= seq && table.may_contain(hash)? {
            candidates.tables.push(Arc::clone(table));
        }
        if deleted > 0 {
            candidates.deleted = deleted;
            break;
        }
    }
    Ok(())
}

/// Where a scan begins.
#[derive(Debug, Clone)]
pub(crate) enum Start {
    /// At the first version not newer than the number, of the first key at or after the key.
    From(Box<[u8]>, SeqNo),
    /// At the last entry before the key.
    Before(Box<[u8]>),
    /// At the last entry of all.
    Last,
}

impl Start {
    pub(crate) fn position(&self, source: &mut Source) -> Result<()> {
        match self {
            Self::From(key, seq) => source.seek(key, *seq),
            Self::Before(key) => source.seek_before(key),
            Self::Last => source.seek_last(),
        }
    }
}

/// Positions runs at the same time. The first error, in their order, is the one to tell.
pub(crate) fn position_runs(
    pool: &ReadPool,
    runs: Vec<RunCursor>,
    start: Start,
) -> Result<Vec<Source>> {
    let search = move |run: RunCursor| {
        let mut source = Source::Run(run);
        start.position(&mut source).map(|()| source)
    };
    pool.search(runs, Result::is_err, search)?.into_iter().collect()
}
