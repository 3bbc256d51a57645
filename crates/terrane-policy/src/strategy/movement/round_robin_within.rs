//! `round-robin-within`: like round-robin, but the turn begins within a table.
//!
//! Tables that come into a level have other bounds than those that left it. So the key at which the
//! turn begins often lies within a table. Round-robin passes that table over until the next round;
//! this rule, which is LevelDB's, moves it.

use super::rule::{MovementContext, MovementInfo, TableChoice};

pub(super) static INFO: MovementInfo = MovementInfo {
    name: "round-robin-within",
    aliases: &[],
    ranks_all: true,
    looks_at_accesses: false,
    order,
};

/// The tables come in the order of round-robin; the last one lies before the turn.
fn order(context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    let Some((cursor, (_, last))) = context.cursor.zip(choices.last()) else { return };
    let lies_in =
        last.range.start < *cursor && last.range.end.as_ref().is_none_or(|end| end > cursor);
    if lies_in {
        choices.rotate_right(1);
    }
}
