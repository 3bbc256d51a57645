//! Point lookups that read no file, for callers that must not wait.

use super::Reader;
use super::lookup::{MemoryAnswer, ReadAt, newest_deletion, search_memtables, value_of};
use crate::base::error::Result;
use crate::base::stats::{Counter, Sample, Timed};
use crate::base::types::{EntryKind, SeqNo};
use crate::engine::tree::{Tree, TreeState};
use crate::files::table::{FoundVersion, filter_hash};
use crate::files::value::Value;

impl Reader {
    /// Returns what [`Reader::get`] would return now, if memtables and blocks in memory decide it.
    /// Otherwise returns `None`, and counts only the uses of filters and blocks.
    pub(crate) fn get_resident(&self, tree: &Tree, key: &[u8]) -> Result<Option<Option<Value>>> {
        let sample = Sample::begin();
        self.context.health.check_open()?;
        // The state is loaded before the sequence number, so that it contains everything that is
        // visible at that number.
        let state = tree.state();
        let at = ReadAt::Visible(state.readable(self.pipeline.visible()));
        let (found, is_in_memtables) = match search_memtables(&state, key, at) {
            MemoryAnswer::Decided(found) => (found, true),
            MemoryAnswer::Overwritten => return Ok(None),
            MemoryAnswer::Undecided => match find_in_tables(&state, key, at.seq()) {
                Some(found) => (found, false),
                None => return Ok(None),
            },
        };
        let kind = found.as_ref().map(|found| found.kind);
        if matches!(kind, Some(EntryKind::Separated | EntryKind::Operand)) {
            return Ok(None);
        }
        let value = value_of(&state, key, found, &self.time(None))?;
        self.context.counters.add(Counter::Gets, 1);
        if state.usage.lookup(is_in_memtables) {
            self.context.attention.request_memtable_check();
            self.context.signals.wake();
        }
        self.count_found(value.is_some());
        sample.end(&self.context.counters.durations, Timed::Get);
        Ok(Some(value))
    }
}

/// Searches the runs from new to old; `None` if a block is not in memory.
fn find_in_tables(state: &TreeState, key: &[u8], seq: SeqNo) -> Option<Option<FoundVersion>> {
    let hash = filter_hash(key);
    for table in state.version.runs().iter().filter_map(|run| run.table_for(key)) {
        let found = table.get_resident(key, hash, seq)?;
        // The table is open, so its range tombstones are in memory.
        let deleted = newest_deletion(table, key, seq).ok()?;
        if found.is_some() || deleted > 0 {
            return Some(found.filter(|found| found.seq > deleted));
        }
    }
    Some(None)
}
