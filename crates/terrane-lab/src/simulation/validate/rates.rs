//! Compares the rates and the stalls of writers in the engine and in the simulator.
//!
//! Both write tables at the same I/O budget, which is the only scarce resource. The engine's own code
//! runs in virtual time ([`played`](super::played)), so the result does not depend on the machine.
//! Writes arrive at shares of the rate that the simulator sustains, and in a closed loop.
//!
//! The comparison checks itself: with a slower budget in the simulator, it must fail.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};
use terrane::Design;
use terrane_policy::Values;
use terrane_sim::{
    Arrival, InitialTree, MachineCosts, MachineModel, Simulation, SimulationOutcome,
    SimulationSetup, initial_tree,
};

use super::cases::TimedCase;
use super::judged::{Judgement, Limits, Offered, RateComparison, WriterStalls};
use super::plan::{ValidationPlan, fast_device, setup};
use super::played::{PlayedMachine, PlayedTree, play};
use crate::output::human;
use crate::output::markdown::table;
use crate::simulation::calibrate;

/// The bytes of the records of a tree.
const DATA_BYTES: u64 = 20_000_000;

/// Settings that give this amount of data several levels.
pub(super) const SMALL: &str = "buffer=128KiB; table=128KiB; filter=10; stop=24; buffers=3";

/// The I/O budget of flushes and merges in bytes per second.
pub(super) const BUDGET: u64 = 24_000_000;

/// The concurrent merges.
const SLOTS: usize = 1;

/// The time of a write, in the engine and in the simulator.
const WRITE_SECONDS: f64 = 5e-6;

/// The same machine for the engine.
pub(super) const PLAYED: PlayedMachine =
    PlayedMachine { budget: BUDGET, slots: SLOTS, write_seconds: WRITE_SECONDS };

/// The length of a run and of its warm-up, in seconds. The tree starts settled.
const SECONDS: f64 = 6.0;
const WARM_UP: f64 = 1.5;

/// Arrival rates, as shares of the limit.
pub(super) const SHARES: [f64; 5] = [0.6, 0.8, 0.95, 1.1, 1.5];

/// The limit is the rate at which writers of the simulator are stopped for this share of the time, over
/// `SUSTAINED_SECONDS`.
const SUSTAINED_STALLED: f64 = 0.01;
pub(super) const SUSTAINED_SECONDS: f64 = 30.0;

/// The limit is exact to the budget divided by two to the power of this.
const LIMIT_STEPS: u32 = 10;

/// The differences at which the command fails.
pub(super) const LIMITS: Limits =
    Limits { stalled: 0.10, rate: 0.10, outliers: 0.05, mean_rate: 0.04 };

/// The error in the simulator's budget that the comparison must notice.
const SLOWER: f64 = 0.9;

/// The compared rates of all trees.
pub(super) struct RateComparisons {
    rows: Vec<RateRow>,
}

/// A tree at all arrival rates.
struct RateRow {
    case: TimedCase,
    /// With the simulator as it is.
    compared: Vec<RateComparison>,
    /// With a simulator whose budget is too small.
    slower: Vec<RateComparison>,
}

impl RateComparisons {
    fn judgement(&self) -> Judgement {
        let all: Vec<RateComparison> =
            self.rows.iter().flat_map(|row| row.compared.iter().copied()).collect();
        Judgement::of(&all, &LIMITS)
    }

    fn slower(&self) -> Judgement {
        let all: Vec<RateComparison> =
            self.rows.iter().flat_map(|row| row.slower.iter().copied()).collect();
        Judgement::of(&all, &LIMITS)
    }

    /// Returns the reason for a failure; `None` if engine and simulator agree and the comparison
    /// notices a slower simulator.
    pub(super) fn fault(&self) -> Option<String> {
        let Judgement { comparisons, failed, mean_rate, .. } = self.judgement();
        if !self.judgement().agrees() {
            let percent = mean_rate * 100.0;
            return Some(format!(
                "{failed} of {comparisons} rates differ, on average by {percent:+.1} %"
            ));
        }
        self.slower().agrees().then(|| {
            format!("the comparison does not notice a simulator with {SLOWER} times the I/O budget")
        })
    }

    pub(super) fn document(&self) -> String {
        let judged = self.judgement();
        let slower = self.slower();
        let mut headers = vec!["design".to_owned(), "keys".to_owned(), "bytes".to_owned()];
        headers.push("limit/s".to_owned());
        headers.extend(SHARES.map(|share| format!("{:.0} %", share * 100.0)));
        headers.extend(["rate at 150 %", "rate, closed"].map(str::to_owned));
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(RateRow::cells).collect();
        format!(
            "## Rates and write stalls\n\n\
             The engine's own code runs in virtual time: its gate divides the I/O budget, and jobs and \
             the writer wait, without any\nwait in real time. Flushes and merges may write {budget} per \
             second in both, and processors take no time. The experiment\nloads {megabytes} MB without \
             that limit, and updates the records for {SECONDS} seconds after a warm-up of {WARM_UP} \
             seconds.\nEvery design ends with `; {SMALL}`.\n\n\
             The *limit* is the rate at which the simulator stops writers for {sustained:.0} % of the \
             time over {SUSTAINED_SECONDS:.0} seconds. Writes arrive at shares of\nit, and in a closed \
             loop. The columns of shares are the shares of the time in which writers are stopped, \
             engine / simulated;\n*rate* is completed writes per second, engine / simulated. The command \
             fails if in more than {outliers:.0} % of the comparisons\nthe shares of the time differ by \
             more than {stalled:.0} points or the rates by more than {rate:.0} %, or if the rates of \
             saturated trees\n(above the limit and closed) differ by more than {mean:.0} % on average. \
             {failed} of {count} comparisons exceed the limits; the\nlargest differences are \
             {worst_stalled:.1} points and {worst_rate:.1} %. They occur near a tree's limit, where \
             writers stall either\nhardly ever or most of the time, and where the engine and the simulator \
             may begin a merge at different times. Saturated rates\ndiffer by {mean_rate:+.1} % on \
             average.\n\n\
             The command also simulates {SLOWER} times the I/O budget, and fails unless that exceeds the \
             limits: saturated rates differ by\n{slower_mean:+.1} % on average then, and {slower_failed} \
             comparisons fail.\n\n\
             The comparison does not cover trees that the processor limits: a write costs more while \
             other threads merge, and in a\nclosed loop all writes complete before the tree has merged \
             them.\n\n\
             {table}",
            budget = human::bytes(BUDGET),
            megabytes = DATA_BYTES / 1_000_000,
            sustained = SUSTAINED_STALLED * 100.0,
            stalled = LIMITS.stalled * 100.0,
            rate = LIMITS.rate * 100.0,
            outliers = LIMITS.outliers * 100.0,
            failed = judged.failed,
            mean = LIMITS.mean_rate * 100.0,
            worst_stalled = judged.stalled * 100.0,
            worst_rate = judged.rate * 100.0,
            mean_rate = judged.mean_rate * 100.0,
            count = judged.comparisons,
            slower_mean = slower.mean_rate * 100.0,
            slower_failed = slower.failed,
            table = table(&headers, &rows),
        )
    }
}

impl RateRow {
    fn cells(&self) -> Vec<String> {
        let TimedCase { design, skew, record_bytes } = &self.case;
        let mut cells = vec![format!("`{design}`"), skew.to_string(), record_bytes.to_string()];
        let limit = self.compared.iter().find_map(|one| match one.offered {
            Offered::Share(share, rate) => Some(rate / share),
            Offered::Closed => None,
        });
        cells.push(limit.map_or_else(String::new, human::number));
        let mut shares = self.compared.iter().filter(|one| one.offered != Offered::Closed);
        cells.extend(shares.clone().map(|one| {
            let [engine, simulated] = [one.engine, one.simulated].map(|one| one.stalled * 100.0);
            format!("{engine:.1} / {simulated:.1} %")
        }));
        let closed = self.compared.iter().find(|one| one.offered == Offered::Closed);
        let rates = shares.next_back().into_iter().chain(closed);
        cells.extend(
            rates.map(|one| [one.engine.rate, one.simulated.rate].map(human::number).join(" / ")),
        );
        cells
    }
}

/// Compares all cases at shares of their limits and in a closed loop, as many cases at a time as there are
/// processors.
pub(super) fn compare(cases: Vec<TimedCase>, shares: &[f64], seed: u64) -> Result<RateComparisons> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let count = cases.len();
    let left: Mutex<VecDeque<(usize, TimedCase)>> =
        Mutex::new(cases.into_iter().enumerate().collect());
    let next = || left.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let work = || -> Result<Vec<(usize, RateRow)>> {
        let mut done = Vec::new();
        while let Some((number, case)) = next() {
            done.push((number, compare_one(case, shares, seed)?));
        }
        Ok(done)
    };
    let parts: Result<Vec<Vec<(usize, RateRow)>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|_| Err(anyhow!("a comparison panicked")))
        };
        threads.into_iter().map(join).collect()
    });
    let mut rows: Vec<(usize, RateRow)> = parts?.into_iter().flatten().collect();
    rows.sort_by_key(|(number, _)| *number);
    debug_assert_eq!(rows.len(), count);
    Ok(RateComparisons { rows: rows.into_iter().map(|(_, row)| row).collect() })
}

fn compare_one(case: TimedCase, shares: &[f64], seed: u64) -> Result<RateRow> {
    let record_bytes = case.record_bytes;
    let plan = ValidationPlan::updates(DATA_BYTES, record_bytes, case.skew, seed);
    let design: Design = format!("{}; {SMALL}", case.design).parse()?;
    let machine = machine(&plan)?;
    let slower = MachineModel { budget: Some(BUDGET as f64 * SLOWER), ..machine };
    let simulated = Simulated::new(&plan, &design, machine);
    let limit = simulated.limit();
    let slower = Simulated {
        setup: SimulationSetup { machine: slower, ..simulated.setup.clone() },
        ..simulated.clone()
    };
    let offered = shares.iter().map(|share| Offered::Share(*share, share * limit));
    let mut row = RateRow { case, compared: Vec::new(), slower: Vec::new() };
    for offered in offered.chain([Offered::Closed]) {
        let engine = engine(&plan, &design, offered)?;
        let compared = |simulated: &Simulated| RateComparison {
            offered,
            engine,
            simulated: simulated.at(offered),
        };
        row.compared.push(compared(&simulated));
        row.slower.push(compared(&slower));
    }
    Ok(row)
}

/// Returns the machine of the simulator, on which only the budget is scarce.
pub(super) fn machine(plan: &ValidationPlan) -> Result<MachineModel> {
    let costs = calibrate::costs(plan.records, plan.record_bytes, Values::Inline)?;
    let costs = MachineCosts {
        write_seconds: WRITE_SECONDS,
        flush_seconds: 0.0,
        merge_seconds: 0.0,
        ..costs
    };
    Ok(MachineModel {
        costs,
        device: fast_device(),
        budget: Some(BUDGET as f64),
        slots: SLOTS,
        ..MachineModel::default()
    })
}

fn engine(plan: &ValidationPlan, design: &Design, offered: Offered) -> Result<WriterStalls> {
    let rate = match offered {
        Offered::Closed => None,
        Offered::Share(_, rate) => Some(rate),
    };
    let tree = PlayedTree { design: design.clone(), share: 1.0 };
    let run = play(plan, &[tree], PLAYED, rate, (WARM_UP, WARM_UP + SECONDS))?;
    Ok(WriterStalls { rate: run.writes.rate, stalled: run.writes.stalled })
}

/// A loaded tree in the simulator.
#[derive(Clone)]
struct Simulated {
    setup: SimulationSetup,
    tree: terrane_sim::SimulatedTree,
}

impl Simulated {
    fn new(plan: &ValidationPlan, design: &Design, machine: MachineModel) -> Self {
        let setup = setup(plan, design, machine, Arrival::Closed);
        let unlimited = MachineModel { budget: None, ..machine };
        let load = SimulationSetup { machine: unlimited, ..setup.clone() };
        let tree = initial_tree(&load, InitialTree::Loaded, plan.seed);
        Self { setup, tree }
    }

    /// Returns the rate and the stalls of writers between two times in seconds.
    fn between(&self, arrival: Arrival, (from, until): (f64, f64)) -> WriterStalls {
        let mut setup = self.setup.clone();
        setup.workload.arrival = arrival;
        let run = |seconds: f64| Simulation::new(&setup, self.tree.clone()).run(seconds).0;
        let (before, all) = (run(from), run(until));
        let seconds = until - from;
        WriterStalls {
            rate: (all.totals.writes - before.totals.writes) / seconds,
            stalled: (stalled_seconds(&all) - stalled_seconds(&before)) / seconds,
        }
    }

    fn at(&self, offered: Offered) -> WriterStalls {
        let arrival = match offered {
            Offered::Closed => Arrival::Closed,
            Offered::Share(_, rate) => Arrival::Constant(rate),
        };
        self.between(arrival, (WARM_UP, WARM_UP + SECONDS))
    }

    /// Returns the rate that the tree sustains, in writes per second.
    fn limit(&self) -> f64 {
        let stalled = |rate| {
            let mut setup = self.setup.clone();
            setup.workload.arrival = Arrival::Constant(rate);
            let outcome = Simulation::new(&setup, self.tree.clone()).run(SUSTAINED_SECONDS).0;
            stalled_seconds(&outcome) / SUSTAINED_SECONDS
        };
        limit_of(&self.setup, stalled)
    }
}

/// Returns the rate at which writers are stopped for a small share of the time, in writes per second.
pub(super) fn limit_of(setup: &SimulationSetup, stalled: impl Fn(f64) -> f64) -> f64 {
    // Every record is written to a table at least once.
    let (mut below, mut above) = (0.0, BUDGET as f64 / setup.workload.record_bytes);
    for _ in 0..LIMIT_STEPS {
        let middle = f64::midpoint(below, above);
        if stalled(middle) <= SUSTAINED_STALLED { below = middle } else { above = middle }
    }
    below
}

fn stalled_seconds(outcome: &SimulationOutcome) -> f64 {
    outcome.stalled_seconds(None) + outcome.totals.delayed_seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The engine makes the same decisions at the same times in every run, so the test has one result.
    #[test]
    fn engine_and_simulator_agree_and_a_slower_budget_is_noticed() {
        let design = "tiering T=3; scheduler=greedy";
        let is_chosen = |case: &TimedCase| {
            let usual = case.skew == terrane_sim::Skew::Uniform && case.record_bytes == 1000;
            usual && case.design == design
        };
        let cases: Vec<TimedCase> =
            super::super::cases::timed().into_iter().filter(is_chosen).collect();
        assert_eq!(cases.len(), 1);
        let compared = compare(cases, &[1.1], 1).unwrap();
        assert_eq!(compared.fault(), None, "{}", compared.document());
        let slower = compared.slower();
        assert!(!slower.agrees() && slower.mean_rate < -LIMITS.mean_rate, "{slower:?}");
    }
}
