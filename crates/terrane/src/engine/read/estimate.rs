//! Estimates how many keys a range has, and how many bytes it takes.
//!
//! Every memtable and every table contributes the share of its entries that lies in the range. For
//! a table, this is the share of its data blocks, taken from its index. For a memtable, entries are
//! counted one by one up to a limit, and beyond it the share is interpolated between the memtable's
//! first and last keys as if keys were spread evenly. An entry counts as one key, and a tombstone
//! subtracts one. The parts of a table that newer range tombstones delete contribute no keys, but
//! do contribute bytes.

use std::sync::Arc;

use terrane_memtable::{Fragment, Memtable, RangeTombstones, head_of};

use super::Reader;
use crate::base::error::Result;
use crate::base::types::{EntryKind, MAX_SEQ, SeqNo};
use crate::engine::tree::Tree;
use crate::files::table::Table;

/// The number of entries of a memtable that are counted one by one.
const COUNTED_MAX: usize = 4096;

/// An estimate of the contents of a range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) keys: u64,
    pub(crate) bytes: u64,
}

/// A range of keys: its first key, and the first key after it, if any.
type Range<'a> = (&'a [u8], Option<&'a [u8]>);

impl Reader {
    /// Estimates the contents of a tree from `start` to the exclusive `end`.
    pub(crate) fn estimate(
        &self,
        tree: &Tree,
        start: &[u8],
        end: Option<&[u8]>,
    ) -> Result<Estimate> {
        self.context.health.check_open()?;
        if end.is_some_and(|end| end <= start) {
            return Ok(Estimate::default());
        }
        let state = tree.state_arc();
        let deleted = RangeTombstones::new();
        let of_memtables =
            state.memtables().flat_map(|memtable| memtable.range_tombstones().fragments());
        of_memtables.for_each(|fragment| deleted.add(&fragment));
        for table in state.version.tables().values().filter(|table| has_tombstones(table)) {
            table.fragments()?.iter().for_each(|fragment| deleted.add(fragment));
        }
        let fragments = deleted.fragments();
        let (mut keys, mut bytes) = (0.0, 0.0);
        for (memtable, pointed_bytes) in state.memtables_with_pointed_bytes() {
            if !memtable.is_empty() {
                let found = sample(memtable, (start, end), &deleted);
                keys += found.keys;
                bytes += found.share * (memtable.memory().data_bytes as u64 + pointed_bytes) as f64;
            }
        }
        for table in state.version.tables().values() {
            let info = table.info();
            let share = table.share_of((start, end))?;
            bytes += share * (info.size_bytes + info.value_bytes()) as f64;
            let mut live = 0.0;
            for part in live_parts((start, end), &fragments, info.largest_seq) {
                live += table.share_of(part)?;
            }
            keys += live * (info.entries as f64 - 2.0 * info.tombstones as f64);
        }
        Ok(Estimate { keys: keys.max(0.0).round() as u64, bytes: bytes.round() as u64 })
    }
}

fn has_tombstones(table: &Arc<Table>) -> bool {
    table.info().range_tombstones > 0
}

/// Returns the parts of a range in which `fragments` delete no version written up to `seq`.
fn live_parts<'a>(
    (start, end): Range<'a>,
    fragments: &'a [Fragment],
    seq: SeqNo,
) -> Vec<Range<'a>> {
    let ends_by = |fragment: &Fragment| fragment.end.as_deref().is_some_and(|after| after <= start);
    let from = fragments.partition_point(ends_by);
    let mut parts = Vec::new();
    let mut at = start;
    for fragment in fragments.get(from..).unwrap_or_default() {
        if end.is_some_and(|end| *fragment.start >= *end) {
            break;
        }
        if fragment.seqs.first().is_none_or(|&newest| newest <= seq) {
            continue;
        }
        if *fragment.start > *at {
            parts.push((at, Some(&*fragment.start)));
        }
        match fragment.end.as_deref() {
            Some(after) => at = after,
            None => return parts,
        }
    }
    if end.is_none_or(|end| at < end) {
        parts.push((at, end));
    }
    parts
}

/// The contribution of a memtable to a range.
struct Sample {
    /// The estimated share of the memtable's entries that lies in the range.
    share: f64,
    /// The estimated number of keys in the range, minus the keys that the memtable deletes
    /// elsewhere.
    keys: f64,
}

/// Estimates the contribution of a memtable to a range.
fn sample(memtable: &Arc<Memtable>, range: Range<'_>, deleted: &RangeTombstones) -> Sample {
    let (start, end) = range;
    let entries = memtable.len().max(1) as f64;
    let mut cursor = memtable.cursor();
    cursor.limit_to(None, end);
    cursor.seek(start, MAX_SEQ);
    let (mut counted, mut keys, mut has_ended) = (0_usize, 0.0, true);
    let mut last: Option<Vec<u8>> = None;
    while let Some(entry) = cursor.entry() {
        if end.is_some_and(|end| entry.key >= end) {
            break;
        }
        if counted == COUNTED_MAX {
            has_ended = false;
            break;
        }
        counted += 1;
        if last.as_deref() != Some(entry.key) {
            let newest = deleted.newest_covering(entry.key, MAX_SEQ);
            if newest.is_none_or(|newest| newest < entry.seq) {
                keys += if entry.kind == EntryKind::Tombstone { -1.0 } else { 1.0 };
            }
            last = Some(entry.key.to_vec());
        }
        cursor.next();
    }
    let share = counted as f64 / entries;
    if has_ended {
        return Sample { share, keys };
    }
    let share = interpolated(memtable, range).max(share).min(1.0);
    Sample { share, keys: keys * share * entries / counted as f64 }
}

/// Returns the share that a range takes of the span of a memtable's keys.
fn interpolated(memtable: &Arc<Memtable>, (start, end): Range<'_>) -> f64 {
    let mut cursor = memtable.cursor();
    cursor.seek_first();
    let first = cursor.entry().map(|entry| entry.key.to_vec()).unwrap_or_default();
    cursor.seek_last();
    let last = cursor.entry().map(|entry| entry.key.to_vec()).unwrap_or_default();
    let shared = first.iter().zip(&last).take_while(|(a, b)| a == b).count();
    let place = |key: &[u8]| {
        let key = key.clamp(&first[..], &last[..]);
        head_of(key.get(shared..).unwrap_or_default()) as f64
    };
    let span = place(&last) - place(&first);
    if span <= 0.0 {
        return 1.0;
    }
    (end.map_or(place(&last), place) - place(start)) / span
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fragment(start: &str, end: &str, seq: SeqNo) -> Fragment {
        let end = (!end.is_empty()).then(|| end.as_bytes().into());
        Fragment { start: start.as_bytes().into(), end, seqs: vec![seq] }
    }

    fn live(range: (&str, &str), fragments: &[Fragment]) -> String {
        let end = (!range.1.is_empty()).then_some(range.1.as_bytes());
        let parts = live_parts((range.0.as_bytes(), end), fragments, 10);
        let text = |key: &[u8]| String::from_utf8(key.to_vec()).unwrap();
        let parts = parts
            .iter()
            .map(|(start, end)| format!("{}-{}", text(start), end.map(text).unwrap_or_default()));
        parts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn live_parts_are_between_newer_tombstones() {
        assert_eq!(live(("a", "z"), &[]), "a-z");
        let some = [fragment("b", "d", 20), fragment("d", "f", 5), fragment("m", "", 11)];
        assert_eq!(live(("", ""), &some), "-b d-m");
        assert_eq!(live(("c", "e"), &some), "d-e");
        assert_eq!(live(("b", "c"), &some), "");
        assert_eq!(live(("e", "p"), &some), "e-m");
        assert_eq!(live(("n", ""), &some), "");
        assert_eq!(live(("", ""), &[fragment("", "", 10)]), "-");
    }
}
