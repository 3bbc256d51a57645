//! Deadlines: when time alone makes a compaction due.

use super::collect;
use super::context::PickContext;
use super::marked::marks;
use crate::design::PerLevel;
use crate::shape::TableInfo;
use crate::strategy::trigger::TombstoneTtl;
use crate::strategy::{Scope, Trigger};

/// Returns the next time at which a table or a tombstone becomes too old for its level, or a dead
/// value too old for its file, in microseconds since the Unix epoch. Deadlines in the past do not
/// count.
pub fn next_due_micros(input: &PickContext<'_>) -> Option<u64> {
    let looks_at_time =
        |trigger: &&Trigger| trigger.has_scope(Scope::Table) && trigger.kind().info().looks_at_time;
    let promised: Option<Trigger> =
        input.tombstone_micros().map(|micros| TombstoneTtl(PerLevel::all(micros)).into());
    let mut due = collect::next_due_micros(input);
    for level in 0..input.shape.levels.len() {
        let triggers = input.design.strategy.triggers.at(level).iter();
        for trigger in triggers.chain(&promised).filter(looks_at_time) {
            for mark in marks(input, level, trigger, &|age, threshold| age < threshold) {
                let left = mark.measure.1 - mark.measure.0;
                let at = begin_of(&mark.table, trigger, input).saturating_add(left);
                due = Some(due.map_or(at, |due| due.min(at)));
            }
        }
    }
    due
}

/// Returns the time from which the rest of a deadline counts: now, or when the first entry of a
/// table expires.
fn begin_of(table: &TableInfo, trigger: &Trigger, input: &PickContext<'_>) -> u64 {
    let has_deadline = trigger.rule().tombstone_times().is_some();
    let dead_since = table.dead_since(input.oldest_snapshot_micros).filter(|_| has_deadline);
    dead_since.map_or(input.now_micros, |since| since.max(input.now_micros))
}
