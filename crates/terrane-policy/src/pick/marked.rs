//! Tables that are marked for compaction by what they hold, how old they are, or how they are read.

use std::sync::Arc;

use super::candidate::{Candidate, Extent, ranked};
use super::input::PickInput;
use crate::design::PerLevel;
use crate::shape::{RunId, TableInfo, TreeShape};
use crate::strategy::{Trigger, TriggerKind};

/// Reads that a table has free: LevelDB's least number of seeks before a compaction.
const READS_FREE: u64 = 100;

/// A table that a trigger marks, with the value that was measured and the threshold.
#[derive(Debug, Clone)]
pub(super) struct Mark {
    pub(super) table: Arc<TableInfo>,
    pub(super) measure: (u64, u64),
    /// Nothing below the table shares keys with it.
    pub(super) is_lowest: bool,
}

pub(super) fn candidates(input: &PickInput<'_>) -> Vec<Candidate> {
    let mut found = Vec::new();
    for level in 0..input.shape.levels.len() {
        if let Some(micros) = input.delete_persistence_micros {
            let ttl = Trigger::TombstoneTtl(PerLevel::all(micros));
            of_trigger(input, level, 0, &ttl, &mut found);
        }
        for (rank, trigger) in ranked(input, level) {
            of_trigger(input, level, rank, trigger, &mut found);
        }
    }
    found
}

fn of_trigger(
    input: &PickInput<'_>,
    level: usize,
    rank: usize,
    trigger: &Trigger,
    found: &mut Vec<Candidate>,
) {
    if trigger.kind().is_load() || trigger.kind().is_size_tiered() {
        return;
    }
    let mut marks = marks(input, level, trigger, &|measured, threshold| measured >= threshold);
    let score = |mark: &Mark| mark.measure.0 as f64 / mark.measure.1.max(1) as f64;
    marks.sort_by(|a, b| score(b).total_cmp(&score(a)));
    let is_last = level == input.last_level();
    let (stay, move_on): (Vec<Mark>, Vec<Mark>) =
        marks.into_iter().partition(|mark| is_last || mark.is_lowest);
    for (marks, is_in_place) in [(stay, true), (move_on, false)] {
        let Some(worst) = marks.first().map(|mark| mark.measure) else { continue };
        let tables = marks.into_iter().map(|mark| mark.table).collect();
        let extent = if is_in_place { Extent::InPlace(tables) } else { Extent::Marked(tables) };
        found.push(Candidate::triggered(trigger.kind(), level, rank, worst, extent));
    }
}

/// The tables of a level whose measured value is `enough` against their threshold, and for which
/// something can be done.
pub(super) fn marks(
    input: &PickInput<'_>,
    level: usize,
    trigger: &Trigger,
    enough: &dyn Fn(u64, u64) -> bool,
) -> Vec<Mark> {
    let deadlines = match trigger {
        Trigger::TombstoneTtl(times) => {
            input.design.strategy.tombstone_deadlines(times, input.last_level())
        }
        _ => PerLevel::all(0),
    };
    let mut found = Vec::new();
    for run in &input.shape.level(level).runs {
        for table in &run.tables {
            let Some(measure) = measure(input, level, trigger, &deadlines, table) else { continue };
            if !enough(measure.0, measure.1) {
                continue;
            }
            let is_lowest = is_lowest(input.shape, level, run.id, table);
            if can_act(input, trigger.kind(), table, is_lowest) {
                found.push(Mark { table: Arc::clone(table), measure, is_lowest });
            }
        }
    }
    found
}

fn measure(
    input: &PickInput<'_>,
    level: usize,
    trigger: &Trigger,
    deadlines: &PerLevel<u64>,
    table: &TableInfo,
) -> Option<(u64, u64)> {
    let age = |since: u64| input.now_micros.saturating_sub(since);
    match trigger {
        Trigger::FileStaleness(times) => Some((age(table.created_micros), times.get(level))),
        Trigger::TombstoneTtl(_) if table.has_tombstones() => {
            Some((age(table.oldest_tombstone_micros?), deadlines.get(level)))
        }
        Trigger::TombstoneDensity(percent) if table.has_tombstones() => {
            Some((table.tombstone_percent(), u64::from(*percent)))
        }
        Trigger::ReadTriggered(bytes) => {
            let threshold = (table.size_bytes / (*bytes).max(1)).max(READS_FREE);
            Some((input.accesses.get(table.id).reads, threshold))
        }
        _ => None,
    }
}

/// Whether anything would be won: data below to be merged with, or tombstones that can go.
fn can_act(
    input: &PickInput<'_>,
    trigger: TriggerKind,
    table: &TableInfo,
    is_lowest: bool,
) -> bool {
    match trigger {
        TriggerKind::TombstoneTtl | TriggerKind::TombstoneDensity => {
            !is_lowest || input.oldest_snapshot.is_none_or(|oldest| table.largest_seq <= oldest)
        }
        _ => !is_lowest,
    }
}

/// Whether no table that is older shares keys with `table`.
fn is_lowest(shape: &TreeShape, level: usize, run: RunId, table: &TableInfo) -> bool {
    let own = shape.level(level).runs.iter().filter(|other| other.id < run);
    let deeper = shape.levels.iter().skip(level + 1).flat_map(|level| &level.runs);
    own.chain(deeper).all(|run| run.overlapping(&table.range).is_empty())
}
