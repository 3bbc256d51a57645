//! `gear`, spring and gear: merges that end just when their outputs are needed (bLSM §4;
//! performance-stability §2.3, §4.1).
//!
//! A merge out of a level must end before the level is full again, or data that arrives in the
//! level must wait. bLSM keeps the finished fraction of a merge equal to the refilled fraction of
//! its level. Here merges share the bandwidth so that all would finish in time together: each in
//! proportion to its remaining input divided by the room left in its level.

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

/// The fullness of a level is capped at this value, so that no merge takes all bandwidth before its
/// level is full, but a merge of a full level takes nearly all of it.
const FULLEST: f64 = 0.99;

fn shares(merges: &[MergeDemand], _argument: u32, _slots: usize) -> Vec<f64> {
    let need = |merge: &MergeDemand| {
        let room = 1.0 - merge.refilled.clamp(0.0, FULLEST);
        merge.remaining_bytes.max(1) as f64 / room
    };
    let total: f64 = merges.iter().map(need).sum();
    merges.iter().map(|merge| need(merge) / total).collect()
}
