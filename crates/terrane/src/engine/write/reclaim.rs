//! Room in an almost full memtable whose versions may be reclaimed.

use terrane_memtable::FrontLevel;

use super::Writer;
use crate::base::stats::Counter;
use crate::engine::tree::ActiveMemtable;

/// Versions are reclaimed once a memtable has less than this share of its space left.
const ALMOST_FULL_SHARE: u64 = 8;

/// A memtable is full if a pass leaves less than this share of it free. Further passes would cost more than
/// a flush.
const FREE_SHARE_MIN: u64 = 128;

/// The number of steps that a write takes which finds a memtable full. Each takes a fraction of a millisecond.
const STEPS_IF_FULL: usize = 3;

/// The space of a memtable.
pub(super) struct Room {
    pub(super) filled: u64,
    /// The most bytes that a thread may fill before it measures again.
    pub(super) portion_max: u64,
}

/// Measures a memtable. If it is almost full and enough of its versions were overwritten, a pass over it
/// reclaims some. Drain threads work on the pass; a writer takes one step with each portion of the space that is
/// left, which is so small that the pass most often ends before the memtable is full. If it does not, because
/// values are large or the pass began late, the memtable is replaced.
pub(super) fn room_in(writer: &Writer, active: &ActiveMemtable, limit: u64) -> Room {
    let filled = active.filled_bytes();
    let is_almost_full = filled >= limit - limit / ALMOST_FULL_SHARE;
    match active.memtable.front_level() {
        Some(front) if is_almost_full => reclaim(writer, active, front, (filled, limit)),
        _ => Room { filled, portion_max: u64::MAX },
    }
}

#[cold]
fn reclaim(
    writer: &Writer,
    active: &ActiveMemtable,
    front: &dyn FrontLevel,
    (mut filled, limit): (u64, u64),
) -> Room {
    let left = usize::try_from(limit.saturating_sub(filled)).unwrap_or(usize::MAX);
    if front.begin_reclaiming(left) == 0 {
        return Room { filled, portion_max: u64::MAX };
    }
    writer.context.signals.drains.wake();
    for _ in 0..STEPS_IF_FULL {
        front.reclaim_step(&writer.pipeline.readers());
        filled = active.filled_bytes();
        if filled < limit {
            break;
        }
    }
    let overwritten = front.take_overwritten() as u64;
    writer.context.counters.add_some(Counter::UpdatesInPlace, overwritten);
    let steps = front.reclaiming_steps() as u64;
    if steps == 0 && filled > limit - limit / FREE_SHARE_MIN {
        filled = filled.max(limit);
    }
    let portion_max = limit.saturating_sub(filled).checked_div(steps).unwrap_or(u64::MAX);
    Room { filled, portion_max }
}
