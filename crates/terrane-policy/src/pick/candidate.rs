//! Candidates for a compaction, and their order.

use std::ops::Range;
use std::sync::Arc;

use super::context::PickContext;
use crate::compaction::Reason;
use crate::shape::{Run, TableInfo};
use crate::strategy::{Trigger, TriggerKind};

/// The precedence of delete persistence. A design's triggers begin at 1.
pub(super) const PROMISED: usize = 0;

/// The data that a candidate would compact.
#[derive(Debug, Clone)]
pub(super) enum Extent {
    /// Some of the level's data, because the level is too full.
    Level,
    /// These tables move down, worst first.
    Marked(Vec<Arc<TableInfo>>),
    /// These tables are rewritten in place, worst first.
    InPlace(Vec<Arc<TableInfo>>),
    /// All runs become one run.
    Tree,
    /// These runs of the whole tree, listed newest first, become one run.
    Runs(Range<usize>),
}

/// A level that should act, and how urgently.
#[derive(Debug, Clone)]
pub(super) struct CompactionCandidate {
    pub(super) reason: Reason,
    pub(super) level: usize,
    /// The precedence; the candidate with the smaller number goes first.
    pub(super) rank: usize,
    /// The measured value divided by the threshold.
    pub(super) score: f64,
    pub(super) extent: Extent,
}

impl Extent {
    /// Returns the tables of a run that may be compacted, with their indexes.
    pub(super) fn tables_of<'a>(
        &'a self,
        run: &'a Run,
    ) -> impl Iterator<Item = (usize, &'a Arc<TableInfo>)> {
        run.tables.iter().enumerate().filter(move |(_, table)| match self {
            Self::Marked(marked) | Self::InPlace(marked) => {
                marked.iter().any(|other| other.id == table.id)
            }
            Self::Level | Self::Tree | Self::Runs(_) => true,
        })
    }
}

impl CompactionCandidate {
    pub(super) fn triggered(
        trigger: TriggerKind,
        level: usize,
        rank: usize,
        (measured, threshold): (u64, u64),
        extent: Extent,
    ) -> Self {
        let score = measured as f64 / threshold.max(1) as f64;
        let reason = Reason::Triggered { trigger, level, measured, threshold, movement: None };
        Self { reason, level, rank, score, extent }
    }
}

/// Sorts candidates by precedence, then worst first.
pub(super) fn sort(candidates: &mut [CompactionCandidate]) {
    candidates.sort_by(|a, b| a.rank.cmp(&b.rank).then(b.score.total_cmp(&a.score)));
}

/// Returns the triggers of a level with their precedence. All fullness triggers share the
/// precedence of the first of them, so that the fullest level goes first, whichever trigger fired.
/// Delete persistence takes precedence over everything.
pub(super) fn ranked<'a>(
    input: &PickContext<'a>,
    level: usize,
) -> impl Iterator<Item = (usize, &'a Trigger)> + use<'a> {
    let triggers = input.design.strategy.triggers.at(level);
    let load = load_rank(input, level);
    triggers
        .iter()
        .enumerate()
        .map(move |(at, trigger)| (if trigger.kind().is_load() { load } else { at + 1 }, trigger))
}

/// Returns the precedence of a level's fullness triggers.
pub(super) fn load_rank(input: &PickContext<'_>, level: usize) -> usize {
    let triggers = input.design.strategy.triggers.at(level);
    triggers.iter().position(|trigger| trigger.kind().is_load()).unwrap_or(triggers.len()) + 1
}
