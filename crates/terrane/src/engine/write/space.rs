//! Memtable space that writers use without the writer lock.

use std::sync::Arc;

use terrane_memtable::FrontLevel;
use terrane_policy::Admission;
use terrane_policy::admission::Spread;

use super::reclaim::{Room, room_in};
use super::spread::{portion_bytes, schedule};
use super::target::WriteTarget;
use super::{WriteSize, Writer};
use crate::engine::tree::{Tree, TreeState};
use crate::files::batch::Op;

/// A memtable with less free space than this is measured at every write, with the writer lock held.
/// A memtable with more free space is measured less often, because a measurement takes a large part
/// of a write's time.
const MEASURED_BELOW: u64 = 8 << 10;

/// The minimum space that a thread may fill before the next measurement, if any.
const PORTION_BYTES_MIN: u64 = 1 << 10;

/// The maximum space that a thread may fill in an empty memtable before the next measurement.
const PORTION_BYTES_FIRST: u64 = 4 << 10;

/// From this size on, a memtable will soon take large blocks of memory.
const LARGE_MEMTABLE_BYTES: u64 = 1 << 20;

/// The space that an entry is assumed to need at most, until the next measurement, in addition to
/// its key and value.
pub(super) const ENTRY_BYTES: u64 = 128;

impl Writer {
    /// Reserves space in the memtables of a write, without the writer lock, and loads the states of
    /// its trees. Returns false if a tree may have no space, or the required space is not known in
    /// advance.
    #[inline(always)]
    pub(super) fn has_space(&self, target: &mut WriteTarget<'_>, size: WriteSize) -> bool {
        let deletes_ranges = match target {
            WriteTarget::One { op, .. } => matches!(op, Op::DeleteRange { .. }),
            WriteTarget::Batch { batch, .. } => batch.deletes_ranges(),
        };
        if deletes_ranges || target.load(&self.catalog).is_err() {
            return false;
        }
        let needed = size.user_bytes as u64 + size.operations * ENTRY_BYTES;
        match target {
            WriteTarget::One { tree, state, .. } => self.has_space_in(tree, state, needed),
            WriteTarget::Batch { trees, .. } => {
                trees.iter().all(|(tree, state)| self.has_space_in(tree, state, needed))
            }
        }
    }

    #[inline(always)]
    fn has_space_in(&self, tree: &Arc<Tree>, state: &TreeState, needed: u64) -> bool {
        let is_stopped = match state.admission {
            Admission::Stop(pressure) => pressure.stops_at_once(),
            Admission::Proceed | Admission::Delay(_) => false,
        };
        !is_stopped && (state.active.share().reserve(needed) || self.refill(tree, state, needed))
    }

    /// Measures a memtable and lets this thread fill a part of its free space, which includes
    /// `needed`. Returns false if too little is free, or if memory must be measured as a whole.
    #[cold]
    fn refill(&self, tree: &Arc<Tree>, state: &TreeState, needed: u64) -> bool {
        if state.active.is_unwritten() {
            return false;
        }
        let (memtable, limit) = (&state.active.memtable, self.memtable_bytes_max(tree));
        // Without the lock, because it may take a while.
        let Room { filled, portion_max } = room_in(self, &state.active, limit);
        let mut pipeline = self.pipeline.lock_keeping_window();
        self.request_memory(tree, filled, limit);
        let spread = schedule(self, tree, state, (filled, limit));
        let free = reservable(filled, limit).min(portion_max.max(needed));
        let portion = portion_of(free, needed, spread.as_ref());
        let needs_enabling = memtable.front_level().is_some_and(FrontLevel::needs_enabling);
        let every = pipeline.measure_every_bytes();
        if portion < needed || needs_enabling || !pipeline.grant_bytes(portion, every) {
            return false;
        }
        state.active.share().set_space(portion - needed);
        true
    }

    /// Requests the memory that writers need next: a block for a memtable that is already large,
    /// and the tree's next memtable once the active one is mostly full.
    pub(super) fn request_memory(&self, tree: &Arc<Tree>, filled: u64, limit: u64) {
        if filled > LARGE_MEMTABLE_BYTES
            && tree.state().active.memtable.filled_bytes() as u64 > LARGE_MEMTABLE_BYTES
        {
            self.pipeline.prepare_block();
        }
        if tree.needs_next_memtable(filled, limit) {
            self.pipeline.prepare_memtable(tree);
        }
    }
}

/// Returns the part of `reservable` bytes that a thread takes, for a write that needs `needed` of them.
pub(super) fn portion_of(reservable: u64, needed: u64, spread: Option<&Spread>) -> u64 {
    spread.map_or(reservable, |spread| reservable.min(portion_bytes(spread).max(needed)))
}

/// The part of the free space of a memtable that a thread may fill before the next measurement. It is
/// only a part, because other threads write as well, entries may need more space than assumed, and the
/// design may change to a smaller memtable. It is at most as large as the memtable, because of very
/// many trees most are written rarely, and large portions of all of them would say little about the
/// memory in use.
pub(super) fn reservable(filled: u64, limit: u64) -> u64 {
    let left = limit.saturating_sub(filled);
    if left < MEASURED_BELOW {
        return 0;
    }
    (left / 16).min(limit / 128).min(filled.max(PORTION_BYTES_FIRST)).max(PORTION_BYTES_MIN)
}
