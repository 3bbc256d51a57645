//! `single`: all bandwidth to the oldest merge, until it ends (LevelDB; performance-stability
//! §4.1).

use crate::scheduler::merge::{MergeDemand, SchedulerInfo};

pub(super) static INFO: SchedulerInfo = SchedulerInfo {
    name: "single",
    aliases: &[],
    most: 0,
    looks_at_levels: false,
    passes_max: 1,
    changes_with_progress: |_| false,
    shares,
};

fn shares(merges: &[MergeDemand], _argument: u32, _slots: usize) -> Vec<f64> {
    let first = merges.iter().min_by_key(|merge| merge.id).map(|merge| merge.id);
    merges.iter().map(|merge| f64::from(u8::from(Some(merge.id) == first))).collect()
}
