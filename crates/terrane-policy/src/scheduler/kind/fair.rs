//! `fair`: the same bandwidth to each merge (performance-stability §5.1.4).

use crate::scheduler::merge::{MergeDemand, SchedulerInfo};

pub(super) static INFO: SchedulerInfo = SchedulerInfo {
    name: "fair",
    aliases: &[],
    most: 0,
    looks_at_levels: false,
    passes_max: 1,
    changes_with_progress: |_| false,
    shares,
};

fn shares(merges: &[MergeDemand], _argument: u32, _slots: usize) -> Vec<f64> {
    vec![1.0 / merges.len() as f64; merges.len()]
}
