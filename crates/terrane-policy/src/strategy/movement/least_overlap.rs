//! `least-overlap`: the table with the fewest overlapping bytes in the next level per byte of its own.

use std::sync::Arc;

use super::rule::{MovementContext, MovementInfo, TableChoice};
use crate::key_range::KeyRange;
use crate::shape::{Run, TableInfo};

pub(super) static INFO: MovementInfo = MovementInfo {
    name: "least-overlap",
    aliases: &["least-overlap-parent"],
    ranks_all: true,
    looks_at_accesses: false,
    order,
};

fn order(context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    by_overlap(context, context.level + 1, choices);
}

/// Sorts by overlap ratio: the bytes of level `other` that share keys with a table, divided by the
/// table's weighted bytes. For the next level, the overlapping bytes are those that the move
/// rewrites.
pub(super) fn by_overlap(
    context: &MovementContext<'_>,
    other: usize,
    choices: &mut [TableChoice<'_>],
) {
    let mut overlaps: Vec<Overlaps<'_>> =
        context.shape.level(other).runs.iter().map(Overlaps::of).collect();
    choices.sort_by_cached_key(|(_, table)| {
        let overlap: u64 = overlaps.iter_mut().map(|one| one.bytes(&table.range)).sum();
        let ratio = overlap as f64 / context.weight.bytes(table).max(1) as f64;
        // Non-negative floats are ordered like their bits.
        ratio.to_bits()
    });
}

/// How many tables are passed one by one before the next is searched.
const NEAR: usize = 8;

/// The bytes of a run that share keys with other ranges. Ranges that come in the order of their keys, as the tables
/// of a run do, cost a few comparisons each instead of a search.
struct Overlaps<'a> {
    tables: &'a [Arc<TableInfo>],
    /// The first table that may overlap a range that begins after the last one.
    next: usize,
}

impl<'a> Overlaps<'a> {
    fn of(run: &'a Run) -> Self {
        Self { tables: &run.tables, next: 0 }
    }

    /// Returns the bytes of the tables that share keys with a range.
    fn bytes(&mut self, range: &KeyRange) -> u64 {
        let ends_before = |table: &TableInfo| !range.starts_before_end_of(&table.range);
        if self.next > 0 && !self.tables.get(self.next - 1).is_some_and(|table| ends_before(table))
        {
            // This range begins before the last one.
            self.next = self.tables.partition_point(|table| ends_before(table));
        }
        let left = self.tables.get(self.next..).unwrap_or_default();
        let near = left.iter().take(NEAR).take_while(|table| ends_before(table)).count();
        self.next += match left.get(near..) {
            // Far ahead, as where another rule has ordered the tables.
            Some(rest) if near == NEAR => near + rest.partition_point(|table| ends_before(table)),
            _ => near,
        };
        let left = self.tables.get(self.next..).unwrap_or_default();
        let shared = left.iter().take_while(|table| table.range.starts_before_end_of(range));
        shared.map(|table| table.size_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::RunId;

    #[test]
    fn overlaps_are_those_of_a_search_in_any_order_of_ranges() {
        let range =
            |from: u32, until: u32| KeyRange::new(&from.to_be_bytes(), Some(&until.to_be_bytes()));
        let table = |at: u32| TableInfo::new(at.into(), range(at * 10, at * 10 + 7), 1 << at);
        let tables = (0..40).map(|at| Arc::new(table(at))).collect();
        let run = Run { id: RunId(1), tables };
        let mut overlaps = Overlaps::of(&run);
        let starts = (0..60).chain((0..60).rev()).chain((0..60).map(|at| at * 37 % 60));
        for (start, width) in starts.zip([1, 8, 30, 100].into_iter().cycle()) {
            let asked = range(start * 7, start * 7 + width);
            let expected: u64 = run.overlapping(&asked).iter().map(|table| table.size_bytes).sum();
            assert_eq!(overlaps.bytes(&asked), expected, "{start} {width}");
        }
    }
}
