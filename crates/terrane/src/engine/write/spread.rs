//! Spreads the room that writers have before a stop over the time until a job makes more
//! ([`Violation::Spread`]).
//!
//! The rate is decided whenever a thread takes a portion of the active memtable. The bytes that were written
//! since the previous time then enter a schedule of the tree, and the thread's next write sleeps as long as
//! writers are ahead of it.

use std::time::Duration;

use terrane_policy::admission::{self, Filling, Relief, Spread};

use super::Writer;
use super::delays::SHORTEST_SLEEP;
use super::slow_down::LONGEST_SLEEP;
use super::target::WriteTarget;
use crate::engine::catalog::report_spread;
use crate::engine::tree::{Tree, TreeState};

/// The time for which a thread may write without a sleep. Much shorter sleeps leave too little of a
/// processor's cache to the writer.
const PORTION_NANOS: f64 = 1e6;

/// When the jobs of a tree are expected to make room.
struct JobsOf<'a> {
    tree: &'a Tree,
    state: &'a TreeState,
    memtable_bytes: u64,
}

impl Relief for JobsOf<'_> {
    fn flush_nanos(&self) -> Option<u64> {
        self.tree.relief.flush_nanos_left(self.memtable_bytes)
    }

    fn merge_nanos(&self, level: Option<usize>, is_due: bool) -> Option<u64> {
        // What a merge out of level 0 takes that begins now.
        let shape = self.state.version.shape();
        let bytes = || shape.level(0).size_bytes().saturating_add(shape.level(1).size_bytes());
        self.tree.relief.merge_nanos_left(level, is_due.then(bytes))
    }
}

/// Decides how fast writers may fill a tree, whose active memtable has `filled` of `limit` bytes; `None` if
/// they need no limit. If they do, and the growth of the memtable puts them ahead of the schedule, the next
/// write of this thread sleeps. Where writers do the jobs themselves, no other thread makes room meanwhile.
pub(super) fn schedule(
    writer: &Writer,
    tree: &Tree,
    state: &TreeState,
    (filled, limit): (u64, u64),
) -> Option<Spread> {
    if !state.spreads || writer.context.is_inline() {
        return None;
    }
    let grown = state.active.take_unscheduled(filled);
    let spread = spread(tree, state, filled, limit)?;
    state.active.share().pause(tree.relief.schedule(spread.nanos_of(grown) as u64));
    Some(spread)
}

fn spread(tree: &Tree, state: &TreeState, filled: u64, limit: u64) -> Option<Spread> {
    let design = tree.design();
    let filling = Filling {
        immutable_memtables: state.immutables.len(),
        left_bytes: limit.saturating_sub(filled),
        memtable_bytes: limit,
    };
    let jobs = JobsOf { tree, state, memtable_bytes: limit };
    admission::spread(state.version.shape(), filling, &design, &jobs)
}

/// Returns the most bytes that a thread may write before it sleeps.
pub(super) fn portion_bytes(spread: &Spread) -> u64 {
    (PORTION_NANOS / spread.nanos_per_byte) as u64
}

/// Returns how long this thread sleeps because it is ahead of the schedule of any tree of a write, and reports
/// it.
pub(super) fn ahead_of_schedules(writer: &Writer, target: &WriteTarget<'_>) -> Duration {
    match target {
        WriteTarget::One { tree, .. } => ahead_of_schedule(writer, tree),
        WriteTarget::Batch { batch, .. } => {
            let trees = writer.catalog.trees();
            let trees = batch.keyspaces().iter().filter_map(|id| trees.get(id));
            trees.map(|tree| ahead_of_schedule(writer, tree)).max().unwrap_or_default()
        }
    }
}

fn ahead_of_schedule(writer: &Writer, tree: &Tree) -> Duration {
    let state = tree.state();
    // The rest is decided again at the next portion.
    let ahead = state.active.share().take_pause().min(tree.relief.ahead()).min(LONGEST_SLEEP);
    if ahead >= SHORTEST_SLEEP {
        let (filled, limit) = (state.active.filled_bytes(), writer.memtable_bytes_max(tree));
        let spread = spread(tree, &state, filled, limit);
        // A listener must not keep a memtable in memory that is flushed meanwhile.
        drop(state);
        if let Some(spread) = spread {
            report_spread(&writer.catalog, tree, &spread.pressure);
        }
    }
    ahead
}

/// Like [`schedule`], of a full memtable. Returns how far writers are ahead of the schedule.
pub(super) fn schedule_full(
    writer: &Writer,
    tree: &Tree,
    state: &TreeState,
    memtable: (u64, u64),
) -> Duration {
    match schedule(writer, tree, state, memtable) {
        Some(_) => state.active.share().take_pause(),
        None => Duration::ZERO,
    }
}
