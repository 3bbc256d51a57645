//! `random`, `random(7)`: any table; the seed and the tables of the run decide which.

use super::rule::{MovementContext, MovementInfo, TableChoice};

pub(super) static INFO: MovementInfo =
    MovementInfo { name: "random", aliases: &[], ranks_all: true, looks_at_accesses: false, order };

fn order(context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    let tables = context.run.tables.iter();
    let salt = tables.fold(context.seed, |salt, table| scramble(salt ^ table.id.0));
    choices.sort_by_key(|(_, table)| scramble(salt ^ scramble(table.id.0)));
}

/// The finalizer of SplitMix64: every bit of the result depends on every bit of the argument.
fn scramble(bits: u64) -> u64 {
    let z = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
