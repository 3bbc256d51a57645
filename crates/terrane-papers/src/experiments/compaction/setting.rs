//! A workload and the tuning of a tree (§4.3), as values that an axis of a figure varies.

use anyhow::Result;
use terrane::Design;
use terrane_policy::Violation;
use terrane_policy::design::PerLevel;
use terrane_policy::strategy::trigger::{LevelSaturation, TombstoneDensity, TombstoneTtl};
use terrane_workload::Distribution;

use super::sizes::{CompactionSizes, VALUE_BYTES};
use super::tree::{LoadPlan, Mix};

/// The percentage of tombstones at which TSD moves a table under the name `tsd12`: tables reach this
/// percentage if one operation in ten is a delete. The paper does not state its percentage.
const DENSE_PERCENT: u32 = 12;

/// The clock of a counted load advances by a millisecond per operation.
const OPERATION_MICROS: u64 = 1000;

/// A workload and the tuning of a tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Setting {
    /// The number of distinct keys, each of which is inserted once.
    pub(super) entries: usize,
    pub(super) distribution: Distribution,
    /// The number of updates for each insert.
    pub(super) updates: usize,
    /// Deletes per hundred operations.
    pub(super) deletes_percent: usize,
    /// Lookups per hundred writes of the second half.
    pub(super) lookups_percent: usize,
    pub(super) value_bytes: usize,
    pub(super) buffer_bytes: u64,
    pub(super) page_bytes: u32,
    pub(super) cache_bytes: u64,
    pub(super) size_ratio: u32,
    pub(super) filter_bits: f64,
}

impl Setting {
    /// Returns the paper's default set-up (§5).
    pub(super) fn base(sizes: &CompactionSizes) -> Self {
        Self {
            entries: sizes.entries(),
            distribution: Distribution::Uniform,
            updates: 0,
            deletes_percent: 0,
            lookups_percent: 0,
            value_bytes: VALUE_BYTES,
            buffer_bytes: sizes.buffer_bytes(),
            page_bytes: sizes.page_bytes(),
            cache_bytes: sizes.cache_bytes(),
            size_ratio: 10,
            filter_bits: 10.0,
        }
    }

    pub(super) fn operations(&self) -> usize {
        self.entries * (1 + self.updates)
    }

    /// Returns the design of a strategy with the tuning of this setting.
    pub(super) fn design(&self, strategy: &str) -> Result<Design> {
        let text = match strategy {
            "full-2" => "full",
            "tsd12" => "tsd",
            "tsa25" | "tsa33" | "tsa50" => "tsa",
            name => name,
        };
        let mut design: Design = text.parse()?;
        design.buffer_bytes = self.buffer_bytes;
        design.table_bytes = self.buffer_bytes;
        design.block_bytes = self.page_bytes;
        design.filter_bits = PerLevel::all(self.filter_bits);
        // Writers wait for compactions (§4.1) and are not slowed down otherwise.
        design.constraint.violation = Violation::Stop;
        if design.strategy.level0_runs == design.strategy.size_ratio {
            design.strategy.level0_runs = self.size_ratio;
        }
        design.strategy.size_ratio = self.size_ratio;
        let time = self.operations() as u64 * OPERATION_MICROS;
        let expiring =
            |ttl: u64| vec![TombstoneTtl(PerLevel::all(ttl)).into(), LevelSaturation.into()];
        let triggers = match strategy {
            "full-2" => {
                design.strategy.base_bytes = Some(2 * self.buffer_bytes);
                None
            }
            "tsd12" => Some(vec![TombstoneDensity(DENSE_PERCENT).into(), LevelSaturation.into()]),
            // The paper sets TSA33 to 25 % of the duration (§5.2.4) but names it after 33 %.
            "tsa25" => Some(expiring(time / 4)),
            "tsa33" => Some(expiring(time / 3)),
            "tsa50" => Some(expiring(time / 2)),
            _ => None,
        };
        if let Some(triggers) = triggers {
            design.strategy.triggers = PerLevel::all(triggers);
        }
        design.validate()?;
        Ok(design)
    }

    /// Returns the load of a strategy.
    pub(super) fn load(&self, strategy: &str) -> Result<LoadPlan> {
        let mix = Mix {
            operations: self.operations(),
            updates: self.updates,
            is_skewed: false,
            deletes_percent: self.deletes_percent,
        };
        let plan = LoadPlan::new(self.design(strategy)?, mix);
        Ok(LoadPlan {
            lookups_percent: self.lookups_percent,
            value_bytes: self.value_bytes,
            budget: budget(self.buffer_bytes, self.cache_bytes),
            ..plan
        })
    }
}

/// Returns the memory of a database: the cache, plus enough for the buffers, each of which may take
/// a quarter of the memory.
pub(super) fn budget(buffer_bytes: u64, cache_bytes: u64) -> u64 {
    (4 * buffer_bytes + cache_bytes).max(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::super::sizes::{ALL, WITH_DELETES};
    use super::*;

    #[test]
    fn every_strategy_has_the_tuning_of_its_setting() {
        let sizes = CompactionSizes { scale: 0.01, rounds: 1, seed: 1 };
        let setting = Setting { size_ratio: 4, filter_bits: 5.0, ..Setting::base(&sizes) };
        for strategy in ALL.iter().chain(WITH_DELETES) {
            let design = setting.design(strategy).unwrap();
            assert_eq!(design.strategy.size_ratio, 4, "{strategy}");
            assert_eq!(design.buffer_bytes, setting.buffer_bytes, "{strategy}");
            assert_eq!(design.filter_bits, PerLevel::all(5.0), "{strategy}");
        }
    }
}
