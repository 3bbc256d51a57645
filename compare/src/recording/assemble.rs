//! Makes a trace of version edits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use terrane_policy::recorded::{Event, SystemCompaction, Trace};
use terrane_policy::{KeyRange, TableId, TableInfo};

use super::manifest::{Edit, NewTable};

/// What else is known of a run than its edits.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// The numbers of flushes after which the system was at rest.
    pub(super) rests: BTreeSet<usize>,
    /// Entries and tombstones of tables.
    pub(super) entries: BTreeMap<u64, (u64, u64)>,
    /// Reasons of compactions, by their inputs.
    pub(super) reasons: BTreeMap<BTreeSet<u64>, String>,
    /// For each edit with tables, the level that takes compactions of level 0 after it; empty if that
    /// is always level 1.
    pub(super) bases: Vec<usize>,
    /// Whether sequence numbers of tables are part of the trace.
    pub(super) has_sequence: bool,
}

/// Returns the trace of a run from an empty tree.
pub(super) fn events(edits: &[Edit], facts: &Facts) -> Trace {
    let mut trace = Trace { base: facts.bases.first().copied().unwrap_or(1), ..Trace::default() };
    let mut base = trace.base;
    let mut flushes = 0;
    for (index, edit) in in_order_of_decisions(edits).into_iter().enumerate() {
        if edit.deleted.is_empty() {
            if facts.rests.contains(&flushes) {
                trace.events.push(Event::Rest);
            }
            flushes += edit.added.len();
            let flushed = edit.added.iter();
            trace.events.extend(
                flushed
                    .map(|(level, one)| Event::Flush { level: *level, table: table(one, facts) }),
            );
        } else {
            trace.events.push(Event::Compaction(compaction(edit, facts)));
        }
        let next = facts.bases.get(index).copied().unwrap_or(base);
        if next != base {
            base = next;
            trace.events.push(Event::Base(base));
        }
    }
    trace
}

/// The edits with tables. An edit is written when a job ends; if a flush ended while a compaction ran,
/// the compaction was chosen before, and made its first table before the flush made its own.
fn in_order_of_decisions(edits: &[Edit]) -> Vec<&Edit> {
    let mut ordered: Vec<&Edit> = Vec::new();
    for edit in edits.iter().filter(|edit| !edit.added.is_empty() || !edit.deleted.is_empty()) {
        let deleted = |number: u64| edit.deleted.iter().any(|(_, other)| *other == number);
        let made = edit.added.iter().map(|(_, table)| table.number).filter(|new| !deleted(*new));
        let first = made.min().filter(|_| !edit.deleted.is_empty());
        let began_before = |other: &&Edit| {
            let mut flushed = other.added.iter().map(|(_, table)| table.number);
            other.deleted.is_empty() && flushed.any(|number| first.is_some_and(|one| one < number))
        };
        let at = ordered.iter().rposition(|other| !began_before(other)).map_or(0, |last| last + 1);
        ordered.insert(at, edit);
    }
    ordered
}

fn compaction(edit: &Edit, facts: &Facts) -> SystemCompaction {
    let mut inputs: BTreeMap<usize, Vec<TableId>> = BTreeMap::new();
    for (level, number) in &edit.deleted {
        inputs.entry(*level).or_default().push(TableId(*number));
    }
    let deepest = inputs.keys().next_back().copied().unwrap_or(0);
    let level = edit.added.first().map_or(deepest, |(level, _)| *level);
    let taken: BTreeSet<u64> = edit.deleted.iter().map(|(_, number)| *number).collect();
    let made: BTreeSet<u64> = edit.added.iter().map(|(_, table)| table.number).collect();
    let outputs = edit.added.iter().map(|(_, one)| table(one, facts)).collect();
    SystemCompaction {
        reason: facts.reasons.get(&taken).cloned().unwrap_or_else(|| "-".to_owned()),
        inputs: inputs.into_iter().collect(),
        level,
        outputs: (taken != made).then_some(outputs),
    }
}

fn table(one: &NewTable, facts: &Facts) -> Arc<TableInfo> {
    let range = KeyRange::inclusive(&one.smallest, &one.largest);
    let mut table = TableInfo::new(one.number, range, one.bytes);
    if facts.has_sequence {
        (table.smallest_seq, table.largest_seq) = one.sequence;
    }
    // Entries matter only where there are tombstones.
    if let Some((entries, tombstones)) = facts.entries.get(&one.number) {
        (table.entries, table.tombstones) = (*entries, *tombstones);
    }
    Arc::new(table)
}
