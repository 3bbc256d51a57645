//! `least-overlap`: the table with the fewest overlapping bytes in the next level per byte of its own.

use super::rule::{MovementContext, MovementInfo, TableChoice};

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
    let runs = &context.shape.level(other).runs;
    choices.sort_by_cached_key(|(_, table)| {
        let tables = runs.iter().flat_map(|run| run.overlapping(&table.range));
        let overlap: u64 = tables.map(|other| other.size_bytes).sum();
        let ratio = overlap as f64 / context.weight.bytes(table).max(1) as f64;
        // Non-negative floats are ordered like their bits.
        ratio.to_bits()
    });
}
