//! `round-robin-within`: like round-robin, but the turn may begin within a table.
//!
//! Tables entering a level rarely have the bounds of those that left, so the key at which the turn
//! begins often lies within a table. Round-robin skips that table until the next round; this rule,
//! which is LevelDB's, moves it.

use super::rule::{MovementContext, MovementInfo, TableChoice};

pub(super) static INFO: MovementInfo = MovementInfo {
    name: "round-robin-within",
    aliases: &[],
    ranks_all: true,
    looks_at_accesses: false,
    order,
};

/// The tables arrive in round-robin order, so the last one may contain the start of the turn.
fn order(context: &MovementContext<'_>, choices: &mut Vec<TableChoice<'_>>) {
    let Some((cursor, (_, last))) = context.cursor.zip(choices.last()) else { return };
    let lies_in =
        last.range.start < *cursor && last.range.end.as_ref().is_none_or(|end| end > cursor);
    if lies_in {
        choices.rotate_right(1);
    }
}
