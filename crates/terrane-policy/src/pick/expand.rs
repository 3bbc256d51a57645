//! Tables that move along with the one that a movement rule chose, because they add little cost.

use std::ops::Range;
use std::sync::Arc;

use super::context::PickContext;
use crate::key_range::KeyRange;
use crate::shape::{Run, TableInfo};
use crate::strategy::Expansion;

/// Returns the tables of the run that move together with the chosen one, which is included; `None`
/// if it moves alone.
pub(super) fn tables(
    input: &PickContext<'_>,
    level: usize,
    (run, at): (&Run, usize),
    expansion: Expansion,
) -> Option<Range<usize>> {
    let chosen = run.tables.get(at)?;
    let Some(target) = input.shape.level(level + 1).runs.first() else {
        return neighbours(run, at, expansion, |_| true);
    };
    let below = target.overlapping(&chosen.range);
    if below.is_empty() {
        return neighbours(run, at, expansion, |range| target.overlapping(range).is_empty());
    }
    // All tables within the key range that is rewritten anyway.
    let rewritten = hull(below)?.hull(&chosen.range);
    let fits = |tables: &Range<usize>| {
        let bytes = bytes_of(&run.tables[tables.clone()]) + bytes_of(below);
        tables.len() > 1 && bytes < limit(input, expansion)
    };
    let touching = indexes(run, |table| table.range.overlaps(&rewritten));
    let joins = |tables: &Range<usize>| {
        let range = hull(&run.tables[tables.clone()]);
        range.is_some_and(|range| target.overlapping(&range).len() == below.len())
    };
    if fits(&touching) && joins(&touching) {
        return Some(touching);
    }
    let inside = indexes(run, |table| rewritten.covers(&table.range));
    fits(&inside).then_some(inside)
}

/// Returns the table and its neighbours, first those after it, as long as neither they nor the gaps
/// between them overlap the next level.
fn neighbours(
    run: &Run,
    at: usize,
    expansion: Expansion,
    is_clear: impl Fn(&KeyRange) -> bool,
) -> Option<Range<usize>> {
    let most = expansion.moved as usize;
    let mut found = at..at + 1;
    let clear = |tables: &Range<usize>| {
        let range = run.tables.get(tables.clone()).and_then(hull);
        tables.len() <= most && range.is_some_and(|range| is_clear(&range))
    };
    while clear(&(found.start..found.end + 1)) {
        found.end += 1;
    }
    while found.start > 0 && clear(&(found.start - 1..found.end)) {
        found.start -= 1;
    }
    (found.len() > 1).then_some(found)
}

/// Returns the indexes of the tables that satisfy a condition; they are adjacent.
fn indexes(run: &Run, holds: impl Fn(&TableInfo) -> bool) -> Range<usize> {
    let from = run.tables.iter().position(|table| holds(table)).unwrap_or(0);
    let count = run.tables[from..].iter().take_while(|table| holds(table)).count();
    from..from + count
}

fn hull(tables: &[Arc<TableInfo>]) -> Option<KeyRange> {
    KeyRange::hull_of(tables.iter().map(|table| &table.range))
}

fn bytes_of(tables: &[Arc<TableInfo>]) -> u64 {
    tables.iter().fold(0, |sum, table| sum.saturating_add(table.size_bytes))
}

fn limit(input: &PickContext<'_>, expansion: Expansion) -> u64 {
    input.design.table_bytes.saturating_mul(u64::from(expansion.tables))
}
