//! Where a flush puts the entries of a memtable: into a new run of level 0, or merged with existing
//! runs there (memory-buffer paper, §3.5).
//!
//! A merging flush reads the tables of the newest runs of level 0 that share keys with the
//! memtable, and writes the result into the oldest of these runs. So a settled level 0 is one run,
//! which grows to the capacity of level 0 and then moves on as usual. Lookups search one run in
//! level 0 instead of several; in return, every byte is rewritten several times.
//!
//! Compactions see the memtable as a run newer than all of level 0, and the flush as a merge of the
//! memtable with older runs. The flush is therefore subject to [`crate::soundness`] and
//! [`Compaction::conflicts_with`]. A flush never waits. It falls back to a new run if
//! 1. a job has claimed the tables that it would merge, or they could not be read;
//! 2. the merged run would exceed the capacity of level 0, which bounds what a flush rewrites;
//! 3. a due compaction needs these tables, or would take the result at once. Otherwise, a sequence of
//!    flushes could delay that compaction or rewrite data in vain.

use std::fmt;
use std::sync::Arc;

use crate::compaction::{Compaction, MEMTABLE, Output, Placement, Reason};
use crate::design::FlushMode;
use crate::forecast::SimulatedTree;
use crate::key_range::KeyRange;
use crate::pick::{PickContext, closed_under_overlap, is_free, pick};
use crate::shape::{Run, RunId, TableInfo, TreeShape};
use crate::units::format_bytes;

/// The decision about one flush.
#[derive(Debug, Clone, PartialEq)]
pub enum FlushPlan {
    /// The flush creates a new run.
    NewRun(NewRunReason),
    /// The flush merges the memtable, the first input, with tables of level 0, or adds its tables
    /// to a run with which it shares no key.
    Merge(Compaction),
}

/// Why a flush creates a new run.
#[derive(Debug, Clone, PartialEq)]
pub enum NewRunReason {
    /// The design asks for a new run at each flush.
    Design,
    /// Level 0 is empty.
    Empty,
    /// A job has claimed the tables that it would merge, or they could not be read.
    Busy,
    /// The merged run would be too large.
    TooLarge {
        /// Bytes of the merged run.
        bytes: u64,
        /// The capacity of level 0 in bytes.
        limit: u64,
    },
    /// A due compaction takes the tables that it would merge, or would take the result.
    Due(Reason),
}

impl NewRunReason {
    /// Returns true if the design prefers a merge.
    pub fn is_fallback(&self) -> bool {
        !matches!(self, Self::Design | Self::Empty)
    }
}

impl fmt::Display for NewRunReason {
    /// Completes the sentence "a new run because …".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Design => f.write_str("the design has flush=new"),
            Self::Empty => f.write_str("level 0 is empty"),
            Self::Busy => f.write_str("a job uses the tables to merge with"),
            Self::TooLarge { bytes, limit } => {
                let (bytes, limit) = (format_bytes(*bytes), format_bytes(*limit));
                write!(f, "the merged run would have {bytes}, and level 0 holds at most {limit}")
            }
            Self::Due(reason) => write!(f, "a compaction of level 0 is due: {reason}"),
        }
    }
}

/// Decides what a flush does with a memtable whose keys and range tombstones lie within `range`, and
/// whose tables will take about `bytes`.
pub fn plan(input: &PickContext<'_>, range: &KeyRange, bytes: u64) -> FlushPlan {
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
        let next = pick(&PickContext { shape, ..*input })?;
        next.conflicts_with(&merge).then_some(next.reason)
    };
    let reason = due(input.shape).or_else(|| due(&merged(input, &merge)?));
    reason.map_or(FlushPlan::Merge(merge), |reason| FlushPlan::NewRun(NewRunReason::Due(reason)))
}

/// Returns the tree after the flush.
fn merged(input: &PickContext<'_>, merge: &Compaction) -> Option<TreeShape> {
    let mut played = SimulatedTree::of(with_memtable(input.shape, merge), input.design);
    played.now_micros = input.now_micros;
    played.oldest_snapshot = input.oldest_snapshot;
    played.carry_out(merge).ok()?;
    Some(played.shape)
}

/// Returns the tree with the memtable as its newest run, for which a merging flush must be sound.
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

/// Merges the memtable with the overlapping tables of as many of the newest runs as the rules allow.
fn merge(input: &PickContext<'_>, memtable: &Arc<TableInfo>) -> Result<Compaction, NewRunReason> {
    let level0 = &input.shape.level(0).runs;
    let newest = level0.first().ok_or(NewRunReason::Empty)?;
    let limit = input.design.capacity_bytes(0, input.shape.last_level());
    let mut runs = vec![Run { id: RunId(newest.id.0 + 1), tables: vec![Arc::clone(memtable)] }];
    let mut found = Err(NewRunReason::Empty);
    for run in level0 {
        runs.push(run.clone());
        let inputs = closed_under_overlap(0, &runs, &memtable.range);
        let output = Output { level: 0, placement: Placement::Join(run.id) };
        let merge = Compaction { inputs, output, relocated: Vec::new(), reason: Reason::Flush };
        // The size of the merged run includes the rest of the joined run. Otherwise a run would keep
        // growing by flushes of few keys while a compaction occupies another run.
        let joined = run.tables.iter().filter(|table| !merge.takes(table.id));
        let bytes = merge.input_bytes() + joined.map(|table| table.size_bytes).sum::<u64>();
        let apart = if bytes > limit {
            NewRunReason::TooLarge { bytes, limit }
        } else if is_free(input, &merge) {
            // Joining an older run pays off only if it adds tables to merge.
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
