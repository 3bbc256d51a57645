//! Orders the tables of a run by a movement rule, the table to move first in front.

use std::sync::Arc;

use super::candidate::Extent;
use super::input::PickInput;
use crate::shape::{Run, TableInfo};
use crate::strategy::{Movement, Trigger};

/// A table of a run: its index, and what is known of it.
type Choice<'a> = (usize, &'a Arc<TableInfo>);

/// Asks `accept` for the tables of `run` that `extent` is about, in the order of the first rule
/// that ranks any, and so on; in the end by least overlap.
pub(super) fn find<T>(
    input: &PickInput<'_>,
    level: usize,
    run: &Run,
    extent: &Extent,
    accept: impl Fn(usize, Movement) -> Option<T>,
) -> Option<T> {
    let rules = input.design.strategy.movement.at(level).iter().copied();
    rules.chain([Movement::LeastOverlap]).find_map(|rule| {
        let choices = from_cursor(input, level, extent.tables_of(run).collect());
        order(rule, input, level, run, choices).into_iter().find_map(|(at, _)| accept(at, rule))
    })
}

/// Tables in key order, beginning behind the one that moved last, and round.
///
/// That is round-robin movement, and how every other rule breaks ties. Were they broken by key, a
/// rule to which many tables are equal, as when all of a level were made by the same compaction,
/// would take the first one each time. What comes into a level is spread over all keys, so the
/// first table would soon span most of them, and overlap most of the next level.
fn from_cursor<'a>(
    input: &PickInput<'_>,
    level: usize,
    mut choices: Vec<Choice<'a>>,
) -> Vec<Choice<'a>> {
    let cursor = input.cursors.get(level);
    let from = cursor
        .map_or(0, |cursor| choices.partition_point(|(_, table)| table.range.start < *cursor));
    choices.rotate_left(from);
    choices
}

/// The tables that `rule` ranks, the one to move first in front. `choices` are in the order in
/// which ties are broken.
fn order<'a>(
    rule: Movement,
    input: &PickInput<'_>,
    level: usize,
    run: &'a Run,
    mut choices: Vec<Choice<'a>>,
) -> Vec<Choice<'a>> {
    match rule {
        Movement::RoundRobin => {}
        Movement::Random { seed } => {
            let salt = run.tables.iter().fold(seed, |salt, table| mix(salt ^ table.id.0));
            choices.sort_by_key(|(_, table)| mix(salt ^ mix(table.id.0)));
        }
        Movement::LeastOverlap => by_overlap(input, level + 1, &mut choices),
        Movement::LeastOverlapGrandparent => {
            // The last two levels have no grandparent, and many tables no overlap with theirs as
            // long as the last level is small: then the next level decides.
            by_overlap(input, level + 1, &mut choices);
            if !input.shape.level(level + 2).runs.is_empty() {
                by_overlap(input, level + 2, &mut choices);
            }
        }
        Movement::Coldest => choices.sort_by_key(|(_, table)| {
            let access = input.accesses.get(table.id);
            (access.last_micros.max(table.created_micros), access.reads)
        }),
        Movement::ColdestUpdate => choices.sort_by_key(|(_, table)| table.largest_seq),
        Movement::Oldest => {
            choices.sort_by_key(|(_, table)| (table.smallest_seq, table.created_micros));
        }
        Movement::MostTombstones => {
            let threshold = dense_from(input, level);
            choices.retain(|(_, table)| {
                table.has_tombstones() && table.tombstone_percent() >= threshold
            });
            let count = |table: &TableInfo| table.tombstones + table.range_tombstones;
            choices.sort_by_key(|(_, table)| std::cmp::Reverse(count(table)));
        }
        Movement::ExpiredTtl => {
            let deadline = deadline(input, level);
            let age = |table: &TableInfo| {
                let since = table.oldest_tombstone_micros.filter(|_| table.has_tombstones());
                since.map(|since| input.now_micros.saturating_sub(since))
            };
            choices.retain(|(_, table)| age(table).zip(deadline).is_some_and(|(age, d)| age >= d));
            choices.sort_by_key(|(_, table)| std::cmp::Reverse(age(table)));
        }
    }
    choices
}

/// By rising overlap ratio: bytes of level `other` that share keys with the table, per byte of its
/// own. For the next level that is what would have to be rewritten.
fn by_overlap(input: &PickInput<'_>, other: usize, choices: &mut [Choice<'_>]) {
    let runs = &input.shape.level(other).runs;
    choices.sort_by_cached_key(|(_, table)| {
        let tables = runs.iter().flat_map(|run| run.overlapping(&table.range));
        let overlap: u64 = tables.map(|other| other.size_bytes).sum();
        let ratio = overlap as f64 / table.size_bytes.max(1) as f64;
        // Ratios are not negative, so that their bits are ordered as they are.
        ratio.to_bits()
    });
}

/// The percentage of tombstones from which a table counts for the rule of most tombstones.
fn dense_from(input: &PickInput<'_>, level: usize) -> u64 {
    let triggers = input.design.strategy.triggers.at(level).iter();
    let given = triggers.filter_map(|trigger| match trigger {
        Trigger::TombstoneDensity(percent) => Some(u64::from(*percent)),
        _ => None,
    });
    given.min().unwrap_or(0)
}

/// The age from which the tombstones of a level have expired.
fn deadline(input: &PickInput<'_>, level: usize) -> Option<u64> {
    let strategy = &input.design.strategy;
    let last = input.last_level();
    let of = |trigger: &Trigger| match trigger {
        Trigger::TombstoneTtl(times) => Some(strategy.tombstone_deadlines(times, last).get(level)),
        _ => None,
    };
    strategy.triggers.at(level).iter().find_map(of)
}

/// SplitMix64's finaliser: every bit of the result depends on every bit of the argument.
fn mix(bits: u64) -> u64 {
    let z = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
