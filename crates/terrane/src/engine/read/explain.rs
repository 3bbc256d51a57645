//! Explains a lookup: searches like `lookup`, and notes every step.

use terrane_memtable::{Lookup, Memtable};

use super::Reader;
use super::lookup::newest_deletion;
use crate::base::error::Result;
use crate::base::lookup_path::{LookupAnswer, LookupPath, LookupPlace, LookupStep};
use crate::base::types::{EntryKind, SeqNo};
use crate::engine::tree::{Tree, TreeState};
use crate::engine::version::OpenRun;
use crate::files::table::{FoundVersion, filter_hash};
use crate::files::value::Value;
use crate::files::value_pointer::ValuePointer;

/// The answer of a memtable or a run, and the version that it found.
type Answer = (LookupAnswer, Option<FoundVersion>);

impl Reader {
    /// Looks up a key, and returns the path of the lookup.
    pub(crate) fn explain(&self, tree: &Tree, keyspace: &str, key: &[u8]) -> Result<LookupPath> {
        self.context.health.check_open()?;
        let held = self.pipeline.snapshot();
        let state = tree.state();
        let mut path =
            LookupPath { keyspace: keyspace.to_owned(), steps: Vec::new(), has_value: false };
        let mut newest = None;
        for step in steps(&state, key, held.seq) {
            let (place, (answer, found)) = step?;
            path.steps.push(LookupStep { place, answer });
            if answer.decides() {
                newest = found;
                break;
            }
        }
        let time = self.time(None);
        path.has_value = newest.is_some_and(|found| time.is_value(found.kind, &found.value));
        Ok(path)
    }
}

/// Searches everything that a lookup may consult, lazily, step by step.
fn steps<'a>(
    state: &'a TreeState,
    key: &'a [u8],
    seq: SeqNo,
) -> impl Iterator<Item = Result<(LookupPlace, Answer)>> + 'a {
    let memtables = state.memtables().enumerate().map(move |(number, memtable)| {
        let is_active = number == 0;
        let place =
            if is_active { LookupPlace::ActiveMemtable } else { LookupPlace::ImmutableMemtable };
        Ok((place, of_memtable(memtable, key, seq)))
    });
    let levels = state.version.shape().levels.iter().enumerate();
    let positions =
        levels.flat_map(|(level, contents)| (0..contents.runs.len()).map(move |run| (level, run)));
    let runs = positions.zip(state.version.runs()).map(move |((level, run), contents)| {
        let table = contents.table_for(key).map(|table| table.info().id.0);
        Ok((LookupPlace::Run { level, run, table }, of_run(contents, key, seq)?))
    });
    memtables.chain(runs)
}

fn of_memtable(memtable: &std::sync::Arc<Memtable>, key: &[u8], seq: SeqNo) -> Answer {
    let deleted = memtable.range_tombstones().newest_covering(key, seq).unwrap_or(0);
    let found = match memtable.look_up_held(key, seq) {
        Lookup::Found(seq, kind, value) => {
            Some(FoundVersion { seq, kind, value: Value::pinned(value) })
        }
        // A held version is not overwritten.
        Lookup::Absent | Lookup::Overwritten => None,
    };
    newest(found, deleted, LookupAnswer::Absent)
}

fn of_run(run: &OpenRun, key: &[u8], seq: SeqNo) -> Result<Answer> {
    let table = run.table_for(key).filter(|table| *key >= *table.info().range.start);
    let Some(table) = table else { return Ok((LookupAnswer::OutOfRange, None)) };
    let deleted = newest_deletion(table, key, seq)?;
    if !table.may_have(key, filter_hash(key), seq)? {
        return Ok(newest(None, deleted, LookupAnswer::Filtered));
    }
    Ok(newest(table.get(key, seq)?, deleted, LookupAnswer::Absent))
}

/// Returns whichever is newer: a version, or a range tombstone in the same memtable or table.
fn newest(found: Option<FoundVersion>, deleted: SeqNo, without: LookupAnswer) -> Answer {
    match found.filter(|found| found.seq > deleted) {
        None if deleted > 0 => (LookupAnswer::RangeTombstone { sequence_number: deleted }, None),
        None => (without, None),
        Some(found) => {
            let kind = match found.kind {
                EntryKind::Tombstone => "delete",
                EntryKind::Operand => "merge",
                EntryKind::Value | EntryKind::Separated | EntryKind::Expiring => "put",
            };
            let value_bytes = match found.kind {
                EntryKind::Separated => {
                    ValuePointer::decode(&found.value).map_or(0, |pointer| pointer.len.into())
                }
                _ => found.value.len() as u64,
            };
            (LookupAnswer::Version { sequence_number: found.seq, kind, value_bytes }, Some(found))
        }
    }
}
