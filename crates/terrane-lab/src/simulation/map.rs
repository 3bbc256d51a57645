//! The map of stability: for which ratio, depth, scheduler and limit a share of the maximum rate
//! holds, from many simulated runs.
//!
//! A cell is a design and a number of levels. Its maximum is measured as in the two-phase test, with
//! the fair scheduler and exact intake. Then the design itself runs at shares of it, from trees whose
//! levels have random fill. The cell has the highest share up to which all runs hold.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use terrane::Design;
use terrane_sim::{
    Arrival, InitialTree, MachineModel, RateVerdict, ReadLoad, Simulation, SimulationSetup, Skew,
    WriteLoad, WriteMix, initial_tree, phases,
};

use crate::document::table;

/// The eagerness of the designs; whole levels, as in the stability paper.
const EAGERNESS: [&str; 2] = ["leveling; granularity=level", "tiering"];
const RATIOS: [u32; 6] = [2, 3, 4, 6, 8, 10];
const LEVELS: [usize; 3] = [2, 3, 4];
const SCHEDULERS: [&str; 4] = ["single", "fair", "greedy", "gear"];
const LIMITS: [&str; 3] = ["level0", "local(2x)", "global(2x)"];

/// The shares of the maximum, ascending.
const SHARES: [f64; 10] = [0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0];

/// The paper's machine and records.
const BUDGET: f64 = 100e6;
const RECORD_BYTES: f64 = 1024.0;
const SLOTS: usize = 16;
const SETTINGS: &str = "buffer=128MiB; buffers=1; violation=stop";

/// A level is this full.
const FILL: f64 = 0.9;

/// The options of a map.
#[derive(Debug, Clone, Copy)]
pub struct MapOptions {
    /// Hours of virtual time of each run.
    pub hours: f64,
    /// The number of trees with random fill for each share.
    pub seeds: u64,
    /// Only every `step`-th cell is simulated.
    pub step: usize,
    /// Threads.
    pub threads: usize,
}

/// A design and the depth of its tree.
#[derive(Debug, Clone, Copy)]
struct MapCell {
    eagerness: &'static str,
    ratio: u32,
    levels: usize,
    scheduler: &'static str,
    limit: &'static str,
}

/// The runs of a cell.
#[derive(Debug, Clone, Default)]
struct MapResult {
    maximum: f64,
    /// The share of runs that hold, at each share of the maximum.
    held: Vec<f64>,
    runs: usize,
}

impl MapCell {
    fn all() -> Vec<Self> {
        let mut cells = Vec::new();
        for eagerness in EAGERNESS {
            for ratio in RATIOS {
                for levels in LEVELS {
                    for scheduler in SCHEDULERS {
                        for limit in LIMITS {
                            cells.push(Self { eagerness, ratio, levels, scheduler, limit });
                        }
                    }
                }
            }
        }
        cells
    }

    fn design(&self) -> Result<Design> {
        let Self { eagerness, ratio, scheduler, limit, .. } = self;
        let (name, rest) = eagerness.split_once(';').unwrap_or((eagerness, ""));
        let rest = if rest.is_empty() { String::new() } else { format!(";{rest}") };
        let text =
            format!("{name} T={ratio}{rest}; {SETTINGS}; scheduler={scheduler}; limit={limit}");
        Ok(text.parse()?)
    }

    fn run(&self, options: &MapOptions) -> Result<MapResult> {
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
        let seconds = options.hours * 3600.0;
        let mut setup = SimulationSetup::new(design, workload, machine);
        setup.window_seconds = seconds / 96.0;
        let tree = initial_tree(&setup, InitialTree::Settled, 0);
        let maximum = phases::greatest(&setup, &tree, seconds).rate_from(seconds / 6.0);
        let mut result = MapResult { maximum, held: Vec::new(), runs: 1 };
        for share in SHARES {
            setup.workload.arrival = Arrival::Constant((share * maximum).max(1e-9));
            let mut held = 0;
            for seed in 0..options.seeds {
                let tree = initial_tree(&setup, InitialTree::Settled, seed);
                let outcome = Simulation::new(&setup, tree).run(seconds).0;
                held += u64::from(RateVerdict::of(&outcome) == RateVerdict::Sustainable);
                result.runs += 1;
            }
            result.held.push(held as f64 / options.seeds.max(1) as f64);
        }
        Ok(result)
    }
}

impl MapResult {
    /// Returns the highest share up to which all runs hold.
    fn sustained(&self) -> Option<f64> {
        let holds = |held: &f64| *held >= 1.0;
        let count = self.held.iter().take_while(|held| holds(held)).count();
        count.checked_sub(1).map(|last| SHARES[last])
    }
}

/// Simulates the map, and returns the document. `progress` gets the number of finished cells and of
/// all.
///
/// # Errors
///
/// If a design is invalid.
pub fn simulate(options: &MapOptions, progress: &(dyn Fn(usize, usize) + Sync)) -> Result<String> {
    let cells: Vec<MapCell> = MapCell::all().into_iter().step_by(options.step.max(1)).collect();
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Result<MapResult>>>> =
        Mutex::new(cells.iter().map(|_| None).collect());
    let lock = || results.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| {
                loop {
                    // Relaxed: the counter only hands out each cell once.
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(cell) = cells.get(at) else { return };
                    let result = cell.run(options);
                    lock()[at] = Some(result);
                    progress(at + 1, cells.len());
                }
            });
        }
    });
    let results = std::mem::take(&mut *lock());
    let mut found = Vec::new();
    for (cell, result) in cells.iter().zip(results) {
        if let Some(result) = result {
            found.push((*cell, result?));
        }
    }
    Ok(document(options, &found))
}

fn document(options: &MapOptions, found: &[(MapCell, MapResult)]) -> String {
    let runs: usize = found.iter().map(|(_, result)| result.runs).sum();
    let mut text = format!(
        "# The map of stability\n\n\
         The highest share of the maximum rate that a design sustains for {} hours in the simulator, from\n\
         {} trees of random fill at each of the shares {}, with the highest at which all of\n\
         them and of the lower shares hold: a 99th percentile of one second, and no queue at the end. The maximum \
         is that\nof the testing phase, with the fair scheduler and exact intake. Records of {RECORD_BYTES} bytes, \
         `{SETTINGS}`,\na budget of {:.0} MB/s. A dash: not even {:.0} %. {runs} simulated runs.\n\n\
         ```sh\nterrane simulate map --hours {} --seeds {}\n```\n",
        options.hours,
        options.seeds,
        SHARES.map(|share| format!("{:.0} %", share * 100.0)).join(", "),
        BUDGET / 1e6,
        SHARES[0] * 100.0,
        options.hours,
        options.seeds,
    );
    let headers: Vec<String> = ["T", "levels", "writes/s"]
        .into_iter()
        .map(str::to_owned)
        .chain(SCHEDULERS.map(str::to_owned))
        .collect();
    let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
    for eagerness in EAGERNESS {
        for limit in LIMITS {
            let of = |ratio: u32, levels: usize, scheduler: &str| {
                found.iter().find(|(cell, _)| {
                    cell.eagerness == eagerness
                        && cell.limit == limit
                        && cell.ratio == ratio
                        && cell.levels == levels
                        && cell.scheduler == scheduler
                })
            };
            let mut rows = Vec::new();
            for ratio in RATIOS {
                for levels in LEVELS {
                    let row = SCHEDULERS.map(|scheduler| of(ratio, levels, scheduler));
                    let Some((_, any)) = row.iter().flatten().next() else { continue };
                    let mut cells =
                        vec![ratio.to_string(), levels.to_string(), format!("{:.0}", any.maximum)];
                    cells.extend(row.map(|one| {
                        match one {
                            None => String::new(),
                            Some((_, result)) => {
                                result.sustained().map_or("–".to_owned(), |share| {
                                    format!("{:.0} %", share * 100.0)
                                })
                            }
                        }
                    }));
                    rows.push(cells);
                }
            }
            if !rows.is_empty() {
                let _ = writeln!(
                    text,
                    "\n## `{eagerness}`, `limit={limit}`\n\n{}",
                    table(&headers, &rows)
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_has_the_highest_share_below_which_all_hold() {
        let mut result = MapResult { held: vec![1.0; SHARES.len()], ..MapResult::default() };
        assert_eq!(result.sustained(), Some(1.0));
        result.held[2] = 0.9;
        assert_eq!(result.sustained(), Some(0.6));
        result.held[0] = 0.0;
        assert_eq!(result.sustained(), None);
    }

    #[test]
    fn every_cell_is_a_design() {
        let cells = MapCell::all();
        assert_eq!(cells.len(), 2 * 6 * 3 * 4 * 3);
        for cell in cells {
            assert!(cell.design().is_ok(), "{cell:?}");
        }
    }
}
