//! `read-amplification(12)`: reads must search too many runs (compaction paper §3.1.1, vii).
//!
//! A scan reads every sorted run of the tree, and so does a lookup whose key no filter excludes.
//! The number of runs is therefore the worst-case read amplification of the shape, whatever filters
//! and cache save.

use super::rule::{Measure, Scope, TreeContext, TriggerInfo, TriggerRule, runs, wrong};
use crate::error::ParseError;

/// Fires if the tree consists of more sorted runs than this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadAmplification(pub u32);

static INFO: TriggerInfo = TriggerInfo {
    name: "read-amplification",
    scope: Scope::Tree,
    usual: "read-amplification(12)",
    small: &["read-amplification(3)"],
    looks_at_time: false,
    looks_at_accesses: false,
    drops_tombstones: false,
    consists_of: &[],
    quantity: runs,
    describe: |found| format!("a scan reads {}, limit {}", runs(found.measured), found.threshold),
};

impl TriggerRule for ReadAmplification {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let count = argument.map_or(Ok(12), |count| count.trim().parse());
        let in_range = count.ok().filter(|count| (2..=1000).contains(count));
        in_range.map(Self).ok_or_else(|| wrong(text, "2 to 1000 runs: 'read-amplification(12)'"))
    }

    fn argument(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn measure_tree(&self, tree: &TreeContext) -> Option<Measure> {
        Some((tree.runs, u64::from(self.0)))
    }
}
