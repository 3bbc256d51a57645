//! `random`, `random(7)`: any table; the seed and the tables of the run decide which.

use crate::random::scramble;

use super::rule::{MovementContext, MovementInfo, TableChoice};

pub(super) static INFO: MovementInfo =
    MovementInfo { name: "random", aliases: &[], ranks_all: true, looks_at_accesses: false, order };

fn order(context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    let tables = context.run.tables.iter();
    let salt = tables.fold(context.seed, |salt, table| scramble(salt ^ table.id.0));
    choices.sort_by_key(|(_, table)| scramble(salt ^ scramble(table.id.0)));
}
