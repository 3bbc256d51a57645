//! Point lookups of many keys at once.
//!
//! A lookup waits for memory several times, each time at an address that the previous access
//! returned. Many lookups can overlap these waits: each step runs for all keys and prefetches
//! memory for the next step.

use std::sync::Arc;

use terrane_memtable::{Lookup, prefetch_lines};

use super::lookup::{ValueWithExpiry, newest_deletion, overwritten, value_of};
use super::{AsOf, Reader};
use crate::base::error::Result;
use crate::base::expiry::ReadTime;
use crate::base::stats::{Counter, Sample, Timed};
use crate::base::types::{EntryKind, SeqNo};
use crate::engine::tree::{Tree, TreeState};
use crate::engine::version::OpenRun;
use crate::files::buffer::BlockRef;
use crate::files::table::{FoundVersion, Table, filter_hash, load_together};
use crate::files::value::Value;
use crate::files::value_file::SeparatedEntry;

/// The number of keys that are looked up together, so that their prefetched lines fit into the L1
/// cache.
const KEYS_AT_ONCE: usize = 64;

/// How many cache lines of a value in a memtable are prefetched; the processor itself prefetches
/// the rest of a long value.
const VALUE_LINES: usize = 4;

/// A key that has not been decided yet.
struct PendingKey<'a> {
    key: &'a [u8],
    /// Its index among the answers.
    at: usize,
    hash: u64,
}

/// The answers of keys that are looked up together.
struct Answers<'s, 'a> {
    answers: &'s mut [Option<ValueWithExpiry>],
    /// The entries whose values are separated, and the indexes of their answers.
    separated: Vec<(usize, SeparatedEntry<'a>)>,
}

/// A table that may have a pending key.
struct TableCandidate<'a> {
    /// The index of the pending key.
    pending: usize,
    table: &'a Arc<Table>,
    /// The newest range tombstone of the table that covers the key; 0 if there is none.
    deleted: SeqNo,
    /// The block to search; `None` if the filter excludes the key.
    block: Option<usize>,
    /// The place in the block from which to search, if it is known.
    entry: Option<usize>,
}

impl Reader {
    /// Returns the values of several keys as of `at`, or now, in the order of the keys.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: &[K],
        at: Option<AsOf<'_>>,
    ) -> Result<Vec<Option<Value>>> {
        let found = self.multi_get_with_expiry(tree, keys, at)?;
        // Collecting in place reuses the vector's memory.
        Ok(found.into_iter().map(|found| found.map(|(value, _)| value)).collect())
    }

    /// Returns the values of several keys as of `at`, or now, and their expiry times, in the order of the keys.
    pub(crate) fn multi_get_with_expiry<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: &[K],
        at: Option<AsOf<'_>>,
    ) -> Result<Vec<Option<ValueWithExpiry>>> {
        let sample = Sample::begin();
        let seq = at.map(|at| at.seq);
        self.context.health.check_open()?;
        // If memtables overwrite versions in place, the sequence number must be held until the last
        // key is found.
        let held =
            (seq.is_none() && tree.state().reclaims_versions()).then(|| self.pipeline.snapshot());
        let seq = seq.or(held.as_ref().map(|held| held.seq));
        // The state is loaded before the sequence number, so that it contains everything that is
        // visible at that number.
        let state = Self::state(tree, at);
        if seq.is_none() && state.reclaims_versions() {
            // Since the check above, the tree has got a memtable that overwrites versions in place.
            return self.multi_get_with_expiry(tree, keys, at);
        }
        let seq = seq.unwrap_or_else(|| state.readable(self.pipeline.visible()));
        self.context.counters.add(Counter::Gets, keys.len() as u64);
        let time = self.time(at);
        let mut answers = vec![None; keys.len()];
        for (chunk, answers) in keys.chunks(KEYS_AT_ONCE).zip(answers.chunks_mut(KEYS_AT_ONCE)) {
            let keys: Vec<&[u8]> = chunk.iter().map(AsRef::as_ref).collect();
            let found = find_in_memtables(&state, &keys, seq)?;
            let mut answers = Answers { answers, separated: Vec::new() };
            let mut pending = Vec::with_capacity(chunk.len());
            for (at, (key, found)) in keys.into_iter().zip(found).enumerate() {
                self.count_in_memtables(&state, found.is_some());
                match found {
                    Some(found) => {
                        self.answer((tree, &state), (key, at), found, &time, &mut answers)?;
                    }
                    None => pending.push(PendingKey { key, at, hash: filter_hash(key) }),
                }
            }
            for run in state.version.runs() {
                if pending.is_empty() {
                    break;
                }
                let place = (tree, &*state, &**run);
                self.find_in_run(place, (seq, &time), &mut pending, &mut answers)?;
            }
            self.read_separated(&state, answers)?;
        }
        let found = answers.iter().filter(|answer| answer.is_some()).count() as u64;
        self.context.counters.add(Counter::GetsFound, found);
        sample.end(&self.context.counters.durations, Timed::MultiGet);
        Ok(answers)
    }

    /// Answers a key with the newest version that the reader sees, unless its value is separated.
    #[inline]
    fn answer<'a>(
        &self,
        place: (&Tree, &Arc<TreeState>),
        (key, at): (&'a [u8], usize),
        found: Option<FoundVersion>,
        time: &ReadTime<'_>,
        answers: &mut Answers<'_, 'a>,
    ) -> Result<()> {
        let expires_at = found.as_ref().and_then(FoundVersion::expires_at_micros);
        let value = match found {
            Some(operand) if operand.kind == EntryKind::Operand => {
                self.combined(place, key, operand, time).map(Some)
            }
            Some(FoundVersion { kind: EntryKind::Separated, seq, value: pointer }) => {
                answers.separated.push((at, SeparatedEntry { key, seq, pointer }));
                return Ok(());
            }
            found => value_of(place.1, key, found, time),
        };
        answers.answers[at] = value?.map(|value| (value, expires_at));
        Ok(())
    }

    /// Answers the keys whose values are separated.
    #[inline]
    fn read_separated(&self, state: &TreeState, answers: Answers<'_, '_>) -> Result<()> {
        let Answers { answers, separated } = answers;
        if separated.is_empty() {
            return Ok(());
        }
        let (places, entries): (Vec<usize>, Vec<_>) = separated.into_iter().unzip();
        let values = state.version.values();
        let read = values.read_together(&entries);
        for ((at, entry), value) in places.into_iter().zip(&entries).zip(read) {
            let value = match value {
                Some(value) => value,
                None => values.read(entry.key, entry.seq, &entry.pointer)?,
            };
            answers[at] = Some((value, None));
        }
        Ok(())
    }

    /// Answers the keys that the run decides, and leaves the others pending.
    fn find_in_run<'a>(
        &self,
        (tree, state, run): (&Tree, &Arc<TreeState>, &OpenRun),
        (seq, time): (SeqNo, &ReadTime<'_>),
        pending: &mut Vec<PendingKey<'a>>,
        answers: &mut Answers<'_, 'a>,
    ) -> Result<()> {
        let mut candidates = Vec::with_capacity(pending.len());
        for (index, key) in pending.iter().enumerate() {
            let Some(table) = run.table_for(key.key) else { continue };
            let info = table.info();
            if seq < info.smallest_seq || *key.key < *info.range.start {
                continue;
            }
            let deleted = newest_deletion(table, key.key, seq)?;
            table.prefetch_filter(key.hash);
            candidates.push(TableCandidate {
                pending: index,
                table,
                deleted,
                block: None,
                entry: None,
            });
        }
        for candidate in &mut candidates {
            let key = &pending[candidate.pending];
            if candidate.table.may_contain(key.hash)? {
                candidate.block = Some(candidate.table.prefetch_block(key.key)?);
            }
        }
        let mut is_decided = vec![false; pending.len()];
        for (at, version) in hot_versions(&candidates, pending, seq).into_iter().rev() {
            let TableCandidate { pending: index, deleted, .. } = candidates.remove(at);
            let (key, found) = (&pending[index], Some(version).filter(|found| found.seq > deleted));
            is_decided[index] = true;
            self.answer((tree, state), (key.key, key.at), found, time, answers)?;
        }
        let missing = missing_blocks(&candidates);
        // Keeps the blocks in memory until the lookups are done.
        let _loaded = load(&missing);
        for candidate in &mut candidates {
            if let Some(block) = candidate.block {
                let key = pending[candidate.pending].key;
                candidate.entry = candidate.table.prefetch_entry(block, key)?;
            }
        }
        for candidate in candidates {
            let TableCandidate { pending: index, table, deleted, block, entry } = candidate;
            let key = &pending[index];
            let found = match block {
                Some(block) => table.get_from((block, entry), key.key, seq)?,
                None => None,
            };
            if block.is_some() && found.is_none() {
                self.context.counters.add(Counter::FilterFalsePositives, 1);
            }
            if let (Some(block), Some(found)) = (block, &found)
                && was_loaded(&missing, (table, block))
            {
                table.note_found((key.key, key.hash, seq), found, block);
            }
            is_decided[index] = found.is_some() || deleted > 0;
            let found = found.filter(|found| found.seq > deleted);
            self.answer((tree, state), (key.key, key.at), found, time, answers)?;
        }
        let mut decided = is_decided.into_iter();
        pending.retain(|_| !decided.next().unwrap_or(false));
        Ok(())
    }
}

/// Returns the newest version of each key in the memtables as of `seq`, which is held: `None` if
/// they do not decide the key, and `Some(None)` if it is deleted.
fn find_in_memtables(
    state: &TreeState,
    keys: &[&[u8]],
    seq: SeqNo,
) -> Result<Vec<Option<Option<FoundVersion>>>> {
    let mut found: Vec<Option<Option<FoundVersion>>> = Vec::new();
    found.resize_with(keys.len(), || None);
    // The keys that newer memtables do not decide, and their indexes.
    let (mut left, mut indexes) = (keys.to_vec(), (0..keys.len()).collect::<Vec<usize>>());
    let mut is_overwritten = false;
    for memtable in state.memtables() {
        let tombstones = memtable.range_tombstones();
        memtable.look_up_all_held(&left, seq, |at, looked_up| {
            let deleted = tombstones.newest_covering(left[at], seq).unwrap_or(0);
            found[indexes[at]] = match looked_up {
                Lookup::Found(found, kind, value) => {
                    // The caller reads the values after the last lookup.
                    prefetch_lines(&value, VALUE_LINES);
                    let version = FoundVersion { seq: found, kind, value: Value::pinned(value) };
                    Some((found > deleted).then_some(version))
                }
                Lookup::Absent => (deleted > 0).then_some(None),
                Lookup::Overwritten => {
                    is_overwritten = true;
                    None
                }
            };
        });
        indexes.retain(|index| found[*index].is_none());
        if indexes.is_empty() {
            break;
        }
        left.clear();
        left.extend(indexes.iter().map(|index| keys[*index]));
    }
    if is_overwritten { Err(overwritten()) } else { Ok(found) }
}

/// Returns the versions that are in memory although their blocks are not, with the indexes of their candidates.
fn hot_versions(
    candidates: &[TableCandidate<'_>],
    pending: &[PendingKey<'_>],
    seq: SeqNo,
) -> Vec<(usize, FoundVersion)> {
    // What is true of one table is true of all.
    if !candidates.first().is_some_and(|candidate| candidate.table.has_hot_records()) {
        return Vec::new();
    }
    let hot = |(at, candidate): (usize, &TableCandidate<'_>)| {
        let (table, key) = (candidate.table, &pending[candidate.pending]);
        let is_missing = !table.is_block_resident(candidate.block?);
        let version = is_missing.then(|| table.hot_version(key.key, key.hash, seq)).flatten();
        Some((at, version?))
    };
    candidates.iter().enumerate().filter_map(hot).collect()
}

/// A data block of a table.
type BlockOf<'a> = (&'a Arc<Table>, usize);

/// Returns the blocks that are not in memory.
fn missing_blocks<'a>(candidates: &[TableCandidate<'a>]) -> Vec<BlockOf<'a>> {
    let mut missing: Vec<BlockOf<'a>> = Vec::new();
    for candidate in candidates {
        let Some(block) = candidate.block else { continue };
        let is_known = || missing.iter().any(|known| is_same(*known, (candidate.table, block)));
        if !candidate.table.is_block_resident(block) && !is_known() {
            missing.push((candidate.table, block));
        }
    }
    missing
}

fn is_same(one: BlockOf<'_>, other: BlockOf<'_>) -> bool {
    one.1 == other.1 && Arc::ptr_eq(one.0, other.0)
}

/// Returns true if a block was loaded. One that could not be cached was read again when it was searched.
fn was_loaded(missing: &[BlockOf<'_>], block: BlockOf<'_>) -> bool {
    missing.iter().any(|read| is_same(*read, block)) && block.0.is_block_resident(block.1)
}

/// Reads blocks, several concurrently. Errors are left to the lookups, so that an error for one key hides no
/// earlier answer.
fn load(missing: &[BlockOf<'_>]) -> Vec<BlockRef> {
    let Some((first, rest)) = missing.split_first() else { return Vec::new() };
    let threads = first.0.io_threads();
    if rest.is_empty() || !threads.helps() {
        let read = |(table, block): &BlockOf<'_>| threads.read_alone(|| table.block(*block));
        return missing.iter().filter_map(|block| read(block).ok()).collect();
    }
    if let Some(loaded) = load_together(missing.iter().copied()) {
        return loaded;
    }
    let start = |(table, block): &BlockOf<'_>| {
        let (table, block) = (Arc::clone(table), *block);
        threads.start(move || table.block(block))
    };
    let pending: Vec<_> = rest.iter().map(start).collect();
    let first = threads.read_alone(|| first.0.block(first.1)).ok();
    let rest = pending.into_iter().filter_map(|read| read.wait()?.ok());
    first.into_iter().chain(rest).collect()
}
