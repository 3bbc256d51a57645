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

#[cfg(test)]
mod tests {
    use super::scramble;

    /// The first outputs of SplitMix64 for the seed 0, as published with the generator. Stored
    /// designs contain a seed, so the choices that follow from it must not change.
    #[test]
    fn bits_are_scrambled_as_by_splitmix64() {
        let states = [0, 1, 2].map(|count: u64| count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let published = [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f];
        assert_eq!(states.map(scramble), published);
    }
}
