//! Writers that spread the room before a stop over the time until a job ends, as in the engine.

use terrane_policy::admission::{Filling, Relief, nanos_left, spread};

use super::Simulation;
use super::state::TreeState;

/// The rate falls continuously; it is decided again after this fraction of the time until the job ends.
const DECIDE_PART: f64 = 1.0 / 16.0;

/// The shortest time that a job is expected to need, as in the engine.
const LEFT_NANOS_MIN: f64 = 1e6;

/// The shortest time, in seconds, for which a rate holds.
const HOLDS_MIN: f64 = 1e-3;

/// A limit on the rate of writers.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpreadRate {
    pub(super) writes_per_second: f64,
    /// When the rate is decided again.
    pub(super) until: f64,
}

/// The jobs of a tree. As in the engine, their ends are expected from their progress since they began, which
/// includes the time in which others were served, and from the times of earlier jobs.
struct JobsOf<'a> {
    tree: &'a TreeState<'a>,
    now: f64,
}

impl JobsOf<'_> {
    fn nanos_left(&self, done: f64, began: f64, whole: f64) -> Option<u64> {
        let left = nanos_left((self.now - began) * 1e9, done, whole);
        left.map(|left| left.max(LEFT_NANOS_MIN) as u64)
    }
}

impl Relief for JobsOf<'_> {
    fn flush_nanos(&self) -> Option<u64> {
        let whole = self.tree.times.flush * self.tree.design.buffer_bytes as f64;
        let flushing = self.tree.flushing.as_ref();
        let (done, began) = flushing.map_or((0.0, self.now), |one| (one.done, one.began));
        self.nanos_left(done, began, whole)
    }

    fn merge_nanos(&self, level: Option<usize>, is_due: bool) -> Option<u64> {
        let merges = self.tree.merges.iter();
        let merges = merges.filter(|merge| level.is_none_or(|level| merge.level == level));
        let first = merges.filter_map(|merge| {
            let whole = self.tree.times.of_merge(merge.level) * merge.begun.input_bytes;
            self.nanos_left(merge.done, merge.began, whole)
        });
        first.min().or_else(|| {
            if !is_due {
                return None;
            }
            let shape = self.tree.tree.shape();
            let bytes = shape.level(0).size_bytes() + shape.level(1).size_bytes();
            let whole = self.tree.times.of_merge(level.unwrap_or(0)) * bytes as f64;
            self.nanos_left(0.0, self.now, whole)
        })
    }
}

impl Simulation<'_> {
    /// Returns the limit by the tree that limits writers most.
    pub(super) fn spread_rate(&self) -> Option<SpreadRate> {
        let limits = self.trees.iter().filter_map(|tree| self.spread_rate_of(tree));
        limits.min_by(|one, other| one.writes_per_second.total_cmp(&other.writes_per_second))
    }

    fn spread_rate_of(&self, tree: &TreeState<'_>) -> Option<SpreadRate> {
        let writes = self.buffer_writes(tree);
        let memtable_bytes = tree.design.buffer_bytes;
        let bytes_per_write = memtable_bytes as f64 / writes;
        let filling = Filling {
            immutable_memtables: tree.immutable.len(),
            left_bytes: ((writes - tree.active).max(0.0) * bytes_per_write) as u64,
            memtable_bytes,
        };
        let spread =
            spread(tree.tree.shape(), filling, tree.design, &JobsOf { tree, now: self.now })?;
        let writes_per_second = 1e9 / (spread.nanos_per_byte * bytes_per_write * tree.share);
        let holds = (spread.nanos_left * 1e-9 * DECIDE_PART).max(HOLDS_MIN);
        Some(SpreadRate { writes_per_second, until: self.now + holds })
    }
}
