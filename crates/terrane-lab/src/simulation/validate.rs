//! The engine beside the simulator, on the same designs and workloads.
//!
//! Amplification and runs are compared where time plays no part: the engine does every flush and
//! every compaction that is due before the next write, and so does a simulated machine that is
//! infinitely fast. How long writers are held up is compared with the threads of the engine, where
//! the budget for what is written is the one thing that is scarce ([`stalls`]).

mod measured;
mod stalls;

use anyhow::Result;
use terrane::Design;
use terrane_sim::{
    Arrival, Device, InitialTree, MachineCosts, MachineModel, Simulation, SimulationSetup, Skew,
    WriteLoad, initial_tree,
};

use super::calibrate;
use crate::document::table;
use crate::human;
use measured::TreeMeasurement;
use stalls::StallComparison;

/// Bytes of a key and its value.
const RECORD_BYTES: usize = 200;

/// The most that simulated and measured write amplification may differ.
const AMPLIFICATION_WITHIN: f64 = 0.10;

/// Designs that are compared: every eagerness, whole levels and single tables, exact and elastic
/// intake, flushes that merge.
const DESIGNS: [&str; 10] = [
    "leveling T=4; granularity=level; intake=exact",
    "leveling T=10; granularity=level",
    "leveling T=4; movement=round-robin",
    "leveling T=10",
    "1-leveling T=4; granularity=level; L0=4",
    "1-leveling T=4; granularity=level; L0=4; flush=merge",
    "balanced; base=4MiB",
    "tiering T=3; intake=exact",
    "tiering T=4",
    "lazy-leveling T=4",
];

/// Settings that make trees of several levels from a little data.
const SMALL: &str = "buffer=512KiB; table=256KiB; filter=10; delay=12; stop=24; buffers=3";

/// The options of a validation.
#[derive(Debug, Clone, Copy)]
pub struct ValidationOptions {
    /// Records of each tree.
    pub records: u64,
    /// Updates of each record, on average.
    pub rounds: u64,
    /// The seed of all random choices.
    pub seed: u64,
}

/// A comparison of the simulator with the engine.
pub struct Validation {
    /// The document, in Markdown.
    pub document: String,
    worst: f64,
    stalls: StallComparison,
}

impl Validation {
    /// Checks that the differences are within the limits that the document states.
    ///
    /// # Errors
    ///
    /// If they are not.
    pub fn check(&self) -> Result<()> {
        if self.worst > AMPLIFICATION_WITHIN || !self.stalls.agrees() {
            anyhow::bail!(
                "simulated amplification is off by {:.1} %; {}",
                self.worst * 100.0,
                self.stalls.summary()
            );
        }
        Ok(())
    }
}

/// What is compared, and how.
pub(super) struct ValidationPlan {
    pub(super) records: u64,
    pub(super) writes: u64,
    pub(super) record_bytes: usize,
    pub(super) skew: Skew,
    pub(super) seed: u64,
}

impl ValidationOptions {
    /// Compares the simulator with the engine.
    ///
    /// # Errors
    ///
    /// If a database fails.
    pub fn run(&self) -> Result<Validation> {
        let constants = calibrate::measure(self.records.min(200_000), RECORD_BYTES, None)?;
        let mut rows = Vec::new();
        let mut worst: f64 = 0.0;
        for (skew, designs) in [(Skew::Uniform, &DESIGNS[..]), (Skew::Zipf(0.99), &DESIGNS[..3])] {
            for text in designs {
                let design: Design = format!("{text}; {SMALL}").parse()?;
                let plan = self.plan(skew);
                let engine = measured::at_once(&plan, &design)?;
                let simulated = simulated(&plan, &design, &constants);
                let off = simulated.amplification / engine.amplification - 1.0;
                worst = worst.max(off.abs());
                rows.push(row(text, skew, &engine, &simulated, off));
            }
        }
        let stalls = stalls::compare(&DESIGNS, self.seed)?;
        let document = self.document(&rows, &stalls, worst);
        Ok(Validation { document, worst, stalls })
    }

    fn plan(&self, skew: Skew) -> ValidationPlan {
        ValidationPlan {
            records: self.records,
            writes: self.records * self.rounds,
            record_bytes: RECORD_BYTES,
            skew,
            seed: self.seed,
        }
    }

    fn document(&self, rows: &[Vec<String>], held: &StallComparison, worst: f64) -> String {
        let headers = [
            "design",
            "keys",
            "written, engine",
            "written, simulated",
            "off by",
            "runs, engine",
            "runs, simulated",
            "most runs",
            "levels",
        ];
        format!(
            "{INTRODUCTION}\n## Write amplification and runs\n\n\
             {records} records of {RECORD_BYTES} bytes are loaded in random order and updated \
             {rounds} times each, on average, from seed {seed}.\nEvery design is followed by \
             `; {SMALL}`.\nThe engine does all that is due before the next write, the simulated \
             machine takes no time. *Written* is bytes of\ntables for a byte of the user, *runs* \
             is the mean over time; the last two columns are engine / simulated.\nThe largest \
             difference in write amplification is {worst:.1} %; more than {within:.0} % fails the \
             command.\n\n{table}\n{held}",
            records = human::count(self.records),
            rounds = self.rounds,
            seed = self.seed,
            worst = worst * 100.0,
            within = AMPLIFICATION_WITHIN * 100.0,
            table = table(&headers, rows),
            held = held.document(),
        )
    }
}

/// A device that does not matter.
fn fast_device() -> Device {
    Device { bytes_per_second: 1e15, request_seconds: 0.0, request_bytes: 1e6, concurrency: 1 }
}

fn setup(
    plan: &ValidationPlan,
    design: &Design,
    machine: MachineModel,
    arrival: Arrival,
) -> SimulationSetup {
    let workload = WriteLoad {
        records: plan.records as f64,
        record_bytes: plan.record_bytes as f64,
        skew: plan.skew,
        arrival,
        writers: 1,
    };
    SimulationSetup {
        window_seconds: 0.05,
        ..SimulationSetup::new(design.clone(), workload, machine)
    }
}

/// The same on a machine that takes no time.
fn simulated(plan: &ValidationPlan, design: &Design, constants: &MachineModel) -> TreeMeasurement {
    let costs = MachineCosts { flush_seconds: 0.0, merge_seconds: 0.0, ..constants.costs };
    let machine = MachineModel { device: fast_device(), costs, slots: 1, budget: None };
    // Slow enough for everything to be done before the next memtable is full.
    let rate = 1000.0;
    let setup = setup(plan, design, machine, Arrival::Constant(rate));
    let setup = SimulationSetup { window_seconds: 1.0, ..setup };
    let tree = initial_tree(&setup, InitialTree::Loaded, plan.seed);
    let (outcome, tree) = Simulation::new(&setup, tree).run(plan.writes as f64 / rate);
    TreeMeasurement {
        amplification: outcome.totals.write_amplification(),
        mean_runs: outcome.mean_runs(),
        // Runs that are there for a moment, between a flush and its compaction, are no one's.
        most_runs: outcome
            .windows
            .iter()
            .map(|window| window.level_runs.iter().sum())
            .max()
            .unwrap_or(0),
        levels: tree.shape().levels.iter().filter(|level| !level.runs.is_empty()).count(),
    }
}

fn row(
    text: &str,
    skew: Skew,
    engine: &TreeMeasurement,
    simulated: &TreeMeasurement,
    off: f64,
) -> Vec<String> {
    vec![
        format!("`{text}`"),
        skew.to_string(),
        format!("{:.2}", engine.amplification),
        format!("{:.2}", simulated.amplification),
        format!("{:+.1} %", off * 100.0),
        format!("{:.2}", engine.mean_runs),
        format!("{:.2}", simulated.mean_runs),
        format!("{} / {}", engine.most_runs, simulated.most_runs),
        format!("{} / {}", engine.levels, simulated.levels),
    ]
}

const INTRODUCTION: &str = "\
# The simulator

`terrane simulate` plays a design in virtual time, with the engine's own policy: what to merge, how merges
share the bandwidth, whether writers may go on. Only what the engine does with the answers is arithmetic.

```sh
terrane simulate --design 'leveling; granularity=level' --records 1e11 --record-size 1KB --budget 100MB/s --hours 2
terrane simulate --two-phase --budget 100MB/s --design 'tiering T=3; scheduler=greedy; intake=exact'
```

## How it works

- **Events.** A full memtable, the end of a flush or a merge, a change of the arrival rate, an empty queue.
  Between two of them everything changes at rates that do not.
- **Writers** are a fluid. How many have come and how many were made are two curves of straight pieces; the
  latency of the n-th write is the distance between them, and percentiles are exact however many there are.
  Delays follow the engine's formula; a write that is under way when writers are stopped waits to the end.
- **Runs** are the number of keys that they are expected to hold. Updates are independent, so that a merge
  leaves `K (1 - Π (1 - n/K))` of K keys; skewed keys are in groups of like popularity; a load in random
  order has no key twice. Tables are cut as the engine cuts them. Where a design only takes whole runs, a run
  is one table.
- **Flushes and merges** take what is scarcest: the budget for what they write, the device for what they read
  and write, or the processor for their entries. Flushes go first. Merges begin by the rule of the engine's
  gate, and have the shares that the scheduler gives them.

Not modelled: deletes, reads that change decisions, snapshots, compression, several trees, the log's
device. A tree of more tables than `--tables-max` is played with larger ones, and says so.

This page is written by `terrane simulate validate --output docs/simulator.md`, which fails where engine and
simulator differ by more than is said below. `terrane simulate calibrate` measures what writes, flushes and
merges cost on a machine. [stability-simulated.md](stability-simulated.md) has the paper's experiments.
";
