//! Tries the tables of a run in the order of the movement rules.

use super::candidate::Extent;
use super::context::PickContext;
use crate::shape::Run;
use crate::strategy::{Movement, MovementContext, TableChoice, TombstoneWeight, Trigger};

/// Calls `accept` for the tables of `run` that `extent` covers, until it returns a value. Uses the
/// order of the first rule, then that of the next one, and finally least overlap.
pub(super) fn find<T>(
    input: &PickContext<'_>,
    level: usize,
    run: &Run,
    extent: &Extent,
    accept: impl Fn(usize, Movement) -> Option<T>,
) -> Option<T> {
    let rules = input.design.strategy.movement.at(level).iter().copied();
    rules.chain([Movement::LeastOverlap]).find_map(|rule| {
        let mut choices = from_cursor(input, level, extent.tables_of(run).collect());
        (rule.info().order)(&context(input, level, run, rule), &mut choices);
        choices.into_iter().find_map(|(at, _)| accept(at, rule))
    })
}

fn context<'a>(
    input: &PickContext<'a>,
    level: usize,
    run: &'a Run,
    rule: Movement,
) -> MovementContext<'a> {
    let strategy = &input.design.strategy;
    let mut triggers = strategy.triggers.at(level).iter();
    let times = triggers.clone().find_map(|trigger| trigger.rule().tombstone_times());
    let density = triggers.find_map(|trigger| match trigger {
        Trigger::TombstoneDensity(density) => Some(u64::from(density.0)),
        _ => None,
    });
    let deadlines = |times| strategy.tombstone_deadlines(times, input.last_level());
    MovementContext {
        shape: input.shape,
        accesses: input.accesses,
        level,
        run,
        cursor: input.cursors.get(level),
        weight: TombstoneWeight::of(input.shape, strategy.tombstone_weight),
        now_micros: input.now_micros,
        oldest_snapshot_micros: input.oldest_snapshot_micros,
        seed: rule.seed().unwrap_or_default(),
        tombstone_deadline: times.map(|times| deadlines(times).get(level)),
        dense_percent: density.unwrap_or(0),
    }
}

/// Rotates tables in key order so that the table after the one that moved last comes first.
///
/// This is round-robin movement, and also how every other rule breaks ties. If ties were broken by
/// key, a rule that ranks many tables equal, such as all tables of one compaction, would take the
/// first one every time. Because data that enters a level is spread over all keys, the first table
/// would soon span most keys and overlap most of the next level.
fn from_cursor<'a>(
    input: &PickContext<'_>,
    level: usize,
    mut choices: Vec<TableChoice<'a>>,
) -> Vec<TableChoice<'a>> {
    let cursor = input.cursors.get(level);
    let from = cursor
        .map_or(0, |cursor| choices.partition_point(|(_, table)| table.range.start < *cursor));
    choices.rotate_left(from);
    choices
}
