//! What might be done, and in which order.

use std::ops::Range;
use std::sync::Arc;

use super::input::PickInput;
use crate::compaction::Reason;
use crate::shape::{Run, TableInfo};
use crate::strategy::{Trigger, TriggerKind};

/// What a candidate is about.
#[derive(Debug, Clone)]
pub(super) enum Extent {
    /// The level is too full.
    Level,
    /// These tables should move down, worst first.
    Marked(Vec<Arc<TableInfo>>),
    /// These tables should be rewritten where they are, worst first.
    InPlace(Vec<Arc<TableInfo>>),
    /// All runs should become one.
    Tree,
    /// These runs of the whole tree, the newest first, should become one.
    Runs(Range<usize>),
}

/// A level that should act, and how badly.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) reason: Reason,
    pub(super) level: usize,
    /// Precedence; smaller goes first.
    pub(super) rank: usize,
    /// Measured value over threshold.
    pub(super) score: f64,
    pub(super) extent: Extent,
}

impl Extent {
    /// The tables of a run that may be compacted, with their indexes.
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

impl Candidate {
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

/// By precedence, and then worst first.
pub(super) fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| a.rank.cmp(&b.rank).then(b.score.total_cmp(&a.score)));
}

/// The triggers of a level with their precedence. Those of how full a level is share that of the
/// first of them, so that the fullest level goes first, whichever of them it is by. The time in
/// which deletes have to be persistent goes before everything.
pub(super) fn ranked<'a>(
    input: &PickInput<'a>,
    level: usize,
) -> impl Iterator<Item = (usize, &'a Trigger)> + use<'a> {
    let triggers = input.design.strategy.triggers.at(level);
    let load = load_rank(input, level);
    triggers
        .iter()
        .enumerate()
        .map(move |(at, trigger)| (if trigger.kind().is_load() { load } else { at + 1 }, trigger))
}

/// The precedence of what a level does because of how full it is.
pub(super) fn load_rank(input: &PickInput<'_>, level: usize) -> usize {
    let triggers = input.design.strategy.triggers.at(level);
    triggers.iter().position(|trigger| trigger.kind().is_load()).unwrap_or(triggers.len()) + 1
}
