//! Point lookups and first positions of scans with the help of the read pool.
//!
//! A lookup checks the filters itself, which needs no I/O if they are in memory, and gives the runs
//! that may have the key to the pool. The answer is the same as in the serial search. It comes from
//! the first run, from new to old, that has a version of the key, a range tombstone over the key,
//! or an error. An error in a run older than the answer is dropped, because the serial search would
//! not have read that run, and a damaged old table must not hide newer versions. Counters may
//! exceed those of the serial search, because runs older than the answer may have been searched.

use std::sync::Arc;
use std::time::Instant;

use super::Reader;
use super::lookup::newest_deletion;
use super::pool::ReadPool;
use crate::cursor::{RunCursor, Source};
use crate::engine::tree::TreeState;
use crate::error::Result;
use crate::stats::Counter;
use crate::table::{FoundVersion, Table, filter_hash};
use crate::types::SeqNo;

/// The tables that a lookup must search.
#[derive(Debug, Default)]
struct CandidateTables {
    /// Newest first; the filter of each admits the key.
    tables: Vec<Arc<Table>>,
    /// The newest range tombstone over the key in the last run that was checked; 0 if there is none.
    /// If there is one, older runs have no visible version.
    deleted: SeqNo,
}

impl Reader {
    /// Returns the newest version of `key` in tables as of `seq`, like the serial search.
    pub(crate) fn find_in_parallel(
        &self,
        pool: &ReadPool,
        state: &TreeState,
        key: &[u8],
        seq: SeqNo,
    ) -> Result<Option<FoundVersion>> {
        let start = Instant::now();
        let mut candidates = CandidateTables::default();
        let gathered = gather(&mut candidates, state, key, seq);
        let CandidateTables { tables, deleted } = candidates;
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
                pool.record(start.elapsed());
                vec![result]
            }
            Err(tables) if tables.is_empty() => {
                pool.record(start.elapsed());
                Vec::new()
            }
            Err(tables) => pool.search(tables, is_answer, search)?,
        };
        match results.into_iter().find(is_answer) {
            Some(answer) => Ok(answer?.filter(|found| found.seq > deleted)),
            // The error, if there is one, comes from the run after the last candidate.
            None => gathered.map(|()| None),
        }
    }
}

fn is_answer(result: &Result<Option<FoundVersion>>) -> bool {
    !matches!(result, Ok(None))
}

/// Collects candidates from new to old. After an error, `candidates` contains the candidates before
/// the run with the error.
fn gather(
    candidates: &mut CandidateTables,
    state: &TreeState,
    key: &[u8],
    seq: SeqNo,
) -> Result<()> {
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

/// The first position of a scan.
#[derive(Debug, Clone)]
pub(crate) enum Start {
    /// The first version with at most this sequence number, of the first key at or after the key.
    From(Box<[u8]>, SeqNo),
    /// The last entry before the key.
    Before(Box<[u8]>),
    /// The last entry of all.
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

/// Positions runs in parallel. Returns the first error in the order of the runs.
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
