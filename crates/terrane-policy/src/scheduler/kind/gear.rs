//! `gear`, spring and gear: merges that end just when their outputs are needed (bLSM §4;
//! performance-stability §2.3, §4.1).
//!
//! A merge out of a level must end before the level is full again, or the data that comes into the
//! level has to wait. bLSM keeps the finished fraction of a merge equal to the fraction of its level
//! that is full again. Here the bandwidth is shared so that all merges would get there together: each
//! in proportion to its remaining input over the room left in its level.

use crate::scheduler::merge::{MergeDemand, SchedulerInfo};

pub(super) static INFO: SchedulerInfo = SchedulerInfo {
    name: "gear",
    aliases: &["spring-and-gear"],
    most: 0,
    looks_at_levels: true,
    passes_max: 1,
    changes_with_progress: |_| true,
    shares,
};

/// A level counts as no fuller than this, so that no merge takes all of the bandwidth before its
/// level is full, and a merge of a full level takes nearly all of it.
const FULLEST: f64 = 0.99;

fn shares(merges: &[MergeDemand], _argument: u32, _slots: usize) -> Vec<f64> {
    let need = |merge: &MergeDemand| {
        let room = 1.0 - merge.refilled.clamp(0.0, FULLEST);
        merge.remaining_bytes.max(1) as f64 / room
    };
    let total: f64 = merges.iter().map(need).sum();
    merges.iter().map(|merge| need(merge) / total).collect()
}
