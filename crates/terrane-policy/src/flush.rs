//! Where a flush puts the entries of a memtable: into a new run of level 0, or together with what is
//! there (memory-buffer paper, §3.5).
//!
//! A flush that merges reads the tables of the newest runs of level 0 that share keys with the
//! memtable, and writes all of it into the place of the oldest of these runs. So level 0 is one run at
//! rest, which grows until it holds what level 0 may, and then moves on as it would otherwise.
//! Lookups have one run to look into there instead of several; every byte is rewritten several times
//! for it.
//!
//! To compactions the memtable is a run that is newer than all of level 0, and the flush a merge of
//! it with older ones: [`crate::soundness`] and [`Compaction::conflicts_with`] hold it to their rules.
//! A flush never waits. It makes a new run where
//! 1. what it would merge is in use by a job, or could not be read;
//! 2. the run that takes it would be more than level 0 may hold: no flush rewrites more than that;
//! 3. a compaction that is due needs what it would hold, or would take at once what it makes. Flushes
//!    one after the other would keep that compaction waiting, or be for nothing.

use std::fmt;
use std::sync::Arc;

use crate::compaction::{Compaction, MEMTABLE, Output, Placement, Reason};
use crate::design::FlushMode;
use crate::forecast::SimulatedTree;
use crate::key_range::KeyRange;
use crate::pick::{PickInput, closed_under_overlap, is_free, pick};
use crate::shape::{Run, RunId, TableInfo, TreeShape};
use crate::units::format_bytes;

/// What one flush does.
#[derive(Debug, Clone, PartialEq)]
pub enum FlushPlan {
    /// It makes a new run.
    NewRun(NewRunReason),
    /// It merges the memtable, the first input, with tables of level 0, or only puts its tables
    /// beside them where no key is shared.
    Merge(Compaction),
}

/// Why a flush makes a new run.
#[derive(Debug, Clone, PartialEq)]
pub enum NewRunReason {
    /// The design says so.
    Design,
    /// Level 0 has nothing to merge with.
    Empty,
    /// A job takes what it would be merged with, or that could not be read.
    Busy,
    /// It would be more than a flush may rewrite.
    TooLarge {
        /// Bytes of the run that would take the memtable.
        bytes: u64,
        /// What level 0 may hold.
        limit: u64,
    },
    /// A compaction takes what it would be merged with, or would take the result.
    Due(Reason),
}

impl NewRunReason {
    /// Whether the design would rather have had it merged.
    pub fn is_fallback(&self) -> bool {
        !matches!(self, Self::Design | Self::Empty)
    }
}

impl fmt::Display for NewRunReason {
    /// What follows "a run of its own, as".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Design => f.write_str("the design has flushes make new runs"),
            Self::Empty => f.write_str("level 0 has nothing to merge it with"),
            Self::Busy => f.write_str("what it would be merged with is in use"),
            Self::TooLarge { bytes, limit } => {
                let (bytes, limit) = (format_bytes(*bytes), format_bytes(*limit));
                write!(f, "the run with it would be {bytes}, and level 0 holds {limit}")
            }
            Self::Due(reason) => write!(f, "level 0 is compacted next: {reason}"),
        }
    }
}

/// What a flush should do with a memtable whose keys, and the ranges that it deletes, are within
/// `range`, and that makes about `bytes` of tables.
pub fn plan(input: &PickInput<'_>, range: &KeyRange, bytes: u64) -> FlushPlan {
    if input.design.flush == FlushMode::New {
        return FlushPlan::NewRun(NewRunReason::Design);
    }
    let mut memtable = TableInfo::new(MEMTABLE.0, range.clone(), bytes);
    memtable.created_micros = input.now_micros;
    let memtable = Arc::new(memtable);
    let merge = match merge(input, &memtable) {
        Ok(merge) => merge,
        Err(apart) => return FlushPlan::NewRun(apart),
    };
    let due = |shape: &TreeShape| {
        let next = pick(&PickInput { shape, ..*input })?;
        next.conflicts_with(&merge).then_some(next.reason)
    };
    let reason = due(input.shape).or_else(|| due(&merged(input, &merge)?));
    reason.map_or(FlushPlan::Merge(merge), |reason| FlushPlan::NewRun(NewRunReason::Due(reason)))
}

/// The tree as a flush would leave it.
fn merged(input: &PickInput<'_>, merge: &Compaction) -> Option<TreeShape> {
    let mut played = SimulatedTree::of(with_memtable(input.shape, merge), input.design.table_bytes);
    played.now_micros = input.now_micros;
    played.oldest_snapshot = input.oldest_snapshot;
    played.carry_out(merge).ok()?;
    Some(played.shape)
}

/// The tree with the memtable as its newest run, which is the tree that a merging flush is sound
/// for.
pub fn with_memtable(shape: &TreeShape, merge: &Compaction) -> TreeShape {
    let mut shape = shape.clone();
    if shape.levels.is_empty() {
        shape.levels.push(Default::default());
    }
    let newest = merge.inputs.first().filter(|input| merge.takes(MEMTABLE) && input.level == 0);
    if let Some((input, level0)) = newest.zip(shape.levels.first_mut()) {
        level0.runs.insert(0, Run { id: input.run, tables: input.tables.clone() });
    }
    shape
}

/// The memtable with what shares keys with it in as many of the newest runs as the rules allow.
fn merge(input: &PickInput<'_>, memtable: &Arc<TableInfo>) -> Result<Compaction, NewRunReason> {
    let level0 = &input.shape.level(0).runs;
    let newest = level0.first().ok_or(NewRunReason::Empty)?;
    let limit = input.design.capacity_bytes(0, input.shape.last_level());
    let mut runs = vec![Run { id: RunId(newest.id.0 + 1), tables: vec![Arc::clone(memtable)] }];
    let mut found = Err(NewRunReason::Empty);
    for run in level0 {
        runs.push(run.clone());
        let inputs = closed_under_overlap(0, &runs, &memtable.range);
        let output = Output { level: 0, placement: Placement::Join(run.id) };
        let merge = Compaction { inputs, output, reason: Reason::Flush };
        // With what stays of the run that it joins: else flushes of few keys would have one grow for as
        // long as a compaction is at another.
        let joined = run.tables.iter().filter(|table| !merge.takes(table.id));
        let bytes = merge.input_bytes() + joined.map(|table| table.size_bytes).sum::<u64>();
        let apart = if bytes > limit {
            NewRunReason::TooLarge { bytes, limit }
        } else if is_free(input, &merge) {
            // An older run is only worth joining for what of it is merged.
            let takes_more = |less: &Compaction| merge.tables().count() > less.tables().count();
            if found.as_ref().map_or(true, takes_more) {
                found = Ok(merge);
            }
            continue;
        } else {
            NewRunReason::Busy
        };
        return found.map_err(|_| apart);
    }
    found
}
