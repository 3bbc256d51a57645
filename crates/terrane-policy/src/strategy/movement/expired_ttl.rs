//! `expired-ttl`: the table whose oldest tombstone or expired entry is furthest past its deadline.

use std::cmp::Reverse;

use super::rule::{MovementContext, MovementInfo, TableChoice};
use crate::shape::TableInfo;

pub(super) static INFO: MovementInfo = MovementInfo {
    name: "expired-ttl",
    aliases: &[],
    ranks_all: false,
    looks_at_accesses: false,
    order,
};

fn order(context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    let age = |table: &TableInfo| {
        let since = table.dead_since(context.oldest_snapshot_micros);
        since.map(|since| context.now_micros.saturating_sub(since))
    };
    let deadline = context.tombstone_deadline;
    choices.retain(|(_, table)| age(table).zip(deadline).is_some_and(|(age, due)| age >= due));
    choices.sort_by_key(|(_, table)| Reverse(age(table)));
}
