//! Plays a recording, and asks a design at every decision of the system.

use std::collections::BTreeSet;
use std::fmt;

use super::difference::{self, Choice, Difference};
use super::trace::{Event, Trace};
use super::tree::SystemTree;
use crate::compaction::Compaction;
use crate::design::Design;
use crate::pick::{PickContext, pick};
use crate::shape::{ShapeError, TableId};

/// Why a recording cannot be played.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// A compaction takes a table that the tree does not have.
    Unknown(TableId),
    /// An event breaks an invariant of the tree.
    Shape(ShapeError),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => {
                write!(f, "the recording takes table {id}, which the tree does not contain")
            }
            Self::Shape(error) => write!(f, "the recording does not fit the tree: {error}"),
        }
    }
}

impl std::error::Error for ReplayError {}

/// The choices of the system and the design for the same tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// The index of the event in the recording.
    pub event: usize,
    /// What the system did: a compaction, or [`Event::Rest`].
    pub system: Event,
    /// What the design would do.
    pub design: Option<Compaction>,
    /// How the two differ; `None` if they are equal.
    pub difference: Option<Difference>,
}

/// Plays `trace` and compares every decision with the one of `design`.
///
/// # Errors
/// Returns an error if the recording is damaged: an event does not fit the tree.
pub fn replay(trace: &Trace, design: &Design) -> Result<Vec<Decision>, ReplayError> {
    let is_list = design.strategy.size_tiered().is_some();
    let mut tree = SystemTree::start(trace)?;
    let mut decisions = Vec::new();
    for (index, event) in trace.events.iter().enumerate() {
        if event.is_decision() {
            decisions.push(decide(&tree, design, is_list, (index, event)));
        }
        tree.apply(event)?;
    }
    Ok(decisions)
}

fn decide(
    tree: &SystemTree,
    design: &Design,
    is_list: bool,
    (index, event): (usize, &Event),
) -> Decision {
    let shape = tree.shape(is_list);
    let cursors = tree.design_cursors(is_list);
    let context = PickContext { cursors: &cursors, ..PickContext::new(&shape, design) };
    let ours = pick(&context);
    let theirs = match event {
        Event::Compaction(compaction) => {
            let ids: BTreeSet<TableId> = compaction.input_ids().collect();
            Some(Choice::new(&shape, ids, tree.design_level(compaction.level, is_list)))
        }
        _ => None,
    };
    let chosen = ours.as_ref().map(|job| {
        Choice::new(&shape, job.tables().map(|table| table.id).collect(), job.output.level)
    });
    let difference = difference::between(&context, theirs.as_ref(), chosen.as_ref());
    Decision { event: index, system: event.clone(), design: ours, difference }
}
