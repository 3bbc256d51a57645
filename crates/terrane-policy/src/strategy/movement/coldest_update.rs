//! `coldest-update`: the table whose newest entry is the oldest; RocksDB's estimate of the coldest
//! table.

use super::rule::{MovementContext, MovementInfo, TableChoice};

pub(super) static INFO: MovementInfo = MovementInfo {
    name: "coldest-update",
    aliases: &[],
    ranks_all: true,
    looks_at_accesses: false,
    order,
};

fn order(_context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    choices.sort_by_key(|(_, table)| table.largest_seq);
}
