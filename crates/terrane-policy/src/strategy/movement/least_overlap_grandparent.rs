//! `least-overlap-grandparent`: the table with the least overlap in the level after the next.
//!
//! The last two levels have no grandparent, and while the last level is small, many tables overlap
//! nothing there. Then the next level decides.

use super::least_overlap::by_overlap;
use super::rule::{MovementContext, MovementInfo, TableChoice};

pub(super) static INFO: MovementInfo = MovementInfo {
    name: "least-overlap-grandparent",
    aliases: &[],
    ranks_all: true,
    looks_at_accesses: false,
    order,
};

fn order(context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    by_overlap(context, context.level + 1, choices);
    if !context.shape.level(context.level + 2).runs.is_empty() {
        by_overlap(context, context.level + 2, choices);
    }
}
