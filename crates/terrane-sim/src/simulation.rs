//! The event loop: rates are constant from one event to the next.
//!
//! Events are a memtable that reaches its size, the end of a flush or merge, the expiry of the last value of a
//! table, a change of the arrival rate, a drained queue, and the engine's periodic decisions. A scheduler that
//! depends on the progress of merges decides again every few megabytes.
//!
//! The order of actions is the engine's. A full memtable is replaced if admission allows it. Each tree runs one
//! flush at a time, of its oldest immutable memtable. After every change of a tree, policy picks compactions until
//! one would get no share of the bandwidth.
//!
//! Several trees share the writers, the gate and the machine. Each write goes to one of them, so a tree
//! that stops its writers soon stops all of them.

mod dropping;
mod flushing;
mod jobs;
mod merging;
mod partial;
mod reading;
mod recording;
mod setup;
mod spreading;
mod state;
mod tracing;
mod writers;

use terrane_policy::{Admission, Turns};

use crate::machine::JobCost;
use crate::outcome::{SimulationOutcome, SimulationWindow, StallPeriod, Totals, TreeTotals};
use crate::tree::SimulatedTree;
pub use setup::{OtherTree, SimulationSetup};
use state::TreeState;
use tracing::Tracing;
use writers::{ArrivalCurve, WriterRates};

/// A tolerance for rounding: times closer than this, in seconds, count as equal.
const SOON: f64 = 1e-7;

/// The interval, in seconds, between checks for compactions that time makes due, as in the engine.
const LOOK_AGAIN: f64 = 10.0;

/// The end of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum StopAt {
    /// This time, in seconds.
    Time(f64),
    /// All records are loaded, and no flush or compaction is due.
    Loaded,
}

/// The rates of all jobs, as fractions done per second.
struct JobRates {
    /// The rate of each tree's flush, in the order of the trees that have one.
    flushes: Vec<f64>,
    /// The rate of each merge, in the order of the trees.
    merges: Vec<f64>,
}

/// Trees and their writers in virtual time.
#[derive(Debug)]
pub struct Simulation<'a> {
    setup: &'a SimulationSetup,
    trees: Vec<TreeState<'a>>,
    goal: StopAt,
    now: f64,
    /// How many times each tree was passed over by merges, and by flushes, of other trees.
    merge_turns: Turns,
    flush_turns: Turns,
    next_merge: u64,
    /// True if the set of merges has changed since the scheduler last decided.
    is_undecided: bool,
    decide_at: f64,
    look_at: f64,
    /// Arrivals over time.
    arrived: ArrivalCurve,
    /// The number of completed writes.
    departed: f64,
    /// The start of the current stall, and the part of it with the current cause.
    blocked: Option<(f64, StallPeriod)>,
    /// The number of writes that the last stall interrupted and that are still incomplete, and their latency in
    /// seconds.
    waiting: (f64, f64),
    window: SimulationWindow,
    window_from: f64,
    window_start: Totals,
    /// `None` if no trace is recorded.
    tracing: Option<Tracing>,
    outcome: SimulationOutcome,
}

impl<'a> Simulation<'a> {
    /// Returns a simulation of `setup` that starts with `tree`. A setup with several trees needs [`Self::of_trees`].
    pub fn new(setup: &'a SimulationSetup, tree: SimulatedTree) -> Self {
        Self::of_trees(setup, vec![tree])
    }

    /// Returns a simulation of `setup` that starts with `trees`: the first one has the design of the setup, and the
    /// next ones are its other trees. Trees without a counterpart are ignored.
    pub fn of_trees(setup: &'a SimulationSetup, trees: Vec<SimulatedTree>) -> Self {
        let others = setup.others.iter().map(|other| &other.design);
        let designs = std::iter::once(&setup.design).chain(others);
        let states = designs.zip(setup.shares()).zip(trees);
        let mut trees: Vec<TreeState<'a>> =
            states.map(|((design, share), tree)| TreeState::new(design, share, tree)).collect();
        if let [only] = &mut trees[..] {
            only.share = 1.0;
        }
        let counted = vec![TreeTotals::default(); trees.len()];
        let outcome = SimulationOutcome { trees: counted, ..SimulationOutcome::default() };
        Self {
            setup,
            trees,
            goal: StopAt::Time(0.0),
            now: 0.0,
            merge_turns: Turns::default(),
            flush_turns: Turns::default(),
            next_merge: 1,
            is_undecided: false,
            decide_at: f64::INFINITY,
            look_at: f64::INFINITY,
            arrived: ArrivalCurve::default(),
            departed: 0.0,
            blocked: None,
            waiting: (0.0, 0.0),
            window: SimulationWindow::default(),
            window_from: 0.0,
            window_start: Totals::default(),
            tracing: Tracing::of(setup.trace_max),
            outcome,
        }
    }

    /// Runs for this many seconds of virtual time, and returns the results and the final first tree.
    pub fn run(self, seconds: f64) -> (SimulationOutcome, SimulatedTree) {
        let (outcome, mut trees) = self.run_trees(seconds);
        (outcome, trees.swap_remove(0))
    }

    /// Runs for this many seconds of virtual time, and returns the results and the final trees.
    pub fn run_trees(mut self, seconds: f64) -> (SimulationOutcome, Vec<SimulatedTree>) {
        self.goal = StopAt::Time(seconds);
        self.play();
        self.end()
    }

    /// Writes every record of a single tree once, and runs until no flush or compaction is due.
    pub fn load(mut self) -> (SimulationOutcome, SimulatedTree) {
        self.goal = StopAt::Loaded;
        self.play();
        let (outcome, mut trees) = self.end();
        (outcome, trees.swap_remove(0))
    }

    fn play(&mut self) {
        self.trace_start();
        loop {
            self.settle();
            let pace = self.pace();
            let rates = self.rates(&pace);
            if self.is_over(&pace) {
                return;
            }
            if let Some(why) = self.stuck_by(&pace, &rates) {
                self.outcome.stuck = Some(why);
                return;
            }
            let step = self.step(&pace, &rates);
            self.advance(step, &pace, &rates);
            self.complete();
        }
    }

    fn is_over(&self, pace: &WriterRates) -> bool {
        match self.goal {
            StopAt::Time(end) => self.now >= end - SOON,
            StopAt::Loaded => {
                let is_idle = |tree: &TreeState<'_>| {
                    tree.active == 0.0 && tree.flushing.is_none() && tree.merges.is_empty()
                };
                pace.is_done && self.trees.iter().all(is_idle)
            }
        }
    }

    /// Returns a description of a deadlock: stalled writers, and no job that could end the stall.
    fn stuck_by(&self, pace: &WriterRates, rates: &JobRates) -> Option<String> {
        let (_, cause, measured) = pace.blocked?;
        let is_idle = rates.flushes.iter().chain(&rates.merges).all(|rate| *rate <= 0.0);
        let looks_again = self
            .trees
            .iter()
            .any(|tree| tree.design.strategy.looks_at_time() || tree.drop_at < f64::INFINITY);
        (is_idle && !looks_again)
            .then(|| format!("writers are stalled by {cause} ({measured}), but no job is running"))
    }

    /// Performs all actions that are due now and take no time.
    fn settle(&mut self) {
        let admissions: Vec<Admission> = match self.is_traced() {
            true => self.trees.iter().map(|tree| tree.admission).collect(),
            false => Vec::new(),
        };
        if self.trees.iter().any(|tree| tree.has_changed) {
            self.drop_tables();
            self.schedule();
            for at in 0..self.trees.len() {
                self.trees[at].requests_per_write = self.reads_per_write(at);
                self.trees[at].admit();
            }
        }
        self.replace_memtables();
        self.begin_flushes();
        self.trace_admissions(&admissions);
        if self.is_undecided || self.now >= self.decide_at - SOON {
            self.decide();
        }
        if self.now >= self.look_at - SOON || self.look_at == f64::INFINITY {
            let looks = self.trees.iter().any(|tree| tree.design.strategy.looks_at_time());
            self.look_at = if looks { self.now + LOOK_AGAIN } else { f64::MAX };
        }
        let runs = self.run_count();
        self.outcome.totals.most_runs = self.outcome.totals.most_runs.max(runs);
        self.window.most_runs = self.window.most_runs.max(runs);
    }

    /// Returns the runs of all trees.
    fn run_count(&self) -> usize {
        self.trees.iter().map(|tree| tree.tree.shape().run_count()).sum()
    }

    fn rates(&self, pace: &WriterRates) -> JobRates {
        let reads = self.device_reads(pace.made);
        let merges = self.trees.iter().flat_map(|tree| &tree.merges);
        let work: Vec<(JobCost, f64)> =
            merges.map(|merge| (merge.begun.work, merge.share)).collect();
        let flushes = self.trees.iter().filter_map(|tree| tree.flushing.as_ref());
        let flushes: Vec<JobCost> = flushes.map(|flush| flush.work).collect();
        let (flushes, merges) = self.setup.machine.rates(&flushes, &work, reads);
        JobRates { flushes, merges }
    }

    /// Returns the time to the next event.
    fn step(&self, pace: &WriterRates, rates: &JobRates) -> f64 {
        let mut step = self.window_from + self.setup.window_seconds - self.now;
        let mut consider = |time: f64| step = step.min(time);
        if let StopAt::Time(end) = self.goal {
            consider(end - self.now);
        }
        let flushes = self.trees.iter().filter_map(|tree| tree.flushing.as_ref());
        for (flushing, rate) in flushes.zip(&rates.flushes) {
            consider((1.0 - flushing.done) / rate);
        }
        let merges = self.trees.iter().flat_map(|tree| &tree.merges);
        for (merge, rate) in merges.zip(&rates.merges).filter(|(_, rate)| **rate > 0.0) {
            consider((1.0 - merge.done) / rate);
        }
        if pace.made > 0.0 {
            for tree in &self.trees {
                let room = self.buffer_writes(tree) - tree.active;
                let room =
                    if self.goal == StopAt::Loaded { room.min(self.left_to_load()) } else { room };
                consider(room / (pace.made * tree.share));
            }
        }
        consider(pace.until - self.now);
        consider(self.decide_at - self.now);
        consider(self.look_at - self.now);
        self.trees.iter().for_each(|tree| consider(tree.drop_at - self.now));
        step.max(0.0)
    }

    fn advance(&mut self, step: f64, pace: &WriterRates, rates: &JobRates) {
        let user_bytes = self.outcome.totals.user_bytes;
        self.count_writes(step, pace);
        let (mut flush_rates, mut merge_rates) = (rates.flushes.iter(), rates.merges.iter());
        let totals = &mut self.outcome.totals;
        for (tree, counted) in self.trees.iter_mut().zip(&mut self.outcome.trees) {
            if let Some(flushing) = &mut tree.flushing {
                let rate = flush_rates.next().copied().unwrap_or(0.0);
                let part = (rate * step).min(1.0 - flushing.done);
                flushing.done += part;
                totals.flush_bytes += part * flushing.work.written_bytes;
                totals.read_bytes += part * flushing.work.read_bytes;
                counted.written_bytes += part * flushing.work.written_bytes;
                if (1.0 - flushing.done) <= rate * SOON {
                    flushing.done = 1.0;
                }
            }
            for merge in &mut tree.merges {
                let rate = merge_rates.next().copied().unwrap_or(0.0);
                let part = (rate * step).min(1.0 - merge.done);
                merge.done += part;
                totals.read_bytes += part * merge.begun.work.read_bytes;
                totals.merge_bytes += part * merge.begun.work.written_bytes;
                counted.written_bytes += part * merge.begun.work.written_bytes;
                // Complete a merge whose rest is only a rounding error, which would yield steps of zero length.
                if (1.0 - merge.done) <= rate * SOON {
                    merge.done = 1.0;
                }
            }
            let runs = tree.tree.shape().run_count();
            counted.run_seconds += runs as f64 * step;
            counted.most_runs = counted.most_runs.max(runs);
            totals.run_seconds += runs as f64 * step;
        }
        totals.expired_byte_seconds += totals.ended_bytes * step;
        totals.user_byte_seconds += f64::midpoint(user_bytes, totals.user_bytes) * step;
        self.now += step;
    }

    /// Completes jobs and windows that end now.
    fn complete(&mut self) {
        let micros = (self.now * 1e6) as u64;
        self.complete_flushes(micros);
        self.complete_merges(micros);
        self.note_due_drops();
        if self.now >= self.look_at - SOON {
            self.trees.iter_mut().for_each(|tree| tree.has_changed = true);
        }
        if self.now >= self.window_from + self.setup.window_seconds - SOON {
            self.close_window();
        }
    }
}
