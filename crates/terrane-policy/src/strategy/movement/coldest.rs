//! `coldest`: the table that was read least recently.

use super::rule::{MovementContext, MovementInfo, TableChoice};

pub(super) static INFO: MovementInfo =
    MovementInfo { name: "coldest", aliases: &[], ranks_all: true, looks_at_accesses: true, order };

fn order(context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    choices.sort_by_key(|(_, table)| {
        let access = context.accesses.get(table.id);
        (access.last_micros.max(table.created_micros), access.reads)
    });
}
