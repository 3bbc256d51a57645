//! `round-robin`: the table after the one moved last, in key order.

use super::rule::{MovementContext, MovementInfo, TableChoice};

pub(super) static INFO: MovementInfo = MovementInfo {
    name: "round-robin",
    aliases: &[],
    ranks_all: true,
    looks_at_accesses: false,
    order,
};

/// The tables already are in this order.
fn order(_context: &MovementContext<'_>, _choices: &mut Vec<TableChoice<'_>>) {}
