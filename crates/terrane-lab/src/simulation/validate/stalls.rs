//! How long writers are held up, by the engine with its threads and by the simulator.
//!
//! Both write tables at the same budget of bytes a second, which is far below what a processor
//! merges: what is scarce is then the same number in both, and what else goes on on the machine
//! hardly matters. Writers of each design write as fast as they can, and at parts of the rate that
//! the simulator says can be sustained. All of that goes on at the same time, each in a database of its
//! own; the first part of it does not count, as the tree begins without anything to merge.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, IoBudget, Options};
use terrane_sim::{
    Arrival, InitialTree, MachineModel, Simulation, SimulationOutcome, Skew, initial_tree,
};

use super::measured::{RecordChooser, load, value};
use super::{ValidationPlan, fast_device, setup};
use crate::document::table;
use crate::human;
use crate::simulation::calibrate::{self, LOG_SEGMENT_BYTES, key};

/// Records, and their bytes: large, so that there is little to do for a processor.
const RECORDS: u64 = 20_000;
const RECORD_BYTES: usize = 1000;

/// Settings that make trees of several levels from that.
const SMALL: &str = "buffer=128KiB; table=128KiB; filter=10; delay=12; stop=24; buffers=3";

/// What flushes and merges may write in a second.
const BUDGET: u64 = 24_000_000;

/// How long writers write, and how much of that does not count, in seconds.
const SECONDS: f64 = 5.0;
const WARM_UP: f64 = 1.5;

/// Parts of the rate that the simulator says can be sustained at which writers write as well.
const PARTS: [f64; 3] = [0.25, 0.6, 0.9];

/// Held up: for longer than this part of the time.
const HELD_UP: f64 = 0.05;

/// The most that engine and simulator may differ in the part of the time for which writers are held
/// up. Where both are as near to each other, verdicts may differ.
const PART_WITHIN: f64 = 0.10;

/// Measurements of a rate at which engine and simulator differ: the middle one counts, so that it
/// takes more than a moment in which the machine was busy with something else.
const REPETITIONS: usize = 3;

/// A rate is sustained if writers are held up for no more than this part of the time, for so many
/// seconds of virtual time.
const SUSTAINED_HELD: f64 = 0.01;
const SUSTAINED_SECONDS: f64 = 60.0;

/// Memory that is never short.
const MEMORY: u64 = 256 << 20;

/// What was compared.
pub(super) struct StallComparison {
    rows: Vec<StallRow>,
}

/// A design at a rate.
struct StallRow {
    design: &'static str,
    /// A part of the rate that can be sustained, and that rate; none for as fast as they can.
    offered: Option<(f64, f64)>,
    engine: WriterStalls,
    simulated: WriterStalls,
}

/// How writers fared.
#[derive(Debug, Clone, Copy, Default)]
struct WriterStalls {
    /// Writes a second.
    rate: f64,
    /// The part of the time for which they were held up.
    held: f64,
}

impl WriterStalls {
    fn verdict(self) -> &'static str {
        if self.held > HELD_UP { "held up" } else { "not" }
    }
}

impl StallRow {
    fn part_off(&self) -> f64 {
        (self.engine.held - self.simulated.held).abs()
    }

    fn agrees(&self) -> bool {
        self.part_off() <= PART_WITHIN
    }

    fn cells(&self) -> Vec<String> {
        let percent =
            |fared: WriterStalls| format!("{}: {:.0} %", fared.verdict(), fared.held * 100.0);
        let offered = match self.offered {
            None => "as fast as they can".to_owned(),
            Some((part, rate)) => {
                format!("{:.0} %, {} a second", part * 100.0, human::number(rate))
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
        format!("{differ} of {} rates at which writers are held up differ", self.rows.len())
    }

    fn verdicts_that_differ(&self) -> usize {
        let differs = |row: &&StallRow| row.engine.verdict() != row.simulated.verdict();
        self.rows.iter().filter(differs).count()
    }

    pub(super) fn document(&self) -> String {
        let worst = self.rows.iter().map(StallRow::part_off).fold(0.0, f64::max) * 100.0;
        let headers = [
            "design",
            "writers write",
            "engine",
            "simulated",
            "writes a second, engine / simulated",
        ];
        let rows: Vec<Vec<String>> = self.rows.iter().map(StallRow::cells).collect();
        format!(
            "## Who is held up\n\n\
             The engine with its threads, one of them for compactions, on files in memory. Flushes \
             and merges may write {budget} a\nsecond in both, which is far less than the processor \
             merges. {records} records of {RECORD_BYTES} bytes are loaded without that\nlimit, and \
             then updated for {SECONDS} seconds, of which the first {WARM_UP} do not count, from \
             trees in which nothing is left to merge;\ndesigns are followed by `; {SMALL}`.\n\
             Writers write as fast as they can, and at parts of what the simulator says can be \
             sustained. They are held up if that takes\nmore than {held:.0} % of the time. The \
             command fails where the parts of the time are more than {part:.0} points apart, in the \
             middle one of\n{REPETITIONS} measurements where the first one is. Here the largest \
             difference is {worst:.1} points; {differ} of {count} verdicts differ.\n\n\
             Where the processor is the limit instead, this cannot be compared: what a write costs \
             beside threads that merge is not what\nit costs alone, and writers that are as fast as \
             they can have ended before the tree has merged what they wrote.\n\n\
             {table}",
            budget = human::bytes(BUDGET),
            records = human::count(RECORDS),
            held = HELD_UP * 100.0,
            part = PART_WITHIN * 100.0,
            worst = worst,
            differ = self.verdicts_that_differ(),
            count = self.rows.len(),
            table = table(&headers, &rows),
        )
    }
}

/// Compares all designs.
pub(super) fn compare(designs: &[&'static str], seed: u64) -> Result<StallComparison> {
    let costs = calibrate::measure(RECORDS, RECORD_BYTES, None)?.costs;
    let machine =
        MachineModel { costs, device: fast_device(), budget: Some(BUDGET as f64), slots: 1 };
    let plan = ValidationPlan {
        records: RECORDS,
        writes: 0,
        record_bytes: RECORD_BYTES,
        skew: Skew::Uniform,
        seed,
    };
    let mut rows = Vec::new();
    for name in designs {
        let design: Design = format!("{name}; {SMALL}").parse()?;
        let sustained = sustained(&plan, &design, machine);
        let offered: Vec<Option<(f64, f64)>> =
            std::iter::once(None).chain(PARTS.map(|part| Some((part, part * sustained)))).collect();
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
                measurements.sort_by(|a, b| a.held.total_cmp(&b.held));
                row.engine = measurements[REPETITIONS / 2];
            }
            rows.push(row);
        }
    }
    Ok(StallComparison { rows })
}

/// Measures all rates at the same time.
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

/// The greatest rate that a design sustains, in writes a second.
fn sustained(plan: &ValidationPlan, design: &Design, machine: MachineModel) -> f64 {
    let held = |rate| {
        let seconds = (WARM_UP, SUSTAINED_SECONDS);
        simulated((plan, design, machine), Arrival::Constant(rate), seconds).held
    };
    // Each write is written to a table once at least.
    let (mut below, mut above) = (0.0, BUDGET as f64 / RECORD_BYTES as f64);
    for _ in 0..10 {
        let middle = f64::midpoint(below, above);
        if held(middle) <= SUSTAINED_HELD { below = middle } else { above = middle }
    }
    below
}

/// Writers from one time to another, in seconds.
fn simulated(
    (plan, design, machine): (&ValidationPlan, &Design, MachineModel),
    arrival: Arrival,
    (from, until): (f64, f64),
) -> WriterStalls {
    let setup = setup(plan, design, machine, arrival);
    let tree = initial_tree(&setup_without_budget(&setup), InitialTree::Loaded, plan.seed);
    let run = |seconds: f64| Simulation::new(&setup, tree.clone()).run(seconds).0;
    let held = |outcome: &SimulationOutcome| {
        outcome.stalled_seconds(None) + outcome.totals.delayed_seconds
    };
    let (before, all) = (run(from), run(until));
    let seconds = until - from;
    WriterStalls {
        rate: (all.totals.writes - before.totals.writes) / seconds,
        held: (held(&all) - held(&before)) / seconds,
    }
}

/// The load has no limit.
fn setup_without_budget(setup: &terrane_sim::SimulationSetup) -> terrane_sim::SimulationSetup {
    let machine = MachineModel { budget: None, ..setup.machine };
    terrane_sim::SimulationSetup { machine, ..setup.clone() }
}

/// Loads a tree and updates it with the engine's threads: as fast as it takes writes, or at a rate.
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
            // What is late catches up; sleeps shorter than this take longer than they say.
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
    let (from, held_before) = look(&db);
    let after = update(before, SECONDS)?;
    let (until, held_after) = look(&db);
    db.close()?;
    let seconds = (until - from).max(1e-9);
    Ok(WriterStalls {
        rate: (after - before) as f64 / seconds,
        held: (held_after - held_before) as f64 / 1e6 / seconds,
    })
}
