//! Levels that are too full: by bytes, by tables or by runs.

use std::sync::Arc;

use super::candidate::{CompactionCandidate, Extent, load_rank, ranked};
use super::context::PickContext;
use super::sized;
use crate::admission::pressure::run_pressure;
use crate::compaction::{Input, Reason};
use crate::design::FlushMode;
use crate::shape::{Level, TableId, TableInfo};
use crate::strategy::trigger::Manual;
use crate::strategy::{Intake, LevelContext, Scope, TombstoneWeight, Trigger, TriggerKind};

/// The contents of a level without the inputs of running jobs.
#[derive(Debug, Clone, Copy, Default)]
struct LevelLoadTotals {
    runs: u64,
    tables: u64,
    bytes: u64,
}

pub(super) fn candidates(input: &PickContext<'_>) -> Vec<CompactionCandidate> {
    let weight = TombstoneWeight::of(input.shape, input.design.strategy.tombstone_weight);
    let levels = input.shape.levels.iter().enumerate();
    let mut found: Vec<CompactionCandidate> =
        levels.flat_map(|(level, content)| of_level(input, weight, level, content)).collect();
    found.extend(relief(input));
    found
}

/// Writers must not stall because of runs that no trigger would ever merge: a level whose runs
/// would delay writers acts, but after all other candidates.
fn relief(input: &PickContext<'_>) -> Option<CompactionCandidate> {
    if input.design.strategy.size_tiered().is_some() {
        return sized::relief(input);
    }
    let pressure = run_pressure(input.shape, input.design);
    if pressure.measured < pressure.threshold || input.design.strategy.is_manual() {
        return None;
    }
    // Merging flushes leave one run, which counts as the memtables whose data it holds.
    let staying_runs = |level: usize| {
        let load = staying(input, TombstoneWeight::default(), level, input.shape.level(level));
        let buffers = load.bytes / input.design.buffer_bytes.max(1);
        let is_merged = level == 0 && input.design.flush == FlushMode::Merge;
        if is_merged { load.runs.max(buffers) } else { load.runs }
    };
    let level = match pressure.level {
        Some(level) => level,
        // A running compaction may relieve the pressure.
        None if input.is_compacting() => return None,
        None => {
            let above_last = 0..input.last_level();
            let most = above_last.clone().max_by_key(|level| staying_runs(*level));
            most.filter(|level| staying_runs(*level) > 1)
                .or_else(|| above_last.clone().find(|level| staying_runs(*level) > 0))
                .unwrap_or(input.last_level())
        }
    };
    let limit = u64::from(pressure.threshold);
    if pressure.level.is_some() && staying_runs(level) < limit {
        return None;
    }
    let runs = u64::from(pressure.measured);
    Some(CompactionCandidate {
        reason: Reason::Stall { level, runs, limit, movement: None },
        level,
        // No other candidate has this precedence.
        rank: usize::MAX,
        score: 1.0,
        extent: Extent::Level,
    })
}

fn of_level(
    input: &PickContext<'_>,
    weight: TombstoneWeight,
    level: usize,
    content: &Level,
) -> Vec<CompactionCandidate> {
    let strategy = &input.design.strategy;
    let last = input.last_level();
    let triggers = strategy.triggers.at(level);
    let load = staying(input, weight, level, content);
    if triggers == &[Trigger::from(Manual)] || load.runs == 0 || strategy.size_tiered().is_some() {
        return Vec::new();
    }
    // Merging flushes leave one run, whatever its size.
    let is_merged = level == 0 && input.design.flush == FlushMode::Merge;
    // In levels that gather runs, the run count decides, unless the strategy has only size
    // triggers.
    let has = |scope| triggers.iter().any(|trigger| trigger.has_scope(scope));
    let by_size = is_merged || !has(Scope::LevelRuns);
    let allowed = u64::from(strategy.runs_allowed(level, last));
    let gathers = level == 0 || allowed > 1;
    // A level of one run never has too many runs. Without a size limit it would never give up data,
    // and every merge into it would rewrite it completely.
    let has_size = has(Scope::LevelSize);
    let capacity_bytes = input.design.capacity_bytes(level, last);
    let context = LevelContext {
        level,
        bytes: load.bytes,
        tables: load.tables,
        capacity_bytes,
        table_bytes: input.design.table_bytes,
        ratio: &|deeper| strategy.ratio(deeper, last),
    };
    let mut found = Vec::new();
    for (rank, trigger) in ranked(input, level) {
        let counts_runs = gathers && !(is_merged && !has_size && load.runs <= allowed);
        let (kind, (measured, threshold)) = match trigger.kind().info().scope {
            Scope::LevelRuns if counts_runs => (trigger.kind(), (load.runs, allowed + 1)),
            Scope::LevelRuns if !has_size => {
                (TriggerKind::LevelSaturation, (load.bytes, capacity_bytes))
            }
            Scope::LevelSize if !gathers || by_size => {
                let Some(measure) = trigger.rule().measure_level(&context) else { continue };
                (trigger.kind(), measure)
            }
            _ => continue,
        };
        // A level of one run may be exactly full; a level that gathers runs acts when it is full.
        if if gathers { measured >= threshold } else { measured > threshold } {
            let measure = (measured, threshold);
            found.push(CompactionCandidate::triggered(kind, level, rank, measure, Extent::Level));
        }
    }
    // Runs pass through a level 0 that allows none; several runs in a level of one run are merged.
    let passes = level == 0 && allowed == 0;
    if passes || !gathers && load.runs > 1 {
        let runs = load.runs;
        let score = runs as f64;
        let loads = triggers.iter().map(Trigger::kind).find(|kind| kind.is_load());
        let trigger = loads.unwrap_or(TriggerKind::LevelSaturation);
        let reason = if passes {
            Reason::Passing { trigger, level, runs }
        } else {
            Reason::Repair { level, runs, allowed }
        };
        let rank = load_rank(input, level);
        found.push(CompactionCandidate { reason, level, rank, score, extent: Extent::Level });
    }
    found
}

/// Returns true if a level must wait because the level below it is full. With [`Intake::Exact`], a
/// full level of one run moves on before it takes more data. Otherwise, while the level above is
/// further behind, every batch that arrives would be merged with a run that grows beyond its
/// capacity.
pub(super) fn is_blocked(
    input: &PickContext<'_>,
    all: &[CompactionCandidate],
    one: &CompactionCandidate,
) -> bool {
    let target = one.level + 1;
    let strategy = &input.design.strategy;
    let moves_all = strategy.granularity.at(one.level).tables().is_none() || one.level == 0;
    let is_full = |other: &CompactionCandidate| {
        let is_saturated =
            matches!(other.reason, Reason::Triggered { trigger: TriggerKind::LevelSaturation, .. });
        other.level == target && is_saturated && matches!(other.extent, Extent::Level)
    };
    strategy.intake == Intake::Exact
        && matches!(one.extent, Extent::Level)
        && moves_all
        && strategy.granularity.at(target).tables().is_none()
        && strategy.is_single_run(target, input.last_level())
        && all.iter().any(is_full)
}

/// Returns what stays in a level when the running jobs that move tables out of it have ended.
fn staying(
    input: &PickContext<'_>,
    weight: TombstoneWeight,
    index: usize,
    level: &Level,
) -> LevelLoadTotals {
    let away = input.in_progress.iter().filter(|job| job.output.level != index);
    let inputs = away.flat_map(|job| &job.inputs).filter(|input| input.level == index);
    let inputs: Vec<&Input> = inputs.collect();
    let mut totals = LevelLoadTotals::default();
    for run in &level.runs {
        // Nearly all runs lose nothing, and some have very many tables.
        let leaving = inputs.iter().filter(|input| input.run == run.id);
        let mut leaving: Vec<TableId> =
            leaving.flat_map(|input| input.tables.iter().map(|table| table.id)).collect();
        leaving.sort_unstable();
        let stays = |table: &&Arc<TableInfo>| {
            leaving.is_empty() || leaving.binary_search(&table.id).is_err()
        };
        let add = |sum: (u64, u64), table: &Arc<TableInfo>| {
            (sum.0 + 1, sum.1.saturating_add(weight.bytes(table)))
        };
        let (count, bytes) = run.tables.iter().filter(stays).fold((0, 0), add);
        totals.runs += u64::from(count > 0);
        totals.tables += count;
        totals.bytes = totals.bytes.saturating_add(bytes);
    }
    totals
}
