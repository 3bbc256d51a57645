//! Point lookups.
//!
//! Memtables are searched first, then runs, both from new to old: the first version found is the
//! newest. A range tombstone that covers the key hides everything older, so the search ends there
//! as well. A run is skipped by its key range, then by its filter; otherwise the fence pointers
//! lead to one block. A lookup reads one block if it finds the key, and no block otherwise, except
//! after a false positive of a filter.

use std::sync::Arc;

use arc_swap::Guard;
use terrane_memtable::Lookup;

use super::overlapped::Target;
use super::{AsOf, Reader};
use crate::base::error::{Error, Result};
use crate::base::expiry::{EXPIRY_BYTES, ReadTime};
use crate::base::stats::{Counter, Sample, Timed};
use crate::base::types::{EntryKind, SeqNo};
use crate::engine::tree::{Tree, TreeState};
use crate::engine::version::OpenRun;
use crate::files::table::{FoundVersion, Table, filter_hash};
use crate::files::value::Value;

impl Reader {
    /// Returns the value of `key` as of `at`, or now.
    pub(crate) fn get(
        &self,
        tree: &Tree,
        key: &[u8],
        at: Option<AsOf<'_>>,
    ) -> Result<Option<Value>> {
        Ok(self.get_with_expiry(tree, key, at)?.map(|(value, _)| value))
    }

    /// Returns the value of `key` as of `at`, or now, and its expiry time.
    #[inline]
    pub(crate) fn get_with_expiry(
        &self,
        tree: &Tree,
        key: &[u8],
        at: Option<AsOf<'_>>,
    ) -> Result<Option<ValueWithExpiry>> {
        let sample = Sample::begin();
        let (state, found) = self.find_newest(tree, key, at)?;
        let expires_at = found.as_ref().and_then(FoundVersion::expires_at_micros);
        let value = match found {
            Some(operand) if operand.kind == EntryKind::Operand => {
                self.get_combined((tree, state), key, operand, at)?
            }
            found => value_of(&state, key, found, &self.time(at))?,
        };
        self.count_found(value.is_some());
        sample.end(&self.context.counters.durations, Timed::Get);
        Ok(value.map(|value| (value, expires_at)))
    }

    /// Returns the value of `key`, whose newest version in `state` is an operand.
    #[cold]
    fn get_combined(
        &self,
        (tree, state): (&Tree, Guard<Arc<TreeState>>),
        key: &[u8],
        operand: FoundVersion,
        at: Option<AsOf<'_>>,
    ) -> Result<Option<Value>> {
        let time = self.time(at);
        if at.is_some() || !state.reclaims_versions() {
            return self.combined((tree, &state), key, operand, &time).map(Some);
        }
        // The versions below may be reclaimed unless the number is held.
        drop(state);
        let held = self.pipeline.snapshot();
        let state = tree.state();
        let newest = self.find_decided(&state, key, ReadAt::Held(held.seq))?;
        match newest {
            Some(operand) if operand.kind == EntryKind::Operand => {
                self.combined((tree, &state), key, operand, &time).map(Some)
            }
            found => value_of(&state, key, found, &time),
        }
    }

    /// Returns whether `key` has a value as of `at`, or now. Reads no separated value.
    pub(crate) fn contains(&self, tree: &Tree, key: &[u8], at: Option<AsOf<'_>>) -> Result<bool> {
        let sample = Sample::begin();
        let (_, found) = self.find_newest(tree, key, at)?;
        let exists = found.is_some_and(|found| self.time(at).is_value(found.kind, &found.value));
        self.count_found(exists);
        sample.end(&self.context.counters.durations, Timed::Get);
        Ok(exists)
    }

    #[inline]
    pub(super) fn count_found(&self, is_found: bool) {
        if is_found {
            self.context.counters.add(Counter::GetsFound, 1);
        }
    }

    /// Returns the newest version of `key` as of `at`, or now, and the state that contains it.
    #[inline]
    fn find_newest(
        &self,
        tree: &Tree,
        key: &[u8],
        at: Option<AsOf<'_>>,
    ) -> Result<(Guard<Arc<TreeState>>, Option<FoundVersion>)> {
        self.context.health.check_open()?;
        self.context.counters.add(Counter::Gets, 1);
        // The state is loaded before the sequence number, so that it contains everything that is
        // visible at that number.
        let state = Self::state(tree, at);
        let now = || ReadAt::Visible(state.readable(self.pipeline.visible()));
        let read_at = at.map_or_else(now, |at| ReadAt::Held(at.seq));
        match self.find(&state, key, read_at)? {
            Answer::Decided(found) => Ok((state, found)),
            Answer::Overwritten if at.is_some() => Err(overwritten()),
            Answer::Overwritten => {
                drop(state);
                self.find_held(tree, key)
            }
        }
    }

    /// Looks up a key again, at a sequence number that it holds. This is needed if a version was
    /// overwritten in place after the first lookup took its sequence number and before it found the
    /// key.
    #[cold]
    fn find_held(
        &self,
        tree: &Tree,
        key: &[u8],
    ) -> Result<(Guard<Arc<TreeState>>, Option<FoundVersion>)> {
        self.context.counters.add(Counter::GetsRetried, 1);
        let held = self.pipeline.snapshot();
        let state = tree.state();
        let found = self.find_decided(&state, key, ReadAt::Held(held.seq))?;
        Ok((state, found))
    }

    /// Returns the newest version of `key` at a sequence number that the caller holds, or at which
    /// no version is reclaimed.
    pub(super) fn find_decided(
        &self,
        state: &TreeState,
        key: &[u8],
        at: ReadAt,
    ) -> Result<Option<FoundVersion>> {
        match self.find(state, key, at)? {
            Answer::Decided(found) => Ok(found),
            Answer::Overwritten => Err(overwritten()),
        }
    }

    /// Returns the newest version of `key` as of `seq`; none if the key has no version, or if a
    /// range tombstone covers it.
    #[inline]
    fn find(&self, state: &TreeState, key: &[u8], at: ReadAt) -> Result<Answer> {
        let run = match state.version.runs() {
            [] => None,
            [run] => Some(run),
            runs => return self.find_in_runs((state, runs), key, at),
        };
        // With at most one run there are no cache misses to overlap.
        match self.find_in_memtables(state, key, at) {
            MemoryAnswer::Decided(found) => return Ok(Answer::Decided(found)),
            MemoryAnswer::Overwritten => return Ok(Answer::Overwritten),
            MemoryAnswer::Undecided => {}
        }
        let Some(table) = run.and_then(|run| run.table_for(key)) else {
            return Ok(Answer::Decided(None));
        };
        let decided = self.answer_of((table, key), at.seq(), filter_hash(key))?;
        Ok(Answer::Decided(decided.unwrap_or_default()))
    }

    /// Does the same in a tree with several runs.
    #[inline(never)]
    fn find_in_runs(
        &self,
        (state, runs): (&TreeState, &[Arc<OpenRun>]),
        key: &[u8],
        at: ReadAt,
    ) -> Result<Answer> {
        let hash = filter_hash(key);
        let first = prefetched_tables(runs, key, hash);
        match self.find_in_memtables(state, key, at) {
            MemoryAnswer::Decided(found) => return Ok(Answer::Decided(found)),
            MemoryAnswer::Overwritten => return Ok(Answer::Overwritten),
            MemoryAnswer::Undecided => {}
        }
        let later = runs.iter().skip(first.len()).map(|run| run.table_for(key));
        let mut tables = first.iter().copied().chain(later).flatten();
        let seq = at.seq();
        let found = match self.context.settings.read_threads {
            0 | 1 => tables.find_map(|table| self.answer_of((table, key), seq, hash).transpose()),
            runs_at_once => {
                Some(self.find_overlapped(tables, Target { key, hash, seq }, runs_at_once))
            }
        };
        Ok(Answer::Decided(found.transpose()?.flatten()))
    }

    /// Returns the answer of a table to a lookup; `None` if it does not decide the key.
    #[inline(always)]
    fn answer_of(
        &self,
        (table, key): (&Table, &[u8]),
        seq: SeqNo,
        hash: u64,
    ) -> Result<Option<Option<FoundVersion>>> {
        let deleted = newest_deletion(table, key, seq)?;
        Ok(match self.find_in_table(table, key, seq, hash)? {
            Some(found) => Some((found.seq > deleted).then_some(found)),
            None => (deleted > 0).then_some(None),
        })
    }

    /// Searches the memtables and counts the lookup.
    #[inline]
    pub(super) fn find_in_memtables(
        &self,
        state: &TreeState,
        key: &[u8],
        at: ReadAt,
    ) -> MemoryAnswer {
        let answer = search_memtables(state, key, at);
        self.count_in_memtables(state, matches!(answer, MemoryAnswer::Decided(_)));
        answer
    }

    /// Counts a lookup in memtables, and whether they answered it.
    #[inline]
    pub(super) fn count_in_memtables(&self, state: &TreeState, is_decided: bool) {
        if state.usage.lookup(is_decided) {
            // Wakes a thread that checks whether the kind of the memtable suits the operations.
            self.context.attention.request_memtable_check();
            self.context.signals.wake();
        }
    }

    #[inline(always)]
    pub(super) fn find_in_table(
        &self,
        table: &Table,
        key: &[u8],
        seq: SeqNo,
        hash: u64,
    ) -> Result<Option<FoundVersion>> {
        if !table.may_have(key, hash, seq)? {
            return Ok(None);
        }
        let found = table.get(key, seq)?;
        if found.is_none() {
            self.context.counters.add(Counter::FilterFalsePositives, 1);
        }
        Ok(found)
    }
}

#[cold]
pub(super) fn overwritten() -> Error {
    Error::internal("a version of a held snapshot was overwritten")
}

/// Returns the value of a version of `key`, which may be separated; `None` for a tombstone or an
/// expired value.
#[inline]
pub(super) fn value_of(
    state: &TreeState,
    key: &[u8],
    found: Option<FoundVersion>,
    time: &ReadTime<'_>,
) -> Result<Option<Value>> {
    match found {
        Some(FoundVersion { kind: EntryKind::Value, value, .. }) => Ok(Some(value)),
        Some(FoundVersion { kind: EntryKind::Separated, seq, value }) => {
            state.version.values().read(key, seq, &value).map(Some)
        }
        Some(FoundVersion { kind: kind @ EntryKind::Expiring, value, .. }) => {
            Ok(time.is_value(kind, &value).then(|| value.skip(EXPIRY_BYTES)))
        }
        Some(FoundVersion { kind: EntryKind::Operand, .. }) => {
            Err(Error::internal("an operand was not combined with the versions below it"))
        }
        Some(FoundVersion { kind: EntryKind::Tombstone, .. }) | None => Ok(None),
    }
}

/// A value, and its expiry time in microseconds since the Unix epoch; `None` if it does not expire.
pub(super) type ValueWithExpiry = (Value, Option<u64>);

/// The number of runs whose filters are prefetched.
const FIRST_RUNS: usize = 8;

/// The tables of the first runs that may contain a key.
type FirstTables<'a> = [Option<&'a Arc<Table>>; FIRST_RUNS];

/// Returns the tables of the first runs that may contain `key`, and prefetches their filters, so
/// that the cache misses of memtables and filters overlap.
#[inline]
fn prefetched_tables<'a>(runs: &'a [Arc<OpenRun>], key: &[u8], hash: u64) -> FirstTables<'a> {
    let mut tables = [None; FIRST_RUNS];
    for (run, table) in runs.iter().zip(&mut tables) {
        *table = run.table_for(key);
        if let Some(table) = table {
            table.prefetch_filter(hash);
        }
    }
    tables
}

/// The sequence number at which a lookup reads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReadAt {
    /// A held number, so that its versions are not reclaimed.
    Held(SeqNo),
    /// The newest visible number, or an older one if no version is reclaimed.
    Visible(SeqNo),
}

impl ReadAt {
    pub(super) fn seq(self) -> SeqNo {
        match self {
            Self::Held(seq) | Self::Visible(seq) => seq,
        }
    }
}

/// The answer of a tree to a lookup.
enum Answer {
    /// The newest version of the key; `None` if the key has none.
    Decided(Option<FoundVersion>),
    /// See [`MemoryAnswer::Overwritten`].
    Overwritten,
}

/// The answer of the memtables to a lookup.
pub(crate) enum MemoryAnswer {
    /// The newest version of the key; `None` if the key is deleted.
    Decided(Option<FoundVersion>),
    /// The version was overwritten in place after the reader, which did not hold its sequence
    /// number, took that number.
    Overwritten,
    /// The memtables have no version of the key, so the tables decide.
    Undecided,
}

#[inline]
pub(super) fn search_memtables(state: &TreeState, key: &[u8], at: ReadAt) -> MemoryAnswer {
    let seq = at.seq();
    for memtable in state.memtables() {
        let deleted = memtable.range_tombstones().newest_covering(key, seq).unwrap_or(0);
        let looked_up = match at {
            ReadAt::Held(seq) => memtable.look_up_held(key, seq),
            ReadAt::Visible(seq) => memtable.look_up(key, seq),
        };
        match looked_up {
            Lookup::Found(found, kind, value) => {
                let value = Value::pinned(value);
                let found = (found > deleted).then_some(FoundVersion { seq: found, kind, value });
                return MemoryAnswer::Decided(found);
            }
            Lookup::Overwritten => return MemoryAnswer::Overwritten,
            Lookup::Absent if deleted > 0 => return MemoryAnswer::Decided(None),
            Lookup::Absent => {}
        }
    }
    MemoryAnswer::Undecided
}

/// Returns the sequence number of the newest range tombstone in a table that covers `key` and is
/// not newer than `seq`; 0 if there is none.
pub(crate) fn newest_deletion(table: &Table, key: &[u8], seq: SeqNo) -> Result<SeqNo> {
    if table.info().range_tombstones == 0 {
        return Ok(0);
    }
    let fragments = table.fragments()?;
    let after = fragments.partition_point(|fragment| *fragment.start <= *key);
    let fragment = after.checked_sub(1).and_then(|at| fragments.get(at));
    let covering = fragment.filter(|fragment| fragment.contains(key));
    Ok(covering.and_then(|fragment| fragment.newest_visible(seq)).unwrap_or(0))
}
