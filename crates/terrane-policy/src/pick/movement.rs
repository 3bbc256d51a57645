//! Orders the tables of a run by a movement rule, the table to move first in front.

use std::sync::Arc;

use super::PickInput;
use crate::shape::{Run, TableInfo};
use crate::strategy::Movement;

/// The tables of `run`, in the order in which `rule` would move them.
pub(super) fn order<'a>(
    rule: Movement,
    input: &PickInput<'_>,
    level: usize,
    run: &'a Run,
) -> Vec<&'a Arc<TableInfo>> {
    match rule {
        Movement::RoundRobin => round_robin(input, level, run),
        Movement::LeastOverlap => least_overlap(input, level, run),
    }
}

fn round_robin<'a>(input: &PickInput<'_>, level: usize, run: &'a Run) -> Vec<&'a Arc<TableInfo>> {
    let from = input
        .cursors
        .get(level)
        .map_or(0, |cursor| run.tables.partition_point(|table| table.range.start < *cursor));
    let (before, after) = run.tables.split_at(from);
    after.iter().chain(before).collect()
}

/// By rising overlap ratio: bytes of the next level that would have to be rewritten, per byte
/// moved. Ties go to the earlier key, so that the order is total.
fn least_overlap<'a>(input: &PickInput<'_>, level: usize, run: &'a Run) -> Vec<&'a Arc<TableInfo>> {
    let next = input.shape.level(level + 1).runs.first();
    let mut ranked: Vec<(f64, &Arc<TableInfo>)> = run
        .tables
        .iter()
        .map(|table| {
            let overlap: u64 = next.map_or(0, |next| {
                next.overlapping(&table.range).iter().map(|other| other.size_bytes).sum()
            });
            (overlap as f64 / table.size_bytes.max(1) as f64, table)
        })
        .collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.range.start.cmp(&b.1.range.start)));
    ranked.into_iter().map(|(_, table)| table).collect()
}
