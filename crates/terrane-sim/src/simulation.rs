//! The event loop: rates are constant from one event to the next.
//!
//! Events are a memtable that reaches its size, the end of a flush or merge, a change of the
//! arrival rate, a drained queue, and the engine's periodic decisions. If a scheduler depends on
//! the progress of merges, it decides again every few megabytes.
//!
//! The order of actions is the engine's. A memtable at its size is replaced if admission allows it;
//! one flush at a time writes the oldest immutable memtable; after every change of the tree, policy
//! picks compactions until one would get no share of the bandwidth.

mod flushing;
mod jobs;
mod merging;
mod reading;
mod recording;
mod setup;
mod writers;

use std::collections::VecDeque;

use terrane_policy::{Admission, Compaction, Cursors, admit};

use crate::machine::JobCost;
use crate::outcome::{SimulationOutcome, SimulationWindow, StallPeriod, Totals};
use crate::tree::SimulatedTree;
use jobs::{RunningFlush, RunningMerge};
pub use setup::SimulationSetup;
use writers::{ArrivalCurve, WriterRates};

/// Times closer than this, in seconds, are equal: a tolerance for rounding.
const SOON: f64 = 1e-7;

/// The interval, in seconds, of checks for compactions that become due by time, as in the engine.
const LOOK_AGAIN: f64 = 10.0;

/// The end of a simulation.
#[derive(Debug, Clone, Copy, PartialEq)]
enum StopAt {
    /// This time, in seconds.
    Time(f64),
    /// All records are loaded, and no flush or compaction is due.
    Loaded,
}

/// A tree and its writers in virtual time.
#[derive(Debug)]
pub struct Simulation<'a> {
    setup: &'a SimulationSetup,
    tree: SimulatedTree,
    goal: StopAt,
    now: f64,
    cursors: Cursors,
    /// The number of writes in the active memtable.
    active: f64,
    /// The number of writes in each immutable memtable, oldest first.
    immutable: VecDeque<f64>,
    flushing: Option<RunningFlush>,
    merges: Vec<RunningMerge>,
    in_progress: Vec<Compaction>,
    next_merge: u64,
    admission: Admission,
    /// The tree or the memtables have changed since policy last decided.
    has_changed: bool,
    /// The set of merges has changed since the scheduler last decided.
    is_undecided: bool,
    decide_at: f64,
    look_at: f64,
    /// Reads from the device that come with each write, in the present tree.
    requests_per_write: f64,
    /// Arrivals over time.
    arrived: ArrivalCurve,
    /// The number of completed writes.
    departed: f64,
    /// The start of the present stall, and its period with the present cause.
    blocked: Option<(f64, StallPeriod)>,
    /// The number of writes that the last stall interrupted and that are not completed yet, and
    /// their latency in seconds.
    waiting: (f64, f64),
    window: SimulationWindow,
    window_from: f64,
    window_start: Totals,
    outcome: SimulationOutcome,
}

impl<'a> Simulation<'a> {
    /// Returns a simulation of `setup` that starts with `tree`.
    pub fn new(setup: &'a SimulationSetup, tree: SimulatedTree) -> Self {
        Self {
            setup,
            tree,
            goal: StopAt::Time(0.0),
            now: 0.0,
            cursors: Cursors::default(),
            active: 0.0,
            immutable: VecDeque::new(),
            flushing: None,
            merges: Vec::new(),
            in_progress: Vec::new(),
            next_merge: 1,
            admission: Admission::Proceed,
            has_changed: true,
            is_undecided: false,
            decide_at: f64::INFINITY,
            look_at: f64::INFINITY,
            requests_per_write: 0.0,
            arrived: ArrivalCurve::default(),
            departed: 0.0,
            blocked: None,
            waiting: (0.0, 0.0),
            window: SimulationWindow::default(),
            window_from: 0.0,
            window_start: Totals::default(),
            outcome: SimulationOutcome::default(),
        }
    }

    /// Runs for this many seconds of virtual time, and returns the results and the final tree.
    pub fn run(mut self, seconds: f64) -> (SimulationOutcome, SimulatedTree) {
        self.goal = StopAt::Time(seconds);
        self.play();
        self.end()
    }

    /// Writes every record once, and runs until no flush or compaction is due.
    pub fn load(mut self) -> (SimulationOutcome, SimulatedTree) {
        self.goal = StopAt::Loaded;
        self.play();
        self.end()
    }

    fn play(&mut self) {
        loop {
            self.settle();
            let pace = self.pace();
            let (flush, merges) = self.rates(&pace);
            if self.is_over(&pace) {
                return;
            }
            if let Some(why) = self.stuck_by(&pace, flush, &merges) {
                self.outcome.stuck = Some(why);
                return;
            }
            let step = self.step(&pace, flush, &merges);
            self.advance(step, &pace, flush, &merges);
            self.complete();
        }
    }

    fn is_over(&self, pace: &WriterRates) -> bool {
        match self.goal {
            StopAt::Time(end) => self.now >= end - SOON,
            StopAt::Loaded => {
                let is_idle = self.flushing.is_none() && self.merges.is_empty();
                pace.is_done && self.active == 0.0 && is_idle
            }
        }
    }

    /// Returns a description of a deadlock: stalled writers, and no job that could end the stall.
    fn stuck_by(&self, pace: &WriterRates, flush: f64, merges: &[f64]) -> Option<String> {
        let (cause, measured) = pace.blocked?;
        let is_idle = flush <= 0.0 && merges.iter().all(|rate| *rate <= 0.0);
        let looks_again = self.setup.design.strategy.looks_at_time();
        (is_idle && !looks_again)
            .then(|| format!("writers are stalled by {cause} ({measured}), but no job is running"))
    }

    /// Takes all actions that are due now and need no time.
    fn settle(&mut self) {
        if self.has_changed {
            self.schedule();
            self.requests_per_write = self.reads_per_write();
            self.admission = admit(self.tree.shape(), self.immutable.len(), &self.setup.design);
        }
        let is_last = self.goal == StopAt::Loaded && self.left_to_load() < 0.5;
        let is_full = self.active >= self.buffer_writes() * (1.0 - 1e-12);
        if self.active > 0.0
            && (is_full || is_last)
            && !matches!(self.admission, Admission::Stop(_))
        {
            self.immutable.push_back(self.active);
            self.active = 0.0;
            self.admission = admit(self.tree.shape(), self.immutable.len(), &self.setup.design);
        }
        self.begin_flush();
        if self.is_undecided || self.now >= self.decide_at - SOON {
            self.decide();
        }
        if self.now >= self.look_at - SOON || self.look_at == f64::INFINITY {
            let looks = self.setup.design.strategy.looks_at_time();
            self.look_at = if looks { self.now + LOOK_AGAIN } else { f64::MAX };
        }
        let runs = self.tree.shape().run_count();
        self.outcome.totals.most_runs = self.outcome.totals.most_runs.max(runs);
        self.window.most_runs = self.window.most_runs.max(runs);
    }

    fn rates(&self, pace: &WriterRates) -> (f64, Vec<f64>) {
        let reads = self.device_reads(pace.made);
        let work: Vec<(JobCost, f64)> =
            self.merges.iter().map(|merge| (merge.begun.work, merge.share)).collect();
        let flush = self.flushing.as_ref().map(|flush| &flush.work);
        self.setup.machine.rates(flush, &work, reads)
    }

    /// Returns the time to the next event.
    fn step(&self, pace: &WriterRates, flush: f64, merges: &[f64]) -> f64 {
        let mut step = self.window_from + self.setup.window_seconds - self.now;
        let mut consider = |time: f64| step = step.min(time);
        if let StopAt::Time(end) = self.goal {
            consider(end - self.now);
        }
        if let Some(flushing) = &self.flushing {
            consider((1.0 - flushing.done) / flush);
        }
        for (merge, rate) in self.merges.iter().zip(merges).filter(|(_, rate)| **rate > 0.0) {
            consider((1.0 - merge.done) / rate);
        }
        if pace.made > 0.0 {
            let room = self.buffer_writes() - self.active;
            let room =
                if self.goal == StopAt::Loaded { room.min(self.left_to_load()) } else { room };
            consider(room / pace.made);
        }
        consider(pace.until - self.now);
        consider(self.decide_at - self.now);
        consider(self.look_at - self.now);
        step.max(0.0)
    }

    fn advance(&mut self, step: f64, pace: &WriterRates, flush: f64, merges: &[f64]) {
        let user_bytes = self.outcome.totals.user_bytes;
        self.count_writes(step, pace);
        if let Some(flushing) = &mut self.flushing {
            let part = (flush * step).min(1.0 - flushing.done);
            flushing.done += part;
            self.outcome.totals.flush_bytes += part * flushing.work.written_bytes;
            self.outcome.totals.read_bytes += part * flushing.work.read_bytes;
        }
        for (merge, rate) in self.merges.iter_mut().zip(merges) {
            let part = (rate * step).min(1.0 - merge.done);
            merge.done += part;
            self.outcome.totals.read_bytes += part * merge.begun.work.read_bytes;
            self.outcome.totals.merge_bytes += part * merge.begun.work.written_bytes;
            // Complete a merge of which only a rounding error is left; it would yield steps of zero
            // length.
            if (1.0 - merge.done) <= rate * SOON {
                merge.done = 1.0;
            }
        }
        if let Some(flushing) = &mut self.flushing
            && (1.0 - flushing.done) <= flush * SOON
        {
            flushing.done = 1.0;
        }
        let runs = self.tree.shape().run_count();
        let totals = &mut self.outcome.totals;
        totals.run_seconds += runs as f64 * step;
        totals.ended_byte_seconds += totals.ended_bytes * step;
        totals.user_byte_seconds += f64::midpoint(user_bytes, totals.user_bytes) * step;
        self.now += step;
    }

    /// Completes jobs and windows that end now.
    fn complete(&mut self) {
        let micros = (self.now * 1e6) as u64;
        if let Some(flushing) = self.flushing.take_if(|flushing| flushing.done >= 1.0) {
            self.outcome.totals.ended_bytes += flushing.work.written_bytes;
            match flushing.merge {
                None => self.tree.add_run(0, &flushing.content, flushing.seqs, micros),
                Some(merge) => {
                    self.outcome.totals.flushes_merged += 1;
                    self.finish(merge, micros);
                }
            }
            self.immutable.pop_front();
            self.outcome.totals.flushes += 1;
            self.has_changed = true;
        }
        self.complete_merges(micros);
        if self.now >= self.look_at - SOON {
            self.has_changed = true;
        }
        if self.now >= self.window_from + self.setup.window_seconds - SOON {
            self.close_window();
        }
    }
}
