//! Collects value files: jobs that copy the live values of files with much garbage to new files, so
//! that the old files can be removed.
//!
//! A job rewrites one table in place and relocates its pointers into the chosen files, the victims.
//! A table holds some fifty bytes for each value, so rewriting it is cheap next to moving values.
//! When no table refers to a victim any more, the engine removes the file. New files hold values
//! whose keys are close to each other, so few tables refer to them, and collecting them again is
//! cheap.
//!
//! A file can be a victim when it is settled and part of it is garbage. Victims are, in this order:
//! 1. files with a dead value that delete persistence wants gone;
//! 2. the files with the largest share of garbage, as many as it takes to come below the space bound
//!    of the design if all of their garbage were gone;
//! 3. the files whose share of garbage reaches the limit of the design, if together they hold enough
//!    garbage to be worth rewriting all tables that refer to them;
//! 4. all files, if the design stores values inline: their values go back to tables.
//!
//! Garbage never shrinks until a file is gone, and a job turns live values of its victims into
//! garbage. So a victim stays a victim, and every job leaves fewer live values in victims: jobs come
//! to an end. Files that are all garbage need no job.

use std::cmp::Reverse;
use std::sync::Arc;

use super::context::{PickContext, is_free};
use crate::compaction::{CollectionCause, Compaction, Input, Output, Placement, Reason};
use crate::design::ValueSeparation;
use crate::shape::{TableInfo, ValueFileId, ValueFileState, ValueFileUsage};

/// A job relocates at most this many times the size of a value file, or the values that one table
/// has in one file. It bounds the space that a job needs before it frees any, and how long it keeps
/// compactions from its table.
const FILES_PER_JOB: u64 = 4;

/// The garbage of the files that reach their limit must be this many times the tables that refer to
/// them. Rewriting the tables then adds at most a quarter to the bytes that writers wrote.
const GARBAGE_PER_TABLE_BYTE: u64 = 4;

/// A file to collect, and why.
#[derive(Debug, Clone)]
struct Victim {
    usage: ValueFileUsage,
    cause: CollectionCause,
    measured: u64,
    threshold: u64,
}

/// Returns the next job that collects value files; `None` if no file needs it, or jobs that conflict
/// with it are running.
pub(super) fn pick(input: &PickContext<'_>) -> Option<Compaction> {
    let is_collection = |job: &Compaction| matches!(job.reason, Reason::Collection { .. });
    // Other jobs must find a thread.
    if input.shape.value_files.is_empty() || input.in_progress.iter().any(is_collection) {
        return None;
    }
    let victims = victims(input);
    victims.iter().find_map(|victim| {
        let mut places: Vec<_> = input.shape.places().collect();
        // Tables of upper levels will soon be merged anyway.
        places.reverse();
        places.into_iter().find_map(|place| {
            if !place.table.refers_to(&[victim.usage.file.id]) {
                return None;
            }
            let job = Compaction {
                inputs: vec![Input {
                    level: place.level,
                    run: place.run,
                    tables: vec![Arc::clone(place.table)],
                }],
                output: Output { level: place.level, placement: Placement::Join(place.run) },
                relocated: relocated(input, place.table, victim, &victims),
                reason: Reason::Collection {
                    file: victim.usage.file.id,
                    cause: victim.cause,
                    measured: victim.measured,
                    threshold: victim.threshold,
                },
            };
            is_free(input, &job).then_some(job)
        })
    })
}

/// Returns the time at which a dead value becomes due for collection, in microseconds since the Unix
/// epoch. Values that are due already do not count.
pub(super) fn next_due_micros(input: &PickContext<'_>) -> Option<u64> {
    let limit = age_limit(input)?;
    let usage = input.shape.value_usage().into_iter().filter(can_be_collected);
    let due = usage.filter_map(|usage| usage.file.oldest_dead_micros?.checked_add(limit));
    due.filter(|due| *due > input.now_micros).min()
}

/// The age in microseconds at which a dead value becomes due. Tombstones have used part of the time
/// to reach the value, and the rest is for the collection.
fn age_limit(input: &PickContext<'_>) -> Option<u64> {
    input.delete_persistence_micros.map(|micros| micros - micros / 8)
}

/// Returns true if a job could free space: the file is settled, and has both garbage and live
/// values.
fn can_be_collected(usage: &ValueFileUsage) -> bool {
    usage.file.state == ValueFileState::Settled && usage.live_bytes > 0 && usage.garbage_bytes() > 0
}

/// The files to collect, first one first.
fn victims(input: &PickContext<'_>) -> Vec<Victim> {
    let usage = input.shape.value_usage();
    let Some(separation) = input.design.values.separation() else {
        return back_inline(usage);
    };
    let settled = usage.into_iter().filter(|one| one.file.state == ValueFileState::Settled);
    let settled: Vec<ValueFileUsage> = settled.collect();
    let mut files: Vec<ValueFileUsage> =
        settled.iter().filter(|usage| can_be_collected(usage)).cloned().collect();
    files.sort_by_key(|usage| (Reverse(garbage_share(usage)), usage.file.id));
    let overdue = overdue(input, &files);
    let by_space = over_the_bound(separation, &settled, &files);
    let by_share = over_the_limit(input, separation, &files);
    let worst = if by_space.len() < by_share.len() { by_share } else { by_space };
    let is_new =
        |victim: &Victim| overdue.iter().all(|other| other.usage.file.id != victim.usage.file.id);
    let rest: Vec<Victim> = worst.into_iter().filter(is_new).collect();
    [overdue, rest].concat()
}

fn back_inline(mut usage: Vec<ValueFileUsage>) -> Vec<Victim> {
    usage.retain(|one| one.file.state == ValueFileState::Settled && one.live_bytes > 0);
    usage.sort_by_key(|one| (Reverse(garbage_share(one)), one.file.id));
    let victim =
        |usage| Victim { usage, cause: CollectionCause::Inline, measured: 0, threshold: 0 };
    usage.into_iter().map(victim).collect()
}

/// The share of garbage in millionths.
fn garbage_share(usage: &ValueFileUsage) -> u64 {
    let share = u128::from(usage.garbage_bytes()) * 1_000_000 / u128::from(usage.file.bytes.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Files with a dead value that is too old, oldest first.
fn overdue(input: &PickContext<'_>, files: &[ValueFileUsage]) -> Vec<Victim> {
    let Some(limit) = age_limit(input) else { return Vec::new() };
    let aged = files.iter().filter_map(|usage| {
        let age = input.now_micros.saturating_sub(usage.file.oldest_dead_micros?);
        let cause = CollectionCause::Age;
        let victim = Victim { usage: usage.clone(), cause, measured: age, threshold: limit };
        (age >= limit).then_some(victim)
    });
    let mut aged: Vec<Victim> = aged.collect();
    aged.sort_by_key(|victim| (Reverse(victim.measured), victim.usage.file.id));
    aged
}

/// The files that must go so that all settled files together come below the space bound. `files` is
/// sorted by garbage, worst first.
fn over_the_bound(
    separation: &ValueSeparation,
    settled: &[ValueFileUsage],
    files: &[ValueFileUsage],
) -> Vec<Victim> {
    let is_left = |usage: &&ValueFileUsage| !usage.is_dead();
    let live: u64 = settled.iter().map(|usage| usage.live_bytes).sum();
    let mut total: u64 = settled.iter().filter(is_left).map(|usage| usage.file.bytes).sum();
    let percent = |total: u64| u128::from(total) * 100 / u128::from(live.max(1));
    let measured = u64::try_from(percent(total)).unwrap_or(u64::MAX);
    let threshold = separation.space_percent.into();
    let limit = u128::from(live) * u128::from(separation.space_percent);
    let mut victims = Vec::new();
    for usage in files {
        if u128::from(total) * 100 <= limit {
            break;
        }
        total -= usage.garbage_bytes();
        let usage = usage.clone();
        victims.push(Victim { usage, cause: CollectionCause::Space, measured, threshold });
    }
    victims
}

/// The files whose own share of garbage reaches the limit, if collecting them is worth it. `files`
/// is sorted by garbage, worst first.
fn over_the_limit(
    input: &PickContext<'_>,
    separation: &ValueSeparation,
    files: &[ValueFileUsage],
) -> Vec<Victim> {
    let limit = u64::from(separation.garbage_percent);
    let victims: Vec<Victim> = files
        .iter()
        .map_while(|usage| {
            let measured = garbage_share(usage) / 10_000;
            let cause = CollectionCause::Garbage;
            let victim = Victim { usage: usage.clone(), cause, measured, threshold: limit };
            (measured >= limit).then_some(victim)
        })
        .collect();
    let garbage: u64 = victims.iter().map(|victim| victim.usage.garbage_bytes()).sum();
    let mut ids: Vec<ValueFileId> = victims.iter().map(|victim| victim.usage.file.id).collect();
    ids.sort_unstable();
    let users = input.shape.tables().filter(|table| table.refers_to(&ids));
    let rewritten: u64 = users.map(|table| table.size_bytes).sum();
    if garbage < rewritten.saturating_mul(GARBAGE_PER_TABLE_BYTE) {
        return Vec::new();
    }
    victims
}

/// The files that a job on `table` relocates: the first victim, and others as far as the bound on a
/// job allows, in ascending order.
fn relocated(
    input: &PickContext<'_>,
    table: &TableInfo,
    first: &Victim,
    victims: &[Victim],
) -> Vec<ValueFileId> {
    let usual = ValueSeparation::at(0);
    let separation = input.design.values.separation().unwrap_or(&usual);
    let most = separation.file_bytes.saturating_mul(FILES_PER_JOB);
    let bytes_in = |file: ValueFileId| {
        let at = table.value_refs.binary_search_by_key(&file, |used| used.file).ok()?;
        table.value_refs.get(at).map(|used| used.bytes)
    };
    let mut bytes = 0u64;
    let mut files = Vec::new();
    let first_id = first.usage.file.id;
    let others = victims.iter().map(|victim| victim.usage.file.id).filter(|id| *id != first_id);
    for file in [first_id].into_iter().chain(others) {
        let Some(more) = bytes_in(file) else { continue };
        bytes = bytes.saturating_add(more);
        if !files.is_empty() && bytes > most {
            break;
        }
        files.push(file);
    }
    files.sort_unstable();
    files
}
