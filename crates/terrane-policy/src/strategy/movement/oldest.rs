//! `oldest`: the table with the oldest entry.

use super::rule::{MovementContext, MovementInfo, TableChoice};

pub(super) static INFO: MovementInfo =
    MovementInfo { name: "oldest", aliases: &[], ranks_all: true, looks_at_accesses: false, order };

fn order(_context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    choices.sort_by_key(|(_, table)| (table.smallest_seq, table.created_micros));
}
