//! `space-amplification(200)`: too much data may be obsolete (compaction paper §3.1.1, iv).
//!
//! The obsolete part of a run is unknown until the run is read. RocksDB's estimate, used here,
//! assumes that all newer runs overwrite the oldest one: their bytes divided by its bytes.

use super::rule::{Measure, Scope, TreeContext, TriggerInfo, TriggerRule, parse_percent, percent};
use crate::error::ParseError;

/// Fires if all runs but the oldest hold more than this percentage of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceAmplification(pub u32);

static INFO: TriggerInfo = TriggerInfo {
    name: "space-amplification",
    scope: Scope::Tree,
    usual: "space-amplification(200)",
    small: &["space-amplification(50)"],
    looks_at_time: false,
    looks_at_accesses: false,
    drops_tombstones: false,
    consists_of: &[],
    quantity: percent,
    describe: |found| {
        let (held, limit) = (percent(found.measured), percent(found.threshold));
        format!("newer runs hold {held} of the bytes of the oldest, limit {limit}")
    },
};

impl TriggerRule for SpaceAmplification {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(argument: Option<&str>, text: &str) -> Result<Self, ParseError> {
        argument.map_or(Ok(200), |percent| parse_percent(percent, 1_000_000, text)).map(Self)
    }

    fn argument(&self) -> Option<String> {
        Some(self.0.to_string())
    }

    fn measure_tree(&self, tree: &TreeContext) -> Option<Measure> {
        let percent = u128::from(tree.newer_bytes) * 100 / u128::from(tree.oldest_bytes.max(1));
        Some((u64::try_from(percent).unwrap_or(u64::MAX), u64::from(self.0)))
    }
}
