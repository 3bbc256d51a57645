//! `most-tombstones`: the table with the most tombstones, if any table has one; if a trigger
//! `tombstone-density` is set, only among the tables that it marks.

use std::cmp::Reverse;

use super::rule::{MovementContext, MovementInfo, TableChoice};
use crate::shape::TableInfo;

pub(super) static INFO: MovementInfo = MovementInfo {
    name: "most-tombstones",
    aliases: &["tombstone-density"],
    ranks_all: false,
    looks_at_accesses: false,
    order,
};

fn order(context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    choices.retain(|(_, table)| {
        table.has_tombstones() && table.tombstone_percent() >= context.dense_percent
    });
    let count = |table: &TableInfo| table.tombstones + table.range_tombstones;
    choices.sort_by_key(|(_, table)| Reverse(count(table)));
}
