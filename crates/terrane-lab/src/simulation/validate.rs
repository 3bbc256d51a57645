//! Compares the simulator with the engine on the same designs and workloads.
//!
//! Amplification and runs are compared without time: the engine completes every due flush and
//! compaction before the next write, and the simulated machine is infinitely fast. Stalls are
//! compared with the engine's threads running, where the I/O budget is the only scarce resource
//! (`stalls`).

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

/// The limit on the relative difference between simulated and measured write amplification.
const AMPLIFICATION_WITHIN: f64 = 0.10;

/// The compared designs: every eagerness, whole levels and single tables, exact and elastic intake,
/// merging flushes.
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

/// Designs with values apart, compared by what they write.
const APART: [&str; 2] = [
    "balanced; base=4MiB; values=apart(64,file=512KiB)",
    "tiering T=4; values=apart(64,garbage=100%,space=1.6,file=512KiB)",
];

/// Settings that give a small amount of data several levels.
const SMALL: &str = "buffer=512KiB; table=256KiB; filter=10; delay=12; stop=24; buffers=3";

/// The options of a validation.
#[derive(Debug, Clone, Copy)]
pub struct ValidationOptions {
    /// Records of each tree.
    pub records: u64,
    /// Mean number of updates per record.
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
    /// If a difference exceeds its limit.
    pub fn check(&self) -> Result<()> {
        if self.worst > AMPLIFICATION_WITHIN || !self.stalls.agrees() {
            anyhow::bail!(
                "simulated write amplification differs by {:.1} %; {}",
                self.worst * 100.0,
                self.stalls.summary()
            );
        }
        Ok(())
    }
}

/// The workload of a comparison.
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
        let all = [
            (Skew::Uniform, &DESIGNS[..]),
            (Skew::Uniform, &APART),
            (Skew::Zipf(0.99), &DESIGNS[..3]),
        ];
        for (skew, designs) in all {
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

    fn document(&self, rows: &[Vec<String>], stalls: &StallComparison, worst: f64) -> String {
        let headers = [
            "design",
            "keys",
            "written, engine",
            "written, simulated",
            "difference",
            "runs, engine",
            "runs, simulated",
            "most runs",
            "levels",
        ];
        format!(
            "{INTRODUCTION}\n## Write amplification and runs\n\n\
             The experiment loads {records} records of {RECORD_BYTES} bytes in random order and updates \
             each {rounds} times on average, with seed {seed}.\nEvery design ends with `; {SMALL}`.\n\
             The engine completes all due work before the next write, and the simulated machine takes \
             no time. *Written* is bytes of\ntables and value files per user byte, *runs* is the mean over time; the last \
             two columns are engine / simulated.\nThe largest difference in write amplification is \
             {worst:.1} %; the command fails above {within:.0} %.\n\n{table}\n{stalls}",
            records = human::count(self.records),
            rounds = self.rounds,
            seed = self.seed,
            worst = worst * 100.0,
            within = AMPLIFICATION_WITHIN * 100.0,
            table = table(&headers, rows),
            stalls = stalls.document(),
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
        key_bytes: calibrate::KEY_BYTES as f64,
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

/// Simulates the workload on a machine that takes no time.
fn simulated(plan: &ValidationPlan, design: &Design, constants: &MachineModel) -> TreeMeasurement {
    let costs = MachineCosts { flush_seconds: 0.0, merge_seconds: 0.0, ..constants.costs };
    let machine = MachineModel { device: fast_device(), costs, slots: 1, budget: None };
    // At this rate all due work completes before the next memtable is full.
    let rate = 1000.0;
    let setup = setup(plan, design, machine, Arrival::Constant(rate));
    let setup = SimulationSetup { window_seconds: 1.0, ..setup };
    let tree = initial_tree(&setup, InitialTree::Loaded, plan.seed);
    let (outcome, tree) = Simulation::new(&setup, tree).run(plan.writes as f64 / rate);
    TreeMeasurement {
        amplification: outcome.totals.write_amplification(),
        mean_runs: outcome.mean_runs(),
        // Windows exclude runs that exist only between a flush and its compaction.
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

`terrane simulate` runs a design in virtual time. The engine's own policy decides which runs to merge, how
merges share the bandwidth and when writers stall; the simulator computes the effects of these decisions
instead of moving data.

```sh
terrane simulate --design 'leveling; granularity=level' --records 1e11 --record-size 1KB --budget 100MB/s --hours 2
terrane simulate --two-phase --budget 100MB/s --design 'tiering T=3; scheduler=greedy; intake=exact'
```

## How it works

- **Events** are a full memtable, the end of a flush or a merge, a change of the arrival rate, and an empty
  queue. Between two events all rates are constant.
- **Writes** are a fluid. Arrivals and completions are two piecewise linear curves; the latency of the n-th
  write is the horizontal distance between them, so percentiles are exact for any number of writes. Delays
  follow the engine's formula. A write in progress when writers are stopped waits until the stop ends.
- **Runs** are represented by the expected number of keys that they hold. Updates are independent, so a merge
  of runs of n keys yields `K (1 - Π (1 - n/K))` of K keys. Skewed keys form groups of similar popularity, and
  a load in random order writes each key once. Tables are cut as in the engine; in a design that only merges
  whole runs, a run is one table.
- **Values apart** are counted by value file, table and popularity of their keys. Flushes write them to value
  files, merges drop and relocate them, and collections are merges of one table. A value that the engine leaves in a
  segment of the log is charged to the flush as well, because the log has no device of its own here.
- **Flushes and merges** proceed at the rate of the scarcest resource: the I/O budget for their writes, the
  device for their reads and writes, or the processor for their entries. Flushes have priority. Merges start
  by the rule of the engine's gate and receive the shares that the scheduler assigns.

The simulator does not model deletes, reads that influence decisions, snapshots, compression, several trees,
or the device of the log. A tree of more tables than `--tables-max` is simulated with larger tables, and the
output says so.

`terrane simulate validate --output docs/simulator.md` writes this page, and fails if engine and simulator
differ by more than the limits stated below. `terrane simulate calibrate` measures the costs of writes,
flushes and merges on a machine. [stability-simulated.md](stability-simulated.md) has the paper's experiments.
";
