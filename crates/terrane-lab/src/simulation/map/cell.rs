//! The cells of the map, and their runs.

use anyhow::Result;
use terrane::Design;
use terrane_sim::{
    Arrival, InitialTree, MachineModel, RateVerdict, ReadLoad, SimulationSetup, Skew, WriteLoad,
    WriteMix, initial_tree, phases,
};

use super::axes::{EAGERNESS, LEVELS, LIMITS, MapOptions, RATIOS, SCHEDULERS, SHARES};
use super::search::{Search, Threshold};

/// The paper's machine and records.
pub(super) const BUDGET: f64 = 100e6;
pub(super) const RECORD_BYTES: f64 = 1024.0;
const SLOTS: usize = 16;
pub(super) const SETTINGS: &str = "buffer=128MiB; buffers=1; violation=stop";

/// The fraction of its capacity that each level holds.
const FILL: f64 = 0.9;

/// A design and the depth of its tree.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct MapCell {
    pub(super) eagerness: &'static str,
    pub(super) ratio: u32,
    pub(super) levels: usize,
    pub(super) scheduler: &'static str,
    pub(super) limit: &'static str,
}

/// The runs of a cell.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct CellRuns {
    /// The maximum rate, in writes per second.
    pub(super) maximum: f64,
    /// For each tree, the threshold of each phase.
    pub(super) thresholds: Vec<Vec<Threshold>>,
    /// The number of simulated runs.
    pub(super) runs: usize,
    /// The number of verdicts on trees for which every share was simulated, and the number of these
    /// verdicts that contradict the assumption of the search.
    pub(super) checked: usize,
    pub(super) contradictions: usize,
}

/// The cells with their runs.
#[derive(Debug, Clone)]
pub struct StabilityMap {
    pub(super) options: MapOptions,
    pub(super) cells: Vec<(MapCell, CellRuns)>,
}

impl StabilityMap {
    pub(super) fn find(&self, wanted: MapCell) -> Option<&CellRuns> {
        self.cells.iter().find(|(cell, _)| *cell == wanted).map(|(_, runs)| runs)
    }
}

impl MapCell {
    pub(super) fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for eagerness in EAGERNESS {
            for limit in LIMITS {
                for ratio in RATIOS {
                    for levels in LEVELS {
                        for scheduler in SCHEDULERS {
                            cells.push(Self { eagerness, ratio, levels, scheduler, limit });
                        }
                    }
                }
            }
        }
        cells
    }

    pub(super) fn design(&self) -> Result<Design> {
        let Self { eagerness, ratio, scheduler, limit, .. } = self;
        let (name, rest) = eagerness.split_once(';').unwrap_or((eagerness, ""));
        let rest = if rest.is_empty() { String::new() } else { format!(";{rest}") };
        let text =
            format!("{name} T={ratio}{rest}; {SETTINGS}; scheduler={scheduler}; limit={limit}");
        Ok(text.parse()?)
    }

    fn setup(&self) -> Result<SimulationSetup> {
        let design = self.design()?;
        let records = design.capacity_bytes(self.levels, self.levels) as f64 * FILL / RECORD_BYTES;
        let workload = WriteLoad {
            records,
            key_bytes: 16.0,
            record_bytes: RECORD_BYTES,
            skew: Skew::Uniform,
            arrival: Arrival::Closed,
            writers: 1,
            mix: WriteMix::default(),
            reads: ReadLoad::default(),
        };
        let mut machine =
            MachineModel { budget: Some(BUDGET), slots: SLOTS, ..MachineModel::default() };
        // The budget limits writes; reads are not scarce.
        machine.device.bytes_per_second = 2e9;
        Ok(SimulationSetup::new(design, workload, machine))
    }

    /// Measures the maximum, and searches the thresholds of all trees.
    pub(super) fn run(&self, options: &MapOptions) -> Result<CellRuns> {
        let mut setup = self.setup()?;
        let phases: Vec<f64> = options.hours.iter().map(|hours| hours * 3600.0).collect();
        let seconds = phases.iter().copied().fold(0.0, f64::max);
        setup.window_seconds = seconds / 96.0;
        let tree = initial_tree(&setup, InitialTree::Settled, 0);
        let maximum = phases::greatest(&setup, &tree, seconds).rate_from(seconds / 6.0);
        let mut result = CellRuns { maximum, runs: 1, ..CellRuns::default() };
        let mut guess = vec![SHARES.len(); phases.len()];
        for seed in 0..options.trees {
            let tree = initial_tree(&setup, InitialTree::Settled, seed);
            let mut search = Search::new(phases.len(), |share: usize| {
                setup.workload.arrival = Arrival::Constant((SHARES[share] * maximum).max(1e-9));
                let verdicts = phases::verdicts(&setup, tree.clone(), &phases);
                verdicts.into_iter().map(|one| one == RateVerdict::Sustainable).collect()
            });
            if seed < options.complete {
                search.run_all();
                result.checked += SHARES.len() * phases.len();
                result.contradictions += search.contradictions();
            }
            guess = search.thresholds(&guess);
            result.runs += search.runs();
            result.thresholds.push(guess.clone());
        }
        Ok(result)
    }
}

impl CellRuns {
    /// Returns the share of the maximum that a tree sustains; 0 if not even the lowest one holds.
    pub(super) fn share(&self, tree: usize, phase: usize) -> f64 {
        let threshold = self.thresholds.get(tree).and_then(|phases| phases.get(phase));
        threshold.and_then(|held| held.checked_sub(1)).map_or(0.0, |last| SHARES[last])
    }

    fn sorted(&self, phase: usize) -> Vec<f64> {
        let mut shares: Vec<f64> =
            (0..self.thresholds.len()).map(|tree| self.share(tree, phase)).collect();
        shares.sort_by(f64::total_cmp);
        shares
    }

    /// Returns the largest share that all trees sustain.
    pub(super) fn least(&self, phase: usize) -> f64 {
        self.sorted(phase).first().copied().unwrap_or(0.0)
    }

    /// Returns the largest share that at least half of the trees sustain.
    pub(super) fn median(&self, phase: usize) -> f64 {
        let sorted = self.sorted(phase);
        sorted.get((sorted.len().max(1) - 1) / 2).copied().unwrap_or(0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_a_design() {
        let cells = MapCell::all();
        assert_eq!(cells.len(), 2 * 6 * 3 * 4 * 3);
        for cell in cells {
            assert!(cell.design().is_ok(), "{cell:?}");
        }
    }

    #[test]
    fn a_cell_has_the_least_and_the_median_share_of_its_trees() {
        let thresholds = vec![vec![15, 1], vec![11, 0], vec![14, 3], vec![15, 2]];
        let runs = CellRuns { thresholds, ..CellRuns::default() };
        assert_eq!([runs.least(0), runs.median(0)], [1.0, 1.1]);
        assert_eq!([runs.least(1), runs.median(1)], [0.0, 0.5]);
        assert_eq!(runs.share(9, 0), 0.0);
        assert_eq!(CellRuns::default().least(0), 0.0);
    }

    #[test]
    fn a_searched_threshold_is_that_of_all_shares() {
        let tiering = |cell: &MapCell| cell.eagerness == "tiering" && cell.limit == "level0";
        let cell = MapCell::all().into_iter().find(tiering).unwrap();
        let mut options =
            MapOptions { hours: vec![0.25, 1.0], trees: 2, complete: 0, step: 1, threads: 1 };
        let searched = cell.run(&options).unwrap();
        options.complete = 2;
        let complete = cell.run(&options).unwrap();
        assert_eq!(complete.contradictions, 0);
        assert_eq!(complete.thresholds, searched.thresholds);
        assert!(searched.runs < complete.runs && complete.runs == 2 * SHARES.len() + 1);
    }
}
