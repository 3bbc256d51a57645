//! How far a level has refilled while a compaction takes data from it.

use super::context::PickContext;
use crate::compaction::{Compaction, Reason};
use crate::design::FlushMode;

/// Returns how far the level from which `job` takes data has refilled, as a fraction of the
/// fullness at which it acts: 0 right after the job took everything, 1 when the level should act
/// again.
pub fn refilled(input: &PickContext<'_>, job: &Compaction) -> f64 {
    let level = job.from_level();
    let last = input.shape.last_level();
    let strategy = &input.design.strategy;
    // A flush leaves its tables in the level.
    let others = input.in_progress.iter().filter(|other| other.reason != Reason::Flush);
    let is_taken = |id| job.takes(id) || others.clone().any(|other| other.takes(id));
    let staying = input.shape.level(level).runs.iter().map(|run| {
        run.tables
            .iter()
            .filter(|table| !is_taken(table.id))
            .map(|table| table.size_bytes)
            .sum::<u64>()
    });
    let staying: Vec<u64> = staying.filter(|bytes| *bytes > 0).collect();
    let capacity =
        input.design.with_scaled_capacities(input.shape).capacity_bytes(level, last).max(1);
    let by_size = staying.iter().sum::<u64>() as f64 / capacity as f64;
    if level == 0 || strategy.runs_allowed(level, last) > 1 {
        let acts_at = u64::from(strategy.runs_allowed(level, last)) + 1;
        let by_runs = staying.len() as f64 / acts_at as f64;
        let is_merged = level == 0 && input.design.flush == FlushMode::Merge;
        return if is_merged { by_runs.max(by_size) } else { by_runs };
    }
    by_size
}
