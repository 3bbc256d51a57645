//! Compares the stall time of writers in the engine, with its threads, and in the simulator.
//!
//! Both write tables at the same I/O budget, far below the rate at which a processor merges. The
//! scarce resource is then equal in both, and other load on the machine hardly matters. The writers
//! of each design run in a closed loop, and at shares of the rate that is sustainable in the
//! simulator. All runs of a design execute in parallel, each on its own database. A warm-up is
//! excluded because the tree starts settled.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, IoBudget, Options};
use terrane_sim::{
    Arrival, InitialTree, MachineModel, Simulation, SimulationOutcome, Skew, WriteMix, initial_tree,
};

use super::measured::{RecordChooser, load, value};
use super::{ValidationPlan, fast_device, setup};
use crate::document::table;
use crate::human;
use crate::simulation::calibrate::{self, LOG_SEGMENT_BYTES, key};

/// Number and size of the records; large records need little processor time per byte.
const RECORDS: u64 = 20_000;
const RECORD_BYTES: usize = 1000;

/// Settings that give this amount of data several levels.
const SMALL: &str = "buffer=128KiB; table=128KiB; filter=10; delay=12; stop=24; buffers=3";

/// The I/O budget of flushes and merges in bytes per second.
const BUDGET: u64 = 24_000_000;

/// The length of a run and of its warm-up, in seconds.
const SECONDS: f64 = 5.0;
const WARM_UP: f64 = 1.5;

/// Measured arrival rates, as shares of the rate that is sustainable in the simulator.
const SHARES: [f64; 3] = [0.25, 0.6, 0.9];

/// Writers count as stalled if they stall for more than this share of the time.
const STALLED: f64 = 0.05;

/// The limit on the difference of the shares of time in which writers stall. Verdicts may differ
/// within this limit.
const SHARE_WITHIN: f64 = 0.10;

/// Measurements of a rate at which engine and simulator differ; the median counts, to exclude
/// interference from other processes.
const REPETITIONS: usize = 3;

/// A rate is sustainable if writers stall for at most this share of the time, over
/// `SUSTAINED_SECONDS` of virtual time.
const SUSTAINED_STALLED: f64 = 0.01;
const SUSTAINED_SECONDS: f64 = 60.0;

/// Enough memory that the budget never limits the engine.
const MEMORY: u64 = 256 << 20;

/// The compared rates of all designs.
pub(super) struct StallComparison {
    rows: Vec<StallRow>,
}

/// A design at one arrival rate.
struct StallRow {
    design: &'static str,
    /// The share of the sustainable rate, and the arrival rate; `None` for a closed loop.
    offered: Option<(f64, f64)>,
    engine: WriterStalls,
    simulated: WriterStalls,
}

/// The throughput and the stall time of writers.
#[derive(Debug, Clone, Copy, Default)]
struct WriterStalls {
    /// Writes per second.
    rate: f64,
    /// The share of the time in which writers stalled or were delayed.
    stalled: f64,
}

impl WriterStalls {
    fn verdict(self) -> &'static str {
        if self.stalled > STALLED { "stalled" } else { "not stalled" }
    }
}

impl StallRow {
    fn share_difference(&self) -> f64 {
        (self.engine.stalled - self.simulated.stalled).abs()
    }

    fn agrees(&self) -> bool {
        self.share_difference() <= SHARE_WITHIN
    }

    fn cells(&self) -> Vec<String> {
        let percent =
            |fared: WriterStalls| format!("{}: {:.0} %", fared.verdict(), fared.stalled * 100.0);
        let offered = match self.offered {
            None => "closed loop".to_owned(),
            Some((part, rate)) => {
                format!("{:.0} %, {}/s", part * 100.0, human::number(rate))
            }
        };
        let rates = [self.engine.rate, self.simulated.rate].map(human::number);
        vec![
            format!("`{}`", self.design),
            offered,
            percent(self.engine),
            percent(self.simulated),
            rates.join(" / "),
        ]
    }
}

impl StallComparison {
    pub(super) fn agrees(&self) -> bool {
        self.rows.iter().all(StallRow::agrees)
    }

    pub(super) fn summary(&self) -> String {
        let differ = self.rows.iter().filter(|row| !row.agrees()).count();
        format!("stall time differs at {differ} of {} rates", self.rows.len())
    }

    fn verdicts_that_differ(&self) -> usize {
        let differs = |row: &&StallRow| row.engine.verdict() != row.simulated.verdict();
        self.rows.iter().filter(differs).count()
    }

    pub(super) fn document(&self) -> String {
        let worst = self.rows.iter().map(StallRow::share_difference).fold(0.0, f64::max) * 100.0;
        let headers = ["design", "arrivals", "engine", "simulated", "writes/s, engine / simulated"];
        let rows: Vec<Vec<String>> = self.rows.iter().map(StallRow::cells).collect();
        format!(
            "## Write stalls\n\n\
             The engine runs with its threads, one of them for compactions, on files in memory. Flushes \
             and merges may write {budget}\nper second in both, far less than the processor can merge. \
             The experiment loads {records} records of {RECORD_BYTES} bytes\nwithout that limit, lets \
             the tree settle, and updates it for {SECONDS} seconds; the first {WARM_UP} seconds are a \
             warm-up.\nEvery design ends with `; {SMALL}`.\nWriters run in a closed loop, and at \
             shares of the rate that is sustainable in the simulator. They count as stalled\nif they \
             stall for more than {stalled:.0} % of the time. The command fails if the shares of the time \
             differ by more than {part:.0} points;\na rate that exceeds the limit is measured \
             {REPETITIONS} times, and the median counts. The largest difference is {worst:.1} points; \
             {differ} of {count}\nverdicts differ.\n\n\
             The comparison does not cover trees that the processor limits: a write costs more while \
             other threads merge, and in a\nclosed loop all writes complete before the tree has merged \
             them.\n\n\
             {table}",
            budget = human::bytes(BUDGET),
            records = human::count(RECORDS),
            stalled = STALLED * 100.0,
            part = SHARE_WITHIN * 100.0,
            worst = worst,
            differ = self.verdicts_that_differ(),
            count = self.rows.len(),
            table = table(&headers, &rows),
        )
    }
}

/// Compares all designs.
pub(super) fn compare(designs: &[&'static str], seed: u64) -> Result<StallComparison> {
    let costs = calibrate::costs(RECORDS, RECORD_BYTES)?;
    let machine = MachineModel {
        costs,
        device: fast_device(),
        budget: Some(BUDGET as f64),
        slots: 1,
        ..MachineModel::default()
    };
    let plan = ValidationPlan {
        records: RECORDS,
        writes: 0,
        record_bytes: RECORD_BYTES,
        skew: Skew::Uniform,
        mix: WriteMix::default(),
        seed,
    };
    let mut rows = Vec::new();
    for name in designs {
        let design: Design = format!("{name}; {SMALL}").parse()?;
        let sustained = sustained(&plan, &design, machine);
        let offered: Vec<Option<(f64, f64)>> = std::iter::once(None)
            .chain(SHARES.map(|part| Some((part, part * sustained))))
            .collect();
        let all = measured_together(&plan, &design, &offered)?;
        for (offered, first) in offered.into_iter().zip(all) {
            let rate = offered.map(|(_, rate)| rate);
            let simulated = simulated(
                (&plan, &design, machine),
                rate.map_or(Arrival::Closed, Arrival::Constant),
                (WARM_UP, SECONDS),
            );
            let mut measurements = vec![first];
            let mut row = StallRow { design: name, offered, engine: first, simulated };
            if !row.agrees() {
                for _ in 1..REPETITIONS {
                    measurements.push(measured(&plan, &design, rate)?);
                }
                measurements.sort_by(|a, b| a.stalled.total_cmp(&b.stalled));
                row.engine = measurements[REPETITIONS / 2];
            }
            rows.push(row);
        }
    }
    Ok(StallComparison { rows })
}

/// Measures all arrival rates in parallel.
fn measured_together(
    plan: &ValidationPlan,
    design: &Design,
    offered: &[Option<(f64, f64)>],
) -> Result<Vec<WriterStalls>> {
    std::thread::scope(|scope| {
        let start = |offered: &Option<(f64, f64)>| {
            let rate = offered.map(|(_, rate)| rate);
            scope.spawn(move || measured(plan, design, rate))
        };
        let threads: Vec<_> = offered.iter().map(start).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<WriterStalls>>| {
            thread.join().unwrap_or_else(|_| Err(anyhow::anyhow!("a writer panicked")))
        };
        threads.into_iter().map(join).collect()
    })
}

/// Returns the maximum sustainable rate of a design in the simulator, in writes per second.
fn sustained(plan: &ValidationPlan, design: &Design, machine: MachineModel) -> f64 {
    let stalled = |rate| {
        let seconds = (WARM_UP, SUSTAINED_SECONDS);
        simulated((plan, design, machine), Arrival::Constant(rate), seconds).stalled
    };
    // Every record is written to a table at least once.
    let (mut below, mut above) = (0.0, BUDGET as f64 / RECORD_BYTES as f64);
    for _ in 0..10 {
        let middle = f64::midpoint(below, above);
        if stalled(middle) <= SUSTAINED_STALLED { below = middle } else { above = middle }
    }
    below
}

/// Simulates a design, and returns the stalls between two times in seconds.
fn simulated(
    (plan, design, machine): (&ValidationPlan, &Design, MachineModel),
    arrival: Arrival,
    (from, until): (f64, f64),
) -> WriterStalls {
    let setup = setup(plan, design, machine, arrival);
    let tree = initial_tree(&setup_without_budget(&setup), InitialTree::Loaded, plan.seed);
    let run = |seconds: f64| Simulation::new(&setup, tree.clone()).run(seconds).0;
    let stalled = |outcome: &SimulationOutcome| {
        outcome.stalled_seconds(None) + outcome.totals.delayed_seconds
    };
    let (before, all) = (run(from), run(until));
    let seconds = until - from;
    WriterStalls {
        rate: (all.totals.writes - before.totals.writes) / seconds,
        stalled: (stalled(&all) - stalled(&before)) / seconds,
    }
}

/// Returns the setup of the load, which has no I/O budget.
fn setup_without_budget(setup: &terrane_sim::SimulationSetup) -> terrane_sim::SimulationSetup {
    let machine = MachineModel { budget: None, ..setup.machine };
    terrane_sim::SimulationSetup { machine, ..setup.clone() }
}

/// Loads a tree and updates it with the engine's threads: in a closed loop, or at a rate.
fn measured(plan: &ValidationPlan, design: &Design, rate: Option<f64>) -> Result<WriterStalls> {
    let db = Options::new()
        .design(design.clone())
        .memory_budget(MEMORY)
        .compaction_threads(1)
        .background(Background::Threads)
        .log_segment_bytes(LOG_SEGMENT_BYTES)
        .storage(Arc::new(MemoryStorage::new(1)))
        .open("/measured")?;
    load(&db, plan)?;
    db.wait_for_compactions()?;
    db.set_io_budget(IoBudget::Total(BUDGET))?;
    let value = value(plan);
    let mut chooser = RecordChooser::new(plan.records, plan.skew, plan.seed);
    let start = Instant::now();
    let mut update = |from: u64, until: f64| -> Result<u64> {
        let mut number = from;
        loop {
            let now = start.elapsed();
            let due = rate.map_or(now, |rate| Duration::from_secs_f64(number as f64 / rate));
            if now.max(due).as_secs_f64() >= until {
                return Ok(number);
            }
            // A late writer catches up. Shorter sleeps would overrun.
            let early = due.saturating_sub(now);
            if early > Duration::from_millis(1) {
                std::thread::sleep(early);
            }
            db.put(key(chooser.next(), plan.records), &value)?;
            number += 1;
        }
    };
    let look = |db: &Db| (start.elapsed().as_secs_f64(), db.stats().stalls.total_micros());
    let before = update(0, WARM_UP)?;
    let (from, stalled_before) = look(&db);
    let after = update(before, SECONDS)?;
    let (until, stalled_after) = look(&db);
    db.close()?;
    let seconds = (until - from).max(1e-9);
    Ok(WriterStalls {
        rate: (after - before) as f64 / seconds,
        stalled: (stalled_after - stalled_before) as f64 / 1e6 / seconds,
    })
}
