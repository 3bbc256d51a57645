//! Finds tables that can be dropped unread, because range tombstones hide them from all readers.
//!
//! Let a table contain sequence numbers from `smallest` to `largest`, and let newer range
//! tombstones, each with a sequence number above `largest` and at most `deleted`, cover its whole
//! key range. A reader at or after `deleted` sees no entry of the table, and neither does a reader
//! before `smallest`. If no snapshot lies in between, dropping the table changes no result. No
//! snapshot can be taken there later because `deleted` is already visible. Tombstones in the table
//! can be dropped with it because the range tombstones also hide the older versions that they hide;
//! merges keep range tombstones as long as an older table overlaps them (rule 6 of
//! [`super::DropRules`]).
//!
//! The functions are pure: from tables and tombstones they compute tables.

use std::sync::Arc;

use terrane_memtable::Fragment;
use terrane_policy::{TableId, TableInfo, TreeShape};

use crate::base::error::Result;
use crate::base::types::SeqNo;

/// A table that newer range tombstones cover entirely.
#[derive(Debug, Clone)]
pub(crate) struct CoveredTable {
    pub(crate) id: TableId,
    smallest_seq: SeqNo,
    /// Readers at or after this sequence number see no entry of the table.
    deleted: SeqNo,
}

impl CoveredTable {
    /// Returns true if none of `snapshots` sees an entry of the table.
    pub(crate) fn is_unseen(&self, snapshots: &[SeqNo]) -> bool {
        !snapshots.iter().any(|seq| (self.smallest_seq..self.deleted).contains(seq))
    }
}

/// Returns the table as a [`CoveredTable`] if the fragments in `sets` cover it. The fragments of
/// each set are in key order and do not overlap.
pub(crate) fn covered(sets: &[Vec<&Fragment>], table: &TableInfo) -> Option<CoveredTable> {
    let mut at: &[u8] = &table.range.start;
    let mut deleted = 0;
    loop {
        // Choose the oldest sufficient tombstone, because the fewest snapshots precede it.
        let found = sets.iter().filter_map(|set| newer_at(set, at, table.largest_seq));
        let (seq, fragment) = found.min_by_key(|(seq, _)| *seq)?;
        deleted = deleted.max(seq);
        let Some(end) = fragment.end.as_deref() else { break };
        if table.range.end.as_deref().is_some_and(|wanted| wanted <= end) {
            break;
        }
        at = end;
    }
    Some(CoveredTable { id: table.id, smallest_seq: table.smallest_seq, deleted })
}

/// Returns the fragment that contains `key`, and its oldest tombstone newer than `seq`.
fn newer_at<'a>(set: &[&'a Fragment], key: &[u8], seq: SeqNo) -> Option<(SeqNo, &'a Fragment)> {
    let after = set.partition_point(|fragment| *fragment.start <= *key);
    let fragment = after.checked_sub(1).and_then(|at| set.get(at))?;
    let oldest = fragment.seqs.iter().rev().find(|&&deleted| deleted > seq)?;
    fragment.contains(key).then_some((*oldest, fragment))
}

/// Returns all tables that range tombstones in newer runs cover. `fragments_of` returns the
/// fragments of a table.
///
/// # Errors
/// Returns the error of `fragments_of`.
pub(crate) fn covered_tables<'a>(
    shape: &TreeShape,
    mut fragments_of: impl FnMut(TableId) -> Result<Option<&'a Arc<[Fragment]>>>,
) -> Result<Vec<CoveredTable>> {
    let mut newer: Vec<Vec<&Fragment>> = Vec::new();
    let mut found = Vec::new();
    for run in shape.levels.iter().flat_map(|level| &level.runs) {
        if !newer.is_empty() {
            found.extend(run.tables.iter().filter_map(|table| covered(&newer, table)));
        }
        let mut set = Vec::new();
        for table in run.tables.iter().filter(|table| table.range_tombstones > 0) {
            set.extend(fragments_of(table.id)?.into_iter().flat_map(|fragments| fragments.iter()));
        }
        if !set.is_empty() {
            newer.push(set);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn fragment(start: &str, end: &str, seqs: &[u64]) -> Fragment {
        let end = (!end.is_empty()).then(|| end.as_bytes().into());
        Fragment { start: start.as_bytes().into(), end, seqs: seqs.to_vec() }
    }

    /// Returns the unseen covered tables of a shape in which table N contains the sequence numbers
    /// 10 N to 10 N + 9, and the given tables contain range tombstones.
    fn covered_of(
        shape: &str,
        tombstones: &[(u64, Vec<Fragment>)],
        snapshots: &[SeqNo],
    ) -> Vec<u64> {
        let mut shape: TreeShape = shape.parse().unwrap();
        let all: BTreeMap<u64, Arc<[Fragment]>> =
            tombstones.iter().map(|(id, set)| (*id, set.clone().into())).collect();
        for run in shape.levels.iter_mut().flat_map(|level| &mut level.runs) {
            for table in &mut run.tables {
                let info = Arc::make_mut(table);
                (info.smallest_seq, info.largest_seq) = (info.id.0 * 10, info.id.0 * 10 + 9);
                info.range_tombstones = all.get(&info.id.0).map_or(0, |set| set.len() as u64);
            }
        }
        let found = covered_tables(&shape, |id| Ok(all.get(&id.0))).unwrap();
        let unseen = found.iter().filter(|table| table.is_unseen(snapshots));
        unseen.map(|table| table.id.0).collect()
    }

    const TREE: &str = "L0 r3: 5=a..=x:1\nL1 r2: 2=b..=d:1 3=e..=g:1 4=p..=q:1\nL2 r1: 1=a..=h:1";

    #[test]
    fn tables_within_one_newer_tombstone_are_covered() {
        let all = |set: Vec<Fragment>| covered_of(TREE, &[(5, set)], &[]);
        assert_eq!(all(vec![fragment("a", "", &[55])]), [2, 3, 4, 1]);
        assert_eq!(all(vec![fragment("a", "q", &[55])]), [2, 3, 1]);
        assert_eq!(all(vec![fragment("a", "q\0", &[55])]), [2, 3, 4, 1]);
        assert_eq!(all(vec![fragment("b\0", "z", &[55])]), [3, 4]);
        // A table covers neither itself nor other tables of its run.
        assert_eq!(covered_of(TREE, &[(3, vec![fragment("a", "z", &[55])])], &[]), [1]);
    }

    #[test]
    fn tombstones_that_touch_cover_together_and_gaps_do_not() {
        let touching = vec![fragment("a", "c", &[55]), fragment("c", "f", &[52])];
        assert_eq!(covered_of(TREE, &[(5, touching.clone())], &[]), [2]);
        let more = vec![fragment("f", "z", &[31])];
        // Tombstones of two runs combine; a tombstone that is not newer than the whole table does
        // not count.
        assert_eq!(covered_of(TREE, &[(5, touching), (3, more)], &[]), [2, 1]);
        let gap = vec![fragment("a", "c", &[55]), fragment("c\0", "z", &[55])];
        assert_eq!(covered_of(TREE, &[(5, gap)], &[]), [3, 4]);
    }

    #[test]
    fn only_newer_tombstones_count() {
        assert_eq!(covered_of(TREE, &[(5, vec![fragment("a", "z", &[39])])], &[]), [2, 1]);
        assert_eq!(covered_of(TREE, &[(5, vec![fragment("a", "z", &[40])])], &[]), [2, 3, 1]);
    }

    #[test]
    fn a_snapshot_in_between_keeps_a_table() {
        let set = [(5, vec![fragment("a", "z", &[55, 40])])];
        let at = |snapshots: &[u64]| covered_of(TREE, &set, snapshots);
        assert_eq!(at(&[9, 55, 99]), [2, 3, 4, 1]);
        // Only tombstone 55 covers table 4; tombstone 40 already covers the others.
        assert_eq!(at(&[54]), [2, 3, 1]);
        assert_eq!(at(&[40]), [2, 3, 1]);
        assert_eq!(at(&[39]), [4]);
        assert_eq!(at(&[25]), [3, 4]);
        assert_eq!(at(&[10]), [2, 3, 4]);
    }
}
