//! Point lookups that read several runs concurrently (Dent §2.4.2).
//!
//! The lookup searches the runs from new to old. If it reaches a run whose blocks are not in memory
//! while reads wait for a device, it also gathers the next runs that may have the key, up to
//! `read_threads` in all, and reads them together, with one system call or on the I/O threads. The newest
//! answer wins.
//!
//! 1. The result is that of the serial search: it comes from the first run, from new to old, with a
//!    version of the key, a range tombstone over the key, or an error. An error in a run older than
//!    the answer is dropped, because the serial search would not have read that run.
//! 2. A run in memory is searched at once and never handed to a thread, because that would take
//!    longer than the search.
//! 3. Counters may exceed those of the serial search, because runs older than the answer were read.

use std::sync::Arc;

use super::Reader;
use super::lookup::newest_deletion;
use crate::base::error::{Error, Result};
use crate::base::stats::Counter;
use crate::base::types::SeqNo;
use crate::files::buffer::BlockRef;
use crate::files::table::{FoundVersion, Table, load_together};

/// A table whose filter admits the key.
struct Candidate<'a> {
    table: &'a Arc<Table>,
    /// The block to search, if the index is in memory.
    block: Option<usize>,
    /// Whether the block is in memory as well.
    is_resident: bool,
    /// The version, if it is in memory and the block is not.
    hot: Option<FoundVersion>,
    /// The newest range tombstone of the table that covers the key; 0 if there is none.
    deleted: SeqNo,
}

impl Candidate<'_> {
    /// Returns true if the candidate needs no read.
    fn is_in_memory(&self) -> bool {
        self.is_resident || self.hot.is_some()
    }

    fn get(&self, target: Target<'_>) -> Result<Option<FoundVersion>> {
        match (&self.hot, self.block) {
            (Some(hot), _) => Ok(Some(hot.clone())),
            (None, Some(block)) => self.table.get_from((block, None), target.key, target.seq),
            (None, None) => self.table.get(target.key, target.seq),
        }
    }

    /// Does the same after [`load`].
    fn get_loaded(&self, target: Target<'_>) -> Result<Option<FoundVersion>> {
        let found = self.get(target)?;
        // A block that could not be cached was read again, which noted what was found.
        if let (Some(block), Some(found), false) = (self.block, &found, self.is_in_memory())
            && self.table.is_block_resident(block)
        {
            self.table.note_found((target.key, target.hash, target.seq), found, block);
        }
        Ok(found)
    }
}

/// The state of the runs after a group.
enum Rest {
    /// They may have an answer.
    Open,
    /// They have no answer, because there are no more runs, or because a range tombstone covers the
    /// key.
    Nothing,
    /// The next run cannot be read.
    Failed(Error),
}

/// The target of a lookup.
#[derive(Clone, Copy)]
pub(super) struct Target<'a> {
    pub(super) key: &'a [u8],
    pub(super) hash: u64,
    pub(super) seq: SeqNo,
}

impl Reader {
    /// Searches tables of runs from new to old, like the serial search.
    pub(super) fn find_overlapped<'a>(
        &self,
        mut tables: impl Iterator<Item = &'a Arc<Table>>,
        target: Target<'_>,
        runs_at_once: usize,
    ) -> Result<Option<FoundVersion>> {
        let mut group = Vec::with_capacity(runs_at_once);
        loop {
            group.clear();
            let rest = gather(&mut tables, target, runs_at_once, &mut group);
            if let Some(decided) = self.search(&group, target)? {
                return Ok(decided);
            }
            match rest {
                Rest::Open => {}
                Rest::Nothing => return Ok(None),
                Rest::Failed(error) => return Err(error),
            }
        }
    }

    /// Searches a group. Returns none if its tables do not decide the key.
    fn search(
        &self,
        group: &[Candidate<'_>],
        target: Target<'_>,
    ) -> Result<Option<Option<FoundVersion>>> {
        let Some((first, others)) = group.split_first() else { return Ok(None) };
        let threads = first.table.io_threads();
        // Kept in memory until the searches are done.
        let loaded = load(group);
        let uses_threads = !others.is_empty() && loaded.is_none();
        let shared: Option<Arc<[u8]>> = uses_threads.then(|| target.key.into());
        let start = |other: &Candidate<'_>| {
            let key = shared.as_ref().filter(|_| !other.is_in_memory())?;
            let (table, key, seq) = (Arc::clone(other.table), Arc::clone(key), target.seq);
            Some(threads.start(move || table.get(&key, seq)))
        };
        let pending: Vec<_> = others.iter().map(start).collect();
        let found = match first.is_in_memory() || loaded.is_some() {
            true => first.get_loaded(target),
            false => threads.read_alone(|| first.get(target)),
        };
        if let Some(decided) = self.decide(first, found?) {
            return Ok(Some(decided));
        }
        for (other, pending) in others.iter().zip(pending) {
            let found = match pending {
                Some(pending) => pending.wait().unwrap_or_else(|| Err(panicked())),
                None => other.get_loaded(target),
            };
            if let Some(decided) = self.decide(other, found?) {
                return Ok(Some(decided));
            }
        }
        Ok(None)
    }

    /// Returns the lookup's answer if the table decides it.
    fn decide(
        &self,
        candidate: &Candidate<'_>,
        found: Option<FoundVersion>,
    ) -> Option<Option<FoundVersion>> {
        if found.is_none() {
            self.context.counters.add(Counter::FilterFalsePositives, 1);
        }
        let is_decided = found.is_some() || candidate.deleted > 0;
        is_decided.then(|| found.filter(|found| found.seq > candidate.deleted))
    }
}

/// Reads the blocks of a group that are not in memory, if the system reads several blocks together and the indexes are
/// in memory. Errors are left to the searches.
fn load(group: &[Candidate<'_>]) -> Option<Vec<BlockRef>> {
    let missing = group.iter().filter(|candidate| !candidate.is_in_memory());
    let missing: Option<Vec<_>> =
        missing.map(|candidate| Some((candidate.table, candidate.block?))).collect();
    missing
        .filter(|missing| missing.len() > 1)
        .and_then(|missing| load_together(missing.into_iter()))
}

#[cold]
fn panicked() -> Error {
    Error::internal("a search panicked in a thread that reads tables")
}

/// Collects tables that may have the key, from new to old: only the first one if it is in memory or
/// reads do not wait, otherwise up to `count`.
fn gather<'a>(
    tables: &mut impl Iterator<Item = &'a Arc<Table>>,
    target: Target<'_>,
    count: usize,
    group: &mut Vec<Candidate<'a>>,
) -> Rest {
    for table in tables {
        let (candidate, deleted) = match candidate(table, target) {
            Ok(checked) => checked,
            Err(error) => return Rest::Failed(error),
        };
        group.extend(candidate);
        if deleted > 0 {
            return Rest::Nothing;
        }
        let is_alone =
            |first: &Candidate<'_>| first.is_in_memory() || !first.table.io_threads().helps();
        if group.len() >= count || group.first().is_some_and(is_alone) {
            return Rest::Open;
        }
    }
    Rest::Nothing
}

/// Returns the table as a candidate if it may have a version of the key, and the newest range
/// tombstone that covers the key.
fn candidate<'a>(
    table: &'a Arc<Table>,
    target: Target<'_>,
) -> Result<(Option<Candidate<'a>>, SeqNo)> {
    let deleted = newest_deletion(table, target.key, target.seq)?;
    if !table.may_have(target.key, target.hash, target.seq)? {
        return Ok((None, deleted));
    }
    let block = table.indexed_block_of(target.key)?;
    let is_resident = block.is_some_and(|block| table.is_block_resident(block));
    let hot = match is_resident {
        true => None,
        false => table.hot_version(target.key, target.hash, target.seq),
    };
    Ok((Some(Candidate { table, block, is_resident, hot, deleted }), deleted))
}
