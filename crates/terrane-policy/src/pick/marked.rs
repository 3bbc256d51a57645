//! Tables that are marked for compaction because of their contents, their age, or their reads.

use std::sync::Arc;

use super::candidate::{CompactionCandidate, Extent, PROMISED, ranked};
use super::context::PickContext;
use crate::compaction::Reason;
use crate::design::PerLevel;
use crate::shape::{RunId, TableInfo, TreeShape};
use crate::strategy::trigger::TombstoneTtl;
use crate::strategy::{Scope, TableContext, Trigger};

/// A table that a trigger marks, with the measured value and the threshold.
#[derive(Debug, Clone)]
pub(super) struct MarkedTable {
    pub(super) table: Arc<TableInfo>,
    pub(super) measure: (u64, u64),
    /// True if no table below this one shares keys with it.
    pub(super) is_lowest: bool,
}

pub(super) fn candidates(input: &PickContext<'_>) -> Vec<CompactionCandidate> {
    let mut found = Vec::new();
    for level in 0..input.shape.levels.len() {
        if let Some(micros) = input.tombstone_micros() {
            let ttl = TombstoneTtl(PerLevel::all(micros)).into();
            of_trigger(input, level, PROMISED, &ttl, &mut found);
        }
        for (rank, trigger) in ranked(input, level) {
            of_trigger(input, level, rank, trigger, &mut found);
        }
    }
    found
}

fn of_trigger(
    input: &PickContext<'_>,
    level: usize,
    rank: usize,
    trigger: &Trigger,
    found: &mut Vec<CompactionCandidate>,
) {
    if !trigger.has_scope(Scope::Table) {
        return;
    }
    let mut marks = marks(input, level, trigger, &|measured, threshold| measured >= threshold);
    let score = |mark: &MarkedTable| mark.measure.0 as f64 / mark.measure.1.max(1) as f64;
    marks.sort_by(|a, b| score(b).total_cmp(&score(a)));
    let is_last = level == input.last_level();
    let (stay, move_on): (Vec<MarkedTable>, Vec<MarkedTable>) =
        marks.into_iter().partition(|mark| is_last || mark.is_lowest);
    for (marks, is_in_place) in [(stay, true), (move_on, false)] {
        let Some(worst) = marks.first().map(|mark| mark.measure) else { continue };
        let tables = marks.into_iter().map(|mark| mark.table).collect();
        let extent = if is_in_place { Extent::InPlace(tables) } else { Extent::Marked(tables) };
        let mut one = CompactionCandidate::triggered(trigger.kind(), level, rank, worst, extent);
        if rank == PROMISED {
            let (age_micros, limit_micros) = worst;
            one.reason = Reason::Persistence { level, age_micros, limit_micros, movement: None };
        }
        found.push(one);
    }
}

/// Returns the tables of a level whose measured value and threshold satisfy `enough`, and that
/// would gain from a compaction.
pub(super) fn marks(
    input: &PickContext<'_>,
    level: usize,
    trigger: &Trigger,
    enough: &dyn Fn(u64, u64) -> bool,
) -> Vec<MarkedTable> {
    let strategy = &input.design.strategy;
    let deadlines = |times| strategy.tombstone_deadlines(times, input.last_level());
    let tombstone_deadline =
        trigger.rule().tombstone_times().map(|times| deadlines(times).get(level));
    let mut found = Vec::new();
    for run in &input.shape.level(level).runs {
        for table in &run.tables {
            let context = TableContext {
                level,
                table,
                now_micros: input.now_micros,
                oldest_snapshot_micros: input.oldest_snapshot_micros,
                reads: input.accesses.get(table.id).reads,
                tombstone_deadline,
            };
            let Some(measure) = trigger.rule().measure_table(&context) else { continue };
            if !enough(measure.0, measure.1) {
                continue;
            }
            let is_lowest = is_lowest(input.shape, level, run.id, table);
            if can_act(input, trigger, table, is_lowest) {
                found.push(MarkedTable { table: Arc::clone(table), measure, is_lowest });
            }
        }
    }
    found
}

/// Returns true if a compaction would achieve anything: there is older data to merge with, or a
/// tombstone to drop.
fn can_act(input: &PickContext<'_>, trigger: &Trigger, table: &TableInfo, is_lowest: bool) -> bool {
    let is_pinned = input.oldest_snapshot.is_some_and(|oldest| table.largest_seq > oldest);
    !is_lowest || trigger.kind().info().drops_tombstones && !is_pinned
}

/// Returns true if no older table shares keys with `table`.
fn is_lowest(shape: &TreeShape, level: usize, run: RunId, table: &TableInfo) -> bool {
    let own = shape.level(level).runs.iter().filter(|other| other.id < run);
    let deeper = shape.levels.iter().skip(level + 1).flat_map(|level| &level.runs);
    own.chain(deeper).all(|run| run.overlapping(&table.range).is_empty())
}
