//! The events: from one to the next nothing changes but by rates.
//!
//! An event is a full memtable, the end of a flush or of a merge, a change of the arrival rate, a
//! queue that is empty again, and the times at which the engine looks again: every few megabytes
//! merged the scheduler is asked anew, where its answer depends on how far merges have come.
//!
//! What the engine does is done here in the same order: a full memtable is replaced if admission
//! lets it, the oldest one is flushed, one flush at a time, and whenever the tree changes policy is
//! asked for compactions until what it answers would not be given a share.

mod merging;
mod writers;

use std::collections::VecDeque;

use terrane_policy::{Accesses, Admission, Compaction, Cursors, Design, FlushPlan, admit, flush};

use crate::keys::Content;
use crate::latency::Latencies;
use crate::machine::{Machine, Work};
use crate::outcome::{Outcome, StallPeriod, Totals, Window};
use crate::tree::{Begun, Tree};
use crate::workload::Workload;
use merging::Merging;
use writers::{Curve, Pace};

/// How far from its end work counts as done, in seconds: rounding, not a model.
const SOON: f64 = 1e-7;

/// Time alone may make something due; it is looked at this often, in seconds, as in the engine.
const LOOK_AGAIN: f64 = 10.0;

/// What is simulated.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The design of the tree.
    pub design: Design,
    /// What is written.
    pub workload: Workload,
    /// What that costs.
    pub machine: Machine,
    /// How long windows are, in seconds.
    pub window_seconds: f64,
    /// More tables than this are not told apart: they are larger in larger trees.
    pub tables_max: usize,
    /// Writers that someone else holds back: the most writes a second that are let in from each of
    /// these times on.
    pub held_back: Vec<(f64, f64)>,
    /// Holds every compaction to soundness and every tree to its invariants, and notes when each
    /// write was made; for tests, as it takes far longer than the rest.
    pub check: bool,
}

impl Setup {
    /// A design and a workload on a machine, with windows of half a minute.
    pub fn new(design: Design, workload: Workload, machine: Machine) -> Self {
        Self {
            design,
            workload,
            machine,
            window_seconds: 30.0,
            tables_max: 20_000,
            held_back: Vec::new(),
            check: false,
        }
    }
}

/// A flush that goes on.
#[derive(Debug, Clone)]
struct Flushing {
    content: Content,
    work: Work,
    seqs: (u64, u64),
    /// What it merges, if it does not make a new run.
    merge: Option<Begun>,
    done: f64,
}

/// What a simulation goes on to.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Goal {
    /// A time.
    Time(f64),
    /// All records are loaded, and nothing is left to do.
    Loaded,
}

/// A tree and its writers in virtual time.
#[derive(Debug)]
pub struct Simulation<'a> {
    setup: &'a Setup,
    tree: Tree,
    goal: Goal,
    now: f64,
    cursors: Cursors,
    /// Writes in the memtable that takes them.
    active: f64,
    /// Those in memtables that wait to be flushed, the oldest first.
    full: VecDeque<f64>,
    flushing: Option<Flushing>,
    merges: Vec<Merging>,
    in_progress: Vec<Compaction>,
    next_merge: u64,
    admission: Admission,
    /// The tree or the memtables have changed: policy is to be asked.
    has_changed: bool,
    /// Shares are to be decided.
    is_undecided: bool,
    decide_at: f64,
    look_at: f64,
    /// Writes that have come, and when.
    arrived: Curve,
    /// Writes that were made.
    departed: f64,
    /// Since when writers wait, and the last cause.
    blocked: Option<(f64, StallPeriod)>,
    /// Writes that were under way then and are still to be made, and what they take, in seconds.
    waiting: (f64, f64),
    window: Window,
    window_from: f64,
    window_start: Totals,
    outcome: Outcome,
}

impl<'a> Simulation<'a> {
    /// Writers of `setup` on a tree.
    pub fn new(setup: &'a Setup, tree: Tree) -> Self {
        let outcome = Outcome {
            seconds: 0.0,
            totals: Totals::default(),
            windows: Vec::new(),
            stalls: Vec::new(),
            latencies: Latencies::default(),
            processing: Latencies::default(),
            departures: Vec::new(),
            queued: 0.0,
            stuck: None,
        };
        Self {
            setup,
            tree,
            goal: Goal::Time(0.0),
            now: 0.0,
            cursors: Cursors::default(),
            active: 0.0,
            full: VecDeque::new(),
            flushing: None,
            merges: Vec::new(),
            in_progress: Vec::new(),
            next_merge: 1,
            admission: Admission::Proceed,
            has_changed: true,
            is_undecided: false,
            decide_at: f64::INFINITY,
            look_at: f64::INFINITY,
            arrived: Curve::default(),
            departed: 0.0,
            blocked: None,
            waiting: (0.0, 0.0),
            window: empty_window(),
            window_from: 0.0,
            window_start: Totals::default(),
            outcome,
        }
    }

    /// Goes on for so many seconds. Returns what happened, and the tree.
    pub fn run(mut self, seconds: f64) -> (Outcome, Tree) {
        self.goal = Goal::Time(seconds);
        self.play();
        self.end()
    }

    /// Writes every record once, and goes on until nothing is left to do.
    pub fn load(mut self) -> (Outcome, Tree) {
        self.goal = Goal::Loaded;
        self.play();
        self.end()
    }

    fn play(&mut self) {
        loop {
            self.settle();
            let pace = self.pace();
            let (flush, merges) = self.rates();
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

    fn is_over(&self, pace: &Pace) -> bool {
        match self.goal {
            Goal::Time(end) => self.now >= end - SOON,
            Goal::Loaded => {
                let is_idle = self.flushing.is_none() && self.merges.is_empty();
                pace.is_done && self.active == 0.0 && is_idle
            }
        }
    }

    /// Writers wait, and nothing goes on that could end that.
    fn stuck_by(&self, pace: &Pace, flush: f64, merges: &[f64]) -> Option<String> {
        let (cause, measured) = pace.blocked?;
        let is_idle = flush <= 0.0 && merges.iter().all(|rate| *rate <= 0.0);
        let looks_again = self.setup.design.strategy.looks_at_time();
        (is_idle && !looks_again)
            .then(|| format!("writers wait for {cause} ({measured}), and nothing is going on"))
    }

    /// What happens at once.
    fn settle(&mut self) {
        if self.has_changed {
            self.schedule();
            self.admission = admit(self.tree.shape(), self.full.len(), &self.setup.design);
        }
        let is_last = self.goal == Goal::Loaded && self.left_to_load() < 0.5;
        let is_full = self.active >= self.buffer_writes() * (1.0 - 1e-12);
        if self.active > 0.0
            && (is_full || is_last)
            && !matches!(self.admission, Admission::Stop(_))
        {
            self.full.push_back(self.active);
            self.active = 0.0;
            self.admission = admit(self.tree.shape(), self.full.len(), &self.setup.design);
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

    /// Writes that fit a memtable.
    fn buffer_writes(&self) -> f64 {
        let Setup { design, workload, machine, .. } = self.setup;
        let entry = workload.record_bytes + machine.costs.memtable_entry_bytes;
        (design.buffer_bytes as f64 / entry).max(1.0)
    }

    fn left_to_load(&self) -> f64 {
        self.setup.workload.records - self.departed
    }

    fn begin_flush(&mut self) {
        if self.flushing.is_some() {
            return;
        }
        let Some(&writes) = self.full.front() else { return };
        let keys = self.tree.keys();
        let content = match self.goal {
            Goal::Loaded => keys.after_load(writes),
            Goal::Time(_) => keys.after_updates(writes),
        };
        let (bytes, _) = self.tree.size_of(&content);
        let processor_seconds = writes * self.setup.machine.costs.flush_seconds;
        let mut work = Work { read_bytes: 0.0, written_bytes: bytes, processor_seconds };
        let upto = self.departed as u64 + 1;
        let seqs = (upto.saturating_sub(writes as u64), upto);
        let merge = self
            .flush_merge(writes)
            .map(|merge| self.tree.plan_flush(merge, &content, seqs, &self.setup.machine.costs));
        if let Some(merge) = &merge {
            work = merge.work;
            work.processor_seconds += processor_seconds;
        }
        self.flushing = Some(Flushing { content, work, seqs, merge, done: 0.0 });
    }

    /// What a flush of so many writes merges with, if it does.
    fn flush_merge(&mut self, writes: f64) -> Option<Compaction> {
        // The engine goes by what is in the memtable, where a key may be several times.
        let bytes = writes * self.setup.workload.record_bytes;
        let accesses = Accesses::default();
        let in_progress = self.taken();
        let input = self.input(&accesses, &in_progress);
        let FlushPlan::Merge(merge) = flush::plan(&input, &Tree::all_keys(), bytes as u64) else {
            return None;
        };
        if self.setup.check {
            let shape = flush::with_memtable(self.tree.shape(), &merge);
            self.check_soundness(&shape, &merge);
        }
        Some(merge)
    }

    fn rates(&self) -> (f64, Vec<f64>) {
        let work: Vec<(Work, f64)> =
            self.merges.iter().map(|merge| (merge.begun.work, merge.share)).collect();
        self.setup.machine.rates(self.flushing.as_ref().map(|flush| &flush.work), &work)
    }

    /// The time to the next event.
    fn step(&self, pace: &Pace, flush: f64, merges: &[f64]) -> f64 {
        let mut step = self.window_from + self.setup.window_seconds - self.now;
        let mut consider = |time: f64| step = step.min(time);
        if let Goal::Time(end) = self.goal {
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
            let room = if self.goal == Goal::Loaded { room.min(self.left_to_load()) } else { room };
            consider(room / pace.made);
        }
        consider(pace.until - self.now);
        consider(self.decide_at - self.now);
        consider(self.look_at - self.now);
        step.max(0.0)
    }

    fn advance(&mut self, step: f64, pace: &Pace, flush: f64, merges: &[f64]) {
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
            // What is as good as done is done: rounding must not leave a rest that takes no time.
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
        self.outcome.totals.run_seconds += runs as f64 * step;
        self.now += step;
    }

    /// What has come to its end.
    fn complete(&mut self) {
        let micros = (self.now * 1e6) as u64;
        if let Some(flushing) = self.flushing.take_if(|flushing| flushing.done >= 1.0) {
            match flushing.merge {
                None => self.tree.add_run(0, &flushing.content, flushing.seqs, micros),
                Some(merge) => {
                    self.outcome.totals.flushes_merged += 1;
                    self.finish(merge, micros);
                }
            }
            self.full.pop_front();
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

    fn close_window(&mut self) {
        let seconds = self.now - self.window_from;
        if seconds <= SOON {
            return;
        }
        let (now, before) = (self.outcome.totals, self.window_start);
        let written = now.flush_bytes + now.merge_bytes - before.flush_bytes - before.merge_bytes;
        let levels = &self.tree.shape().levels;
        let window = Window {
            rate: (now.writes - before.writes) / seconds,
            runs: (now.run_seconds - before.run_seconds) / seconds,
            level_bytes: levels.iter().map(terrane_policy::Level::size_bytes).collect(),
            level_runs: levels.iter().map(|level| level.runs.len()).collect(),
            write_amplification: written / (now.user_bytes - before.user_bytes).max(1.0),
            ..std::mem::replace(&mut self.window, empty_window())
        };
        self.outcome.windows.push(window);
        (self.window_from, self.window_start) = (self.now, now);
    }

    fn end(mut self) -> (Outcome, Tree) {
        self.unblock();
        // A last window that is but a moment says nothing.
        if self.now - self.window_from > self.setup.window_seconds / 2.0 {
            self.close_window();
        }
        self.outcome.seconds = self.now;
        self.outcome.queued =
            self.arrived.count_at(self.now).map_or(0.0, |all| all - self.departed);
        (self.outcome, self.tree)
    }
}

fn empty_window() -> Window {
    Window {
        rate: 0.0,
        stalled_seconds: 0.0,
        runs: 0.0,
        most_runs: 0,
        level_bytes: Vec::new(),
        level_runs: Vec::new(),
        write_amplification: 0.0,
    }
}
