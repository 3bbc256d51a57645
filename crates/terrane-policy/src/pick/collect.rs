//! Collects value files: jobs that copy the live values of files with much garbage to new files, so
//! that the old files can be removed.
//!
//! A job relocates the pointers of its tables into the chosen files, the victims. Once no table refers
//! to a victim, the engine removes the file. Merges relocate values as well, because they write new
//! tables anyway. If no merge is due, a collection job rewrites one table in place; if dead values are
//! overdue, this job precedes merges. A table holds some fifty bytes for each value, so rewriting it is
//! cheap compared with moving values. New files hold values whose keys are close to each other, so few
//! tables refer to them, and collecting them again is cheap.
//!
//! A file can be a victim when it is settled and part of it is garbage. Victims are, in this order:
//! 1. files with a dead value that delete persistence requires to be removed;
//! 2. the files with the largest share of garbage, as many as must lose their garbage to stay below the
//!    design's space bound;
//! 3. the files whose share of garbage reaches the design's limit. To justify a collection job, they
//!    must together hold enough garbage to be worth rewriting all tables that refer to them;
//! 4. all files, if the design stores values inline: their values go back to tables.
//!
//! Moved values exist twice until their victim is removed, so jobs work on few victims at a time.
//!
//! Jobs terminate: a file's garbage never shrinks, and a job turns live values of its victims into
//! garbage, so a victim stays a victim, and every job leaves fewer live values in victims. Files that
//! are all garbage need no job.

use std::cmp::Reverse;
use std::sync::Arc;

use super::context::{PickContext, is_free};
use crate::compaction::{
    CollectionCause, Compaction, Input, InputGroup, Output, Placement, Reason,
};
use crate::design::ValueSeparation;
use crate::shape::{SettledValues, TableInfo, ValueFileId, ValueFileState, ValueFileUsage};

/// A job relocates at most this many times the size of a value file, or the values that one table has
/// in one file. The limit bounds the space that a job needs before it frees any, and how long the job
/// blocks compactions of its table.
const FILES_PER_JOB: u64 = 4;

/// The victims at any time hold at most one part in this many of all value file bytes, or as many bytes
/// as one job relocates.
const VICTIMS_SHARE: u64 = 10;

/// A merge relocates at most this many times the value bytes that it moves down, or as many as a
/// collection job. Collections then keep pace with writers, because merges move down all that is
/// written.
const VALUES_PER_MERGE: u64 = 2;

/// Collection for the space bound begins when garbage reaches this percentage of what the bound allows,
/// because writers slow down at the bound.
const START_PERCENT: u64 = 85;

/// The garbage of the files at their limit must be at least this many times the size of the tables that
/// refer to them. Rewriting these tables then adds at most a quarter to the bytes that writers wrote.
const GARBAGE_PER_TABLE_BYTE: u64 = 4;

/// A file to collect, and why.
#[derive(Debug, Clone)]
struct Victim {
    usage: ValueFileUsage,
    cause: CollectionCause,
    measured: u64,
    threshold: u64,
}

/// Returns the next job that removes a dead value past its delete persistence deadline. Such jobs
/// precede all compactions except those for tombstones, and several may run concurrently, because a
/// range delete makes all files of its keys due at once.
pub(super) fn overdue_job(input: &PickContext<'_>) -> Option<Compaction> {
    if input.shape.value_files.is_empty() || age_limit(input).is_none() {
        return None;
    }
    let usage = input.shape.value_usage().into_iter();
    let files: Vec<ValueFileUsage> = usage.filter(can_be_collected).collect();
    next_job(input, &overdue(input, &files))
}

/// Returns the next job that collects value files; `None` if no file needs it or conflicting jobs are
/// running.
pub(super) fn pick(input: &PickContext<'_>) -> Option<Compaction> {
    let is_collection = |job: &Compaction| matches!(job.reason, Reason::Collection { .. });
    // Only one collection runs at a time, which leaves threads to other jobs.
    if input.shape.value_files.is_empty() || input.in_progress.iter().any(is_collection) {
        return None;
    }
    next_job(input, &victims(input, Worth::OwnJob))
}

/// Returns the next job that moves live values out of those of `files` that contain garbage; `None` if
/// no table refers to such a file or conflicting jobs are running.
pub fn manual_collection(input: &PickContext<'_>, files: &[ValueFileId]) -> Option<Compaction> {
    let mut usage = input.shape.value_usage();
    usage.retain(|one| has_garbage(input, one) && files.binary_search(&one.file.id).is_ok());
    let victim = |usage| Victim { usage, cause: CollectionCause::Age, measured: 0, threshold: 0 };
    let victims: Vec<Victim> = usage.into_iter().map(victim).collect();
    let job = next_job(input, &victims)?;
    Some(Compaction { reason: Reason::Manual { level: job.output.level, rewrites: false }, ..job })
}

/// Returns the value files with garbage to which the inputs of a requested compaction refer.
pub(super) fn with_request(input: &PickContext<'_>, request: &Compaction) -> Vec<ValueFileId> {
    let mut usage = input.shape.value_usage();
    usage.retain(|one| {
        has_garbage(input, one) && request.tables().any(|table| table.refers_to(&[one.file.id]))
    });
    usage.into_iter().map(|one| one.file.id).collect()
}

/// Returns true if a requested compaction moves the live values of a file: it has garbage, or the
/// design stores values inline.
fn has_garbage(input: &PickContext<'_>, usage: &ValueFileUsage) -> bool {
    let is_inline = input.design.values.separation().is_none();
    let goes_inline = is_inline && usage.file.state == ValueFileState::Settled && !usage.is_dead();
    can_be_collected(usage) || goes_inline
}

/// Returns the first job that relocates values of a victim and conflicts with no running job.
fn next_job(input: &PickContext<'_>, victims: &[Victim]) -> Option<Compaction> {
    victims.iter().find_map(|victim| {
        let mut places: Vec<_> = input.shape.places().collect();
        // Deepest level first: tables of upper levels will soon be merged anyway.
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
                relocated: relocated(&[place.table], Some(victim), victims, job_bytes_max(input)),
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

/// Returns the value files whose values a merge also relocates.
pub(super) fn with_merge(input: &PickContext<'_>, merge: &Compaction) -> Vec<ValueFileId> {
    let is_merge = |group: &InputGroup| matches!(group, InputGroup::Merge(_));
    if input.shape.value_files.is_empty() || !merge.groups(input.shape).iter().any(is_merge) {
        return Vec::new();
    }
    let from = merge.from_level();
    let moving = merge.inputs.iter().filter(|input| input.level == from);
    let values: u64 = moving.flat_map(|input| &input.tables).map(|table| table.value_bytes()).sum();
    let most = values.saturating_mul(VALUES_PER_MERGE).max(job_bytes_max(input));
    let tables: Vec<&Arc<TableInfo>> = merge.tables().collect();
    relocated(&tables, None, &victims(input, Worth::OnTheWay), most)
}

/// Returns the time at which a dead value becomes due for collection, in microseconds since the Unix
/// epoch. Values that are already due do not count.
pub(super) fn next_due_micros(input: &PickContext<'_>) -> Option<u64> {
    let limit = age_limit(input)?;
    let usage = input.shape.value_usage().into_iter().filter(can_be_collected);
    let due = usage.filter_map(|usage| usage.file.oldest_dead_micros?.checked_add(limit));
    due.filter(|due| *due > input.now_micros).min()
}

/// Returns the age in microseconds at which a dead value becomes due. Tombstones may use the first part
/// of the persistence time to reach the value; the rest is for the collection.
fn age_limit(input: &PickContext<'_>) -> Option<u64> {
    input.delete_persistence_micros.map(|micros| micros - micros / 8)
}

/// Returns true if a job could free space: the file is settled, and has both garbage and live
/// values.
fn can_be_collected(usage: &ValueFileUsage) -> bool {
    usage.file.state == ValueFileState::Settled && usage.live_bytes > 0 && usage.garbage_bytes() > 0
}

/// Returns the maximum value bytes that a collection job relocates, unless its table has more in one
/// file.
fn job_bytes_max(input: &PickContext<'_>) -> u64 {
    let usual = ValueSeparation::at(0);
    let separation = input.design.values.separation().unwrap_or(&usual);
    separation.file_bytes.saturating_mul(FILES_PER_JOB)
}

/// Why the tables that refer to victims are rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Worth {
    /// Only to collect the victims.
    OwnJob,
    /// A merge rewrites them anyway.
    OnTheWay,
}

/// Returns the files to collect, most urgent first.
fn victims(input: &PickContext<'_>, worth: Worth) -> Vec<Victim> {
    let usage = input.shape.value_usage();
    let Some(separation) = input.design.values.separation() else {
        return at_a_time(input, back_inline(usage));
    };
    let settled = SettledValues::of(&usage);
    let mut files: Vec<ValueFileUsage> = usage.into_iter().filter(can_be_collected).collect();
    files.sort_by_key(|usage| (Reverse(garbage_share(usage)), usage.file.id));
    let overdue = overdue(input, &files);
    let by_space = over_the_bound(separation, settled, &files);
    let mut by_share = at_a_time(input, over_the_limit(separation, &files));
    if worth == Worth::OwnJob && !is_worth_its_tables(input, &by_share) {
        by_share.clear();
    }
    let by_space = at_a_time(input, by_space);
    let worst = if by_space.len() < by_share.len() { by_share } else { by_space };
    let is_new =
        |victim: &Victim| overdue.iter().all(|other| other.usage.file.id != victim.usage.file.id);
    let rest: Vec<Victim> = worst.into_iter().filter(is_new).collect();
    [overdue, rest].concat()
}

/// Keeps the first victims: as many as jobs may work on at a time.
fn at_a_time(input: &PickContext<'_>, mut victims: Vec<Victim>) -> Vec<Victim> {
    let most = job_bytes_max(input).max(input.shape.value_bytes() / VICTIMS_SHARE);
    let mut bytes = 0u64;
    let mut is_first = true;
    victims.retain(|victim| {
        bytes = bytes.saturating_add(victim.usage.file.bytes);
        std::mem::take(&mut is_first) || bytes <= most
    });
    victims
}

fn back_inline(mut usage: Vec<ValueFileUsage>) -> Vec<Victim> {
    usage.retain(|one| one.file.state == ValueFileState::Settled && one.live_bytes > 0);
    usage.sort_by_key(|one| (Reverse(garbage_share(one)), one.file.id));
    let victim =
        |usage| Victim { usage, cause: CollectionCause::Inline, measured: 0, threshold: 0 };
    usage.into_iter().map(victim).collect()
}

/// Returns the share of garbage in millionths.
fn garbage_share(usage: &ValueFileUsage) -> u64 {
    let share = u128::from(usage.garbage_bytes()) * 1_000_000 / u128::from(usage.file.bytes.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// Returns the files with a dead value that is too old, oldest first.
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

/// Returns the files that must be collected to keep all settled files together below the space bound.
/// `files` is sorted by garbage, worst first.
fn over_the_bound(
    separation: &ValueSeparation,
    settled: SettledValues,
    files: &[ValueFileUsage],
) -> Vec<Victim> {
    let allowed = u64::from(separation.space_percent).saturating_sub(100);
    let threshold = 100 + allowed * START_PERCENT / 100;
    let limit = u128::from(settled.live_bytes) * u128::from(threshold);
    let mut total = settled.bytes;
    let mut victims = Vec::new();
    for usage in files {
        if u128::from(total) * 100 <= limit {
            break;
        }
        total -= usage.garbage_bytes();
        let (usage, measured) = (usage.clone(), settled.percent());
        victims.push(Victim { usage, cause: CollectionCause::Space, measured, threshold });
    }
    victims
}

/// Returns the files whose own share of garbage reaches the limit. `files` is sorted by garbage, worst
/// first.
fn over_the_limit(separation: &ValueSeparation, files: &[ValueFileUsage]) -> Vec<Victim> {
    let threshold = u64::from(separation.garbage_percent);
    let victims = files.iter().map_while(|usage| {
        let measured = garbage_share(usage) / 10_000;
        let (usage, cause) = (usage.clone(), CollectionCause::Garbage);
        (measured >= threshold).then_some(Victim { usage, cause, measured, threshold })
    });
    victims.collect()
}

/// Returns true if the garbage of victims is worth rewriting the tables that refer to them.
fn is_worth_its_tables(input: &PickContext<'_>, victims: &[Victim]) -> bool {
    let garbage: u64 = victims.iter().map(|victim| victim.usage.garbage_bytes()).sum();
    let mut ids: Vec<ValueFileId> = victims.iter().map(|victim| victim.usage.file.id).collect();
    ids.sort_unstable();
    let users = input.shape.tables().filter(|table| table.refers_to(&ids));
    let rewritten: u64 = users.map(|table| table.size_bytes).sum();
    garbage >= rewritten.saturating_mul(GARBAGE_PER_TABLE_BYTE)
}

/// Returns the files that a job on `tables` relocates, in ascending order: `first` if given, and other
/// victims in their order. If there are several, their values in `tables` take at most `most` bytes.
fn relocated(
    tables: &[&Arc<TableInfo>],
    first: Option<&Victim>,
    victims: &[Victim],
    most: u64,
) -> Vec<ValueFileId> {
    let bytes_in = |file: ValueFileId| -> u64 {
        let used = |table: &&Arc<TableInfo>| {
            let at = table.value_refs.binary_search_by_key(&file, |used| used.file).ok()?;
            table.value_refs.get(at).map(|used| used.bytes)
        };
        tables.iter().filter_map(used).sum()
    };
    let mut bytes = 0u64;
    let mut files = Vec::new();
    let first_id = first.map(|first| first.usage.file.id);
    let others = victims.iter().map(|victim| victim.usage.file.id);
    for file in first_id.into_iter().chain(others.filter(|id| Some(*id) != first_id)) {
        let more = bytes_in(file);
        if more == 0 {
            continue;
        }
        // The first file is taken whatever its size; a later one that is too large is skipped.
        if !files.is_empty() && bytes.saturating_add(more) > most {
            continue;
        }
        bytes = bytes.saturating_add(more);
        files.push(file);
    }
    files.sort_unstable();
    files
}
