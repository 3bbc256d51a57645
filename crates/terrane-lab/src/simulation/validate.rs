//! Compares the simulator with the engine on the same designs and workloads.
//!
//! Amplification and runs are compared without time: the engine completes every due flush and
//! compaction before the next write, and the simulated machine is infinitely fast. Rates and stalls are
//! compared in virtual time, where the I/O budget is the only scarce resource (`rates`).
//!
//! | module | one line |
//! |---|---|
//! | `cases` | the compared trees |
//! | `measured` | the engine without time |
//! | `virtual_time` | time that advances when all threads of a run wait |
//! | `played` | the engine in virtual time |
//! | `judged` | differences and their limits |
//! | `rates` | compares rates and stalls |
//! | `several` | compares several trees |

mod cases;
mod judged;
mod measured;
mod plan;
mod played;
mod rates;
mod several;
mod virtual_time;

use anyhow::Result;
use terrane::Design;
use terrane_sim::{
    Arrival, InitialTree, MachineCosts, MachineModel, Simulation, SimulationSetup,
    SimulationWindow, WriteMix, initial_tree,
};

use super::calibrate;
use crate::host::Environment;
use crate::output::human;
use crate::output::markdown::table;
use cases::TreeCase;
use measured::{TreeMeasurement, WRITES_PER_SECOND, levels};
use plan::{ValidationPlan, fast_device, setup};
use rates::RateComparisons;
use several::SeveralComparison;

/// The limit on the relative difference between simulated and measured write amplification.
const AMPLIFICATION_WITHIN: f64 = 0.10;

/// The lifetime of a value that expires, in writes per record.
const TTL_ROUNDS: f64 = 0.5;

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
    rates: RateComparisons,
    several: Vec<SeveralComparison>,
}

impl Validation {
    /// Checks that the differences are within the limits that the document states.
    ///
    /// # Errors
    ///
    /// If a difference exceeds its limit.
    pub fn check(&self) -> Result<()> {
        if self.worst > AMPLIFICATION_WITHIN {
            anyhow::bail!("simulated write amplification differs by {:.1} %", self.worst * 100.0);
        }
        if let Some(fault) = self.rates.fault() {
            anyhow::bail!(fault);
        }
        let differ = self.several.iter().filter(|one| !one.agrees()).count();
        if differ > 0 {
            anyhow::bail!("{differ} of {} cases of several trees differ", self.several.len());
        }
        Ok(())
    }
}

impl ValidationOptions {
    /// Compares the simulator with the engine.
    ///
    /// # Errors
    ///
    /// If a database fails.
    pub fn run(&self) -> Result<Validation> {
        let cases = cases::trees();
        let mut rows = Vec::new();
        let mut worst: f64 = 0.0;
        for case in &cases {
            let compared = self.compare(case, SMALL)?;
            worst = worst.max(compared.off().abs());
            rows.push(compared.cells(case));
        }
        let rates = rates::compare(cases::timed(), &rates::SHARES, self.seed)?;
        let several = several::cases().into_iter();
        let several: Result<Vec<SeveralComparison>> =
            several.map(|case| SeveralComparison::of(case, self.seed)).collect();
        let several = several?;
        let document = self.document(&rows, &rates, worst) + "\n" + &several::document(&several);
        Ok(Validation { document, worst, rates, several })
    }

    /// Compares the simulator with the engine on one tree, without time. `sizes` are settings of the
    /// design that fit the amount of data.
    fn compare(&self, case: &TreeCase, sizes: &str) -> Result<ComparedTree> {
        let design: Design = format!("{}; {sizes}", case.design).parse()?;
        // The total bytes are the same for every record size.
        let records = self.records * cases::RECORD_BYTES as u64 / case.record_bytes as u64;
        let plan = ValidationPlan {
            records,
            writes: records * self.rounds,
            record_bytes: case.record_bytes,
            skew: case.skew,
            mix: mix_of(case, records),
            seed: self.seed,
        };
        let costs = calibrate::costs(records.min(100_000), case.record_bytes, design.values)?;
        let engine = measured::at_once(&plan, &design)?;
        let simulated = simulated(&plan, &design, costs);
        Ok(ComparedTree { engine, simulated })
    }

    fn document(&self, rows: &[Vec<String>], rates: &RateComparisons, worst: f64) -> String {
        let headers = [
            "design",
            "writes",
            "bytes",
            "written, engine",
            "written, simulated",
            "difference",
            "runs, engine",
            "runs, simulated",
            "most runs",
            "levels",
            "tables",
        ];
        format!(
            "{INTRODUCTION}\n{setting}\n## Write amplification and runs\n\n\
             The experiment loads {megabytes} MB of records in random order and writes {rounds} times as \
             many, with seed {seed}.\nEvery design ends with `; {SMALL}`.\n\
             The engine completes all due work before the next write, and the simulated machine takes \
             no time. *Written* is bytes of\ntables and value files per user byte, *runs* is the number of runs, both as means over \
             time; the last three columns are engine / simulated, *tables* their mean bytes.\nThe largest difference in write amplification is \
             {worst:.1} %; values that expire do so after half as many writes as there are records. The command fails above {within:.0} %.\n\n{table}\n{rates}",
            megabytes = self.records * cases::RECORD_BYTES as u64 / 1_000_000,
            rounds = self.rounds,
            seed = self.seed,
            setting = Environment::of_run(&std::env::temp_dir(), self.seed).markdown(),
            worst = worst * 100.0,
            within = AMPLIFICATION_WITHIN * 100.0,
            table = table(&headers, rows),
            rates = rates.document(),
        )
    }
}

fn mix_of(case: &TreeCase, records: u64) -> WriteMix {
    let mut mix = case.mix;
    if mix.expiring > 0.0 {
        mix.ttl_seconds = records as f64 * TTL_ROUNDS / WRITES_PER_SECOND;
    }
    mix
}

/// Simulates the workload on a machine that takes no time.
fn simulated(plan: &ValidationPlan, design: &Design, costs: MachineCosts) -> TreeMeasurement {
    let costs = MachineCosts { flush_seconds: 0.0, merge_seconds: 0.0, ..costs };
    let machine =
        MachineModel { device: fast_device(), costs, slots: 1, ..MachineModel::default() };
    let rate = WRITES_PER_SECOND;
    let setup = setup(plan, design, machine, Arrival::Constant(rate));
    let setup = SimulationSetup { window_seconds: 1.0, ..setup };
    let tree = initial_tree(&setup, InitialTree::Loaded, plan.seed);
    let (outcome, tree) = Simulation::new(&setup, tree).run(plan.writes as f64 / rate);
    let bytes_of = |window: &SimulationWindow| window.level_bytes.iter().sum::<u64>() as f64;
    TreeMeasurement {
        amplification: outcome.totals.mean_write_amplification().unwrap_or(f64::NAN),
        mean_runs: outcome.mean_runs(),
        // Windows exclude runs that exist only between a flush and its compaction.
        most_runs: outcome
            .windows
            .iter()
            .map(|window| window.level_runs.iter().sum())
            .max()
            .unwrap_or(0),
        levels: levels(tree.shape()),
        mean_bytes: outcome.windows.iter().map(bytes_of).sum::<f64>()
            / outcome.windows.len().max(1) as f64,
    }
}

/// A tree in the engine and in the simulator.
struct ComparedTree {
    engine: TreeMeasurement,
    simulated: TreeMeasurement,
}

impl ComparedTree {
    /// Returns by how much the simulated write amplification differs.
    fn off(&self) -> f64 {
        self.simulated.amplification / self.engine.amplification - 1.0
    }

    fn cells(&self, case: &TreeCase) -> Vec<String> {
        let Self { engine, simulated } = self;
        vec![
            format!("`{}`", case.design),
            case.writes(),
            case.record_bytes.to_string(),
            format!("{:.2}", engine.amplification),
            format!("{:.2}", simulated.amplification),
            format!("{:+.1} %", self.off() * 100.0),
            format!("{:.2}", engine.mean_runs),
            format!("{:.2}", simulated.mean_runs),
            format!("{} / {}", engine.most_runs, simulated.most_runs),
            format!("{} / {}", engine.levels, simulated.levels),
            format!(
                "{} / {}",
                human::bytes(engine.mean_bytes as u64),
                human::bytes(simulated.mean_bytes as u64)
            ),
        ]
    }
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
- **Separated values** are counted by value file, table and popularity of their keys. Flushes write them to value
  files, merges drop and relocate them, and collections are merges of one table. A value that the engine leaves in a
  log segment is charged to the flush as well, because the log has no separate device here.
- **Flushes and merges** proceed at the rate of the scarcest resource: the I/O budget for their writes, the
  device for their reads and writes, or the processor for their entries. Flushes have priority. Merges start
  by the rule of the engine's gate and receive the shares that the scheduler assigns.

- **Deletes** leave tombstones, which a merge drops where no older table overlaps. Range deletes erase a share of
  the key space at a random place. `--mix` gives the shares of updates, inserts, deletes and reads, as in
  `terrane bench`; deleted keys do not return unless `--deleted-return` is given.
- **Values that expire** (`--ttl`, `--ttl-share`) are counted by the interval in which they expire. A merge replaces those that
  have expired by tombstones, and a table is dropped unread once all of its values have expired, by the engine's own rule.
  Records of the initial tree never expire, and writes choose keys whose values have expired like any other. Tombstone
  deadlines are checked every ten seconds: write amplification with a deadline of that order is up to 30 % too low.
- **Reads** come in proportion to writes. The blocks that filters let through and that are not in memory (`--cold`)
  are requests to the device, which serves them before flushes and merges. Latencies of reads are not simulated.

- **Several trees** (`--tree 'NAME: DESIGN @ SHARE'`, repeated) share the writers, the budget and the gate, where the
  engine's policy bounds how many merges and flushes of other trees a tree waits for. Each write goes to one tree, so a tree
  that stops its writers stops all.

The simulator does not model reads that influence decisions, snapshots, compression, the device of the log, or
memtables that overwrite in place. Where a design or a workload has such a part, or a part that the workload never
uses, such as triggers on tombstones without deletes, the output says so. A tree of more tables than
`--tables-max` is simulated with larger tables, and the output says so.

`terrane simulate validate --output docs/simulator.md` writes this page, and fails if engine and simulator
differ by more than the limits stated below. `terrane simulate calibrate` measures the costs of writes, flushes and
merges, and for about ten seconds the device of a directory: synced writes and reads in several sizes and by several
threads, all of which bypass the page cache; medians count. `terrane simulate map` simulates ratios, depths, schedulers
and limits at shares of their maximum. [stability-simulated.md](stability-simulated.md) has the paper's experiments.
";

#[cfg(test)]
mod tests {
    use super::*;

    /// The deterministic part of the validation, on a few small trees: the same writes always give
    /// the same amplification.
    #[test]
    fn small_trees_agree_with_the_engine() {
        let options = ValidationOptions { records: 50_000, rounds: 3, seed: 1 };
        let is_short = |case: &TreeCase| {
            let deletes = case.mix.deletes;
            (case.design == "tiering T=4" && deletes > 0.0 && deletes < 0.5)
                || (case.design == "tiering T=4" && case.mix.expiring > 0.0)
                || (case.design == "leveling T=8; L0=4" && deletes == 0.5)
                || case.design.starts_with("tiering T=4; values=separate")
        };
        let cases: Vec<TreeCase> = cases::trees().into_iter().filter(is_short).collect();
        assert_eq!(cases.len(), 7);
        for case in cases {
            let compared = options.compare(&case, SMALL).unwrap();
            let (off, engine) = (compared.off(), compared.engine.mean_runs);
            assert!(off.abs() < 0.1, "{} {}: {off}", case.design, case.writes());
            let runs = compared.simulated.mean_runs / engine - 1.0;
            assert!(runs.abs() < 0.05, "{} {}: {runs}", case.design, case.writes());
            let bytes = compared.simulated.mean_bytes / compared.engine.mean_bytes - 1.0;
            assert!(bytes.abs() < 0.05, "{} {}: {bytes}", case.design, case.writes());
        }
    }
}
