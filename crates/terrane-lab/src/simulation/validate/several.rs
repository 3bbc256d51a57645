//! Compares several trees that share the gate, the budget and the writer in the engine and in the
//! simulator.

use anyhow::Result;
use terrane::Design;
use terrane_sim::{Arrival, InitialTree, MachineModel, Simulation, SimulationSetup, initial_trees};

use super::judged::{Limits, Offered, RateComparison, WriterStalls};
use super::plan::{ValidationPlan, setup};
use super::played::{PlayedTree, play};
use super::rates::{self, LIMITS, SMALL};
use crate::output::human;
use crate::output::markdown::table;
use crate::simulation::trees::NamedTree;

/// The bytes of the records of each tree.
const DATA_BYTES: u64 = 10_000_000;

/// The bytes of a record.
const RECORD_BYTES: usize = 1000;

/// The length of a run in seconds.
const SECONDS: f64 = 10.0;

/// The share of the limit at which writes arrive.
const SHARE: f64 = 1.1;

/// The limit on the difference in a tree's merge counts, relative to the engine's, and the difference that
/// is tolerated in any case: a merge may complete just before or just after the end of the run, and equal
/// trees may take turns in another order. A starved tree exceeds both. Under `gear` the engine made 11 merges
/// of a small tree where the simulator made 14.
const MERGES_WITHIN: f64 = 0.4;
const MERGES_SPARE: f64 = 3.0;

/// Trees that share a machine: their designs and their shares of the writes.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeveralCase {
    trees: &'static [(&'static str, f64)],
    scheduler: &'static str,
}

/// Returns all cases.
pub(super) fn cases() -> Vec<SeveralCase> {
    const TREES: [&[(&str, f64)]; 3] = [
        &[("tiering T=3", 1.0), ("tiering T=3", 1.0)],
        &[("1-leveling T=4; L0=4", 9.0), ("tiering T=3", 1.0)],
        &[("tiering T=3", 6.0), ("lazy-leveling T=4", 3.0), ("1-leveling T=4; L0=4", 1.0)],
    ];
    let schedulers = ["single", "fair", "greedy", "gear"];
    let with = |trees| schedulers.map(|scheduler| SeveralCase { trees, scheduler });
    TREES.into_iter().flat_map(with).collect()
}

impl SeveralCase {
    fn designs(&self) -> Result<Vec<(Design, f64)>> {
        let Self { trees, scheduler } = self;
        let design = |(text, share): &(&str, f64)| {
            Ok((format!("{text}; scheduler={scheduler}; {SMALL}").parse()?, *share))
        };
        trees.iter().map(design).collect()
    }

    fn text(&self) -> String {
        let all: f64 = self.trees.iter().map(|(_, share)| share).sum();
        let tree = |(text, share): &(&str, f64)| format!("`{text}` @ {:.0} %", share / all * 100.0);
        self.trees.iter().map(tree).collect::<Vec<_>>().join(", ")
    }
}

/// The results of several trees.
#[derive(Debug, Clone)]
struct SeveralRun {
    writes: WriterStalls,
    /// The longest time from the arrival of a write to its completion, in seconds.
    longest_seconds: f64,
    /// The merges of each tree.
    merges: Vec<u64>,
}

/// Several trees in the engine and in the simulator.
pub(super) struct SeveralComparison {
    case: SeveralCase,
    engine: SeveralRun,
    simulated: SeveralRun,
}

impl SeveralComparison {
    /// Runs a case.
    pub(super) fn of(case: SeveralCase, seed: u64) -> Result<Self> {
        let plan =
            ValidationPlan::updates(DATA_BYTES, RECORD_BYTES, terrane_sim::Skew::Uniform, seed);
        let machine = rates::machine(&plan)?;
        let designs = case.designs()?;
        let simulated = SimulatedTrees::new(&plan, &designs, machine);
        let rate = SHARE * simulated.limit();
        let tree = |(design, share): (Design, f64)| PlayedTree { design, share };
        let trees: Vec<PlayedTree> = designs.into_iter().map(tree).collect();
        let engine = play(&plan, &trees, rates::PLAYED, Some(rate), (0.0, SECONDS))?;
        let writes = WriterStalls { rate: engine.writes.rate, stalled: engine.writes.stalled };
        let longest_seconds = engine.writes.longest_seconds;
        let engine = SeveralRun { writes, longest_seconds, merges: engine.merges };
        Ok(Self { case, engine, simulated: simulated.run(rate) })
    }

    fn rates(&self) -> RateComparison {
        let (engine, simulated) = (self.engine.writes, self.simulated.writes);
        RateComparison { offered: Offered::Share(SHARE, 0.0), engine, simulated }
    }

    /// Returns true if rates, stalls, the longest wait and the merges of each tree are within the limits.
    pub(super) fn agrees(&self) -> bool {
        let limits: &Limits = &LIMITS;
        let merges = self.engine.merges.iter().zip(&self.simulated.merges);
        let is_near = |(engine, simulated): (&u64, &u64)| {
            let most = (*engine as f64 * MERGES_WITHIN).max(MERGES_SPARE);
            engine.abs_diff(*simulated) as f64 <= most
        };
        let waits = self.engine.longest_seconds - self.simulated.longest_seconds;
        self.rates().is_within(limits)
            && waits.abs() <= limits.stalled * SECONDS
            && merges.into_iter().all(is_near)
    }

    fn cells(&self) -> Vec<String> {
        let both = |of: &dyn Fn(&SeveralRun) -> String| {
            [&self.engine, &self.simulated].map(of).join(" / ")
        };
        let merges = |run: &SeveralRun| {
            run.merges.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
        };
        vec![
            self.case.text(),
            self.case.scheduler.to_owned(),
            both(&|run| human::number(run.writes.rate)),
            both(&|run| format!("{:.1}", run.writes.stalled * 100.0)) + " %",
            both(&|run| format!("{:.2}", run.longest_seconds)) + " s",
            both(&merges),
        ]
    }
}

/// Several loaded trees in the simulator.
struct SimulatedTrees {
    setup: SimulationSetup,
    trees: Vec<terrane_sim::SimulatedTree>,
}

impl SimulatedTrees {
    fn new(plan: &ValidationPlan, designs: &[(Design, f64)], machine: MachineModel) -> Self {
        let trees = designs.iter().zip(1..).map(|((design, share), number)| NamedTree {
            name: format!("tree {number}"),
            design: design.clone(),
            share: *share,
        });
        let trees: Vec<NamedTree> = trees.collect();
        let alone = setup(plan, &designs[0].0, machine, Arrival::Closed);
        // The threads of the run flush every tree that needs it.
        let alone = SimulationSetup { flush_threads: designs.len(), ..alone };
        let setup = NamedTree::setup_of(&trees, alone);
        let unlimited = MachineModel { budget: None, ..machine };
        let load = SimulationSetup { machine: unlimited, ..setup.clone() };
        let trees = initial_trees(&load, InitialTree::Loaded, plan.seed);
        Self { setup, trees }
    }

    fn outcome(&self, rate: f64, seconds: f64) -> terrane_sim::SimulationOutcome {
        let mut setup = self.setup.clone();
        setup.workload.arrival = Arrival::Constant(rate);
        Simulation::of_trees(&setup, self.trees.clone()).run_trees(seconds).0
    }

    fn run(&self, rate: f64) -> SeveralRun {
        let outcome = self.outcome(rate, SECONDS);
        SeveralRun {
            writes: WriterStalls {
                rate: outcome.totals.writes / SECONDS,
                stalled: outcome.stalled_seconds(None) / SECONDS,
            },
            longest_seconds: outcome.latencies.quantile(1.0).unwrap_or(f64::NAN),
            merges: outcome.trees.iter().map(|tree| tree.merges).collect(),
        }
    }

    /// Returns the rate that the trees sustain together, in writes per second.
    fn limit(&self) -> f64 {
        rates::limit_of(&self.setup, |rate| {
            self.outcome(rate, rates::SUSTAINED_SECONDS).stalled_seconds(None)
                / rates::SUSTAINED_SECONDS
        })
    }
}

/// Returns the section of the document.
pub(super) fn document(all: &[SeveralComparison]) -> String {
    let headers =
        ["trees", "scheduler", "writes/s", "stopped", "longest wait", "merges of each tree"];
    let rows: Vec<Vec<String>> = all.iter().map(SeveralComparison::cells).collect();
    format!(
        "## Several trees\n\n\
         The trees share the writer, the budget and the gate, in virtual time as above. Each holds \
         {megabytes} MB of records of {RECORD_BYTES} bytes,\nand writes arrive for {SECONDS} seconds at \
         {share:.0} % of the limit. Figures are engine / simulated. The command fails if a rate or the\n\
         time for which writers are stopped differs by more than above, if the longest waits differ by more \
         than {wait:.1} s, or if the merges of a\ntree differ by more than {merges:.0} % and \
         {MERGES_SPARE}.\n\n{table}",
        megabytes = DATA_BYTES / 1_000_000,
        share = SHARE * 100.0,
        wait = LIMITS.stalled * SECONDS,
        merges = MERGES_WITHIN * 100.0,
        table = table(&headers, &rows),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The busy tree has nine tenths of the writes. The fair scheduler serves both trees of the engine as often as
    /// those of the simulator. `terrane simulate validate` compares all schedulers.
    #[test]
    fn trees_of_engine_and_simulator_get_equal_service() {
        for case in cases().into_iter().skip(5).take(1) {
            let compared = SeveralComparison::of(case, 1).unwrap();
            let cells = compared.cells().join(" | ");
            assert!(compared.agrees(), "{cells}");
            assert!(compared.engine.merges.iter().all(|merges| *merges >= 3), "{cells}");
        }
    }

    #[test]
    fn merges_waits_and_rates_outside_their_limits_fail() {
        let run = |rate: f64, longest_seconds: f64, merges: &[u64]| SeveralRun {
            writes: WriterStalls { rate, stalled: 0.2 },
            longest_seconds,
            merges: merges.to_vec(),
        };
        let case = cases()[0];
        let engine = run(1000.0, 1.0, &[100, 5]);
        let agrees =
            |simulated| SeveralComparison { case, engine: engine.clone(), simulated }.agrees();
        assert!(agrees(run(1000.0, 1.0, &[100, 5])) && agrees(run(950.0, 1.5, &[139, 7])));
        assert!(!agrees(run(800.0, 1.0, &[100, 5])), "rate");
        assert!(!agrees(run(1000.0, 9.0, &[100, 5])), "wait");
        assert!(!agrees(run(1000.0, 1.0, &[150, 5])) && !agrees(run(1000.0, 1.0, &[100, 0])));
    }
}
