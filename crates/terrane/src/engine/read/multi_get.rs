//! Point lookups of many keys at once.
//!
//! A lookup waits for memory a few times, each time for an address that the time before gave. Many
//! lookups side by side wait together: each step is taken for all keys, and asks for the memory of
//! the next one.

use super::Reader;
use super::lookup::{InMemory, find_in_memtables, newest_deletion};
use crate::engine::tree::Tree;
use crate::error::{Error, Result};
use crate::stats::Counter;
use crate::table::{FoundVersion, Table, filter_hash};
use crate::types::{EntryKind, SeqNo};
use crate::value::Value;
use crate::version::OpenRun;

/// So many keys go side by side: what they ask for stays in the first-level cache.
const KEYS_AT_ONCE: usize = 64;

/// A key that was not found yet.
struct Wanted<'a> {
    key: &'a [u8],
    /// Its place among the answers.
    at: usize,
    hash: u64,
}

/// A key in a table that may hold it.
struct Candidate<'a> {
    /// Its place among those wanted.
    wanted: usize,
    table: &'a Table,
    /// The newest range tombstone of the table that covers it; 0 if there is none.
    deleted: SeqNo,
    /// The block to look into; `None` if there is none.
    block: Option<usize>,
}

impl Reader {
    /// The values of several keys as of `seq`, or now; in the order of the keys.
    pub(crate) fn multi_get<K: AsRef<[u8]>>(
        &self,
        tree: &Tree,
        keys: &[K],
        seq: Option<SeqNo>,
    ) -> Result<Vec<Option<Value>>> {
        self.context.health.check_open()?;
        // Where versions may be overwritten in place, the one of the last key must still be there
        // when the others were found.
        let held = (seq.is_none() && tree.state().forgets()).then(|| self.pipeline.snapshot());
        let seq = seq.or(held.as_ref().map(|held| held.seq));
        // The state first: then nothing that is visible can have left it.
        let state = tree.state();
        if seq.is_none() && state.forgets() {
            // It was given such a memtable just now.
            return self.multi_get(tree, keys, seq);
        }
        let seq = seq.unwrap_or_else(|| self.pipeline.visible());
        self.context.counters.add(Counter::Gets, keys.len() as u64);
        let mut answers = vec![None; keys.len()];
        for (chunk, answers) in keys.chunks(KEYS_AT_ONCE).zip(answers.chunks_mut(KEYS_AT_ONCE)) {
            let mut wanted = Vec::with_capacity(chunk.len());
            for (at, key) in chunk.iter().enumerate() {
                let key = key.as_ref();
                match find_in_memtables(&state, key, seq) {
                    InMemory::Decided(found) => answers[at] = found.and_then(value_of),
                    InMemory::Open => wanted.push(Wanted { key, at, hash: filter_hash(key) }),
                    InMemory::Overwritten => {
                        return Err(Error::internal("a version that is held was overwritten"));
                    }
                }
            }
            for run in state.version.runs() {
                if wanted.is_empty() {
                    break;
                }
                self.find_in_run(run, seq, &mut wanted, answers)?;
            }
        }
        let found = answers.iter().filter(|answer| answer.is_some()).count() as u64;
        self.context.counters.add(Counter::GetsFound, found);
        Ok(answers)
    }

    /// Answers the keys that the run decides on, and leaves the others wanted.
    fn find_in_run(
        &self,
        run: &OpenRun,
        seq: SeqNo,
        wanted: &mut Vec<Wanted<'_>>,
        answers: &mut [Option<Value>],
    ) -> Result<()> {
        let mut candidates = Vec::with_capacity(wanted.len());
        for (index, key) in wanted.iter().enumerate() {
            let Some(table) = run.table_for(key.key) else { continue };
            let info = table.info();
            if seq < info.smallest_seq || *key.key < *info.range.start {
                continue;
            }
            let deleted = newest_deletion(table, key.key, seq)?;
            table.prefetch_filter(key.hash)?;
            candidates.push(Candidate { wanted: index, table, deleted, block: None });
        }
        for candidate in &mut candidates {
            let key = &wanted[candidate.wanted];
            if candidate.table.may_contain(key.hash)? {
                candidate.block = Some(candidate.table.prefetch_block(key.key)?);
            }
        }
        for candidate in &candidates {
            if let Some(block) = candidate.block {
                candidate.table.prefetch_entry(block, wanted[candidate.wanted].key, seq)?;
            }
        }
        let mut is_decided = vec![false; wanted.len()];
        for candidate in candidates {
            let Candidate { wanted: index, table, deleted, block } = candidate;
            let key = &wanted[index];
            let found = match block {
                Some(_) => table.get_from(block, key.key, seq)?,
                None => None,
            };
            if block.is_some() && found.is_none() {
                self.context.counters.add(Counter::FilterFalsePositives, 1);
            }
            is_decided[index] = found.is_some() || deleted > 0;
            answers[key.at] = found.filter(|found| found.seq > deleted).and_then(value_of);
        }
        let mut decided = is_decided.into_iter();
        wanted.retain(|_| !decided.next().unwrap_or(false));
        Ok(())
    }
}

fn value_of(found: FoundVersion) -> Option<Value> {
    (found.kind == EntryKind::Value).then_some(found.value)
}
