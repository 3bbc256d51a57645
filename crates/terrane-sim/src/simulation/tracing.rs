//! Records a trace.

use terrane_policy::{Admission, Compaction};

use super::Simulation;
use super::jobs::source;
use crate::latency::Latencies;
use crate::outcome::WindowLatencies;
use crate::trace::{TraceEvent, TraceKind, TracedMerge};

/// A trace that is being recorded.
#[derive(Debug, Default)]
pub(super) struct Tracing {
    /// The tables and events that may still be recorded.
    left: usize,
    /// The latencies of the current window.
    pub(super) latencies: Latencies,
}

impl Tracing {
    /// Returns a recorder of at most this many tables and events; `None` if there are to be none.
    pub(super) fn of(most: usize) -> Option<Self> {
        (most > 0).then(|| Self { left: most, latencies: Latencies::default() })
    }
}

/// Returns a compaction as a trace describes it.
pub(super) fn traced(compaction: &Compaction) -> TracedMerge {
    let inputs = compaction.inputs.iter().filter(|input| !input.is_memtable());
    TracedMerge {
        reason: compaction.reason.to_string(),
        from: source(compaction),
        into: compaction.output.level,
        inputs: inputs.flat_map(|input| &input.tables).map(|table| table.id).collect(),
    }
}

impl Simulation<'_> {
    /// Returns true if events are recorded: there is a trace, and it is not full.
    pub(super) fn is_traced(&self) -> bool {
        self.tracing.is_some() && self.outcome.trace_ended.is_none()
    }

    /// Records the initial trees, and their changes from now on.
    pub(super) fn trace_start(&mut self) {
        if !self.is_traced() {
            return;
        }
        for at in 0..self.trees.len() {
            let tables = self.trees[at].tree.record_changes();
            self.trace(at, || TraceKind::Start(tables));
        }
    }

    /// Records an event, unless the trace is full: then it ends here.
    pub(super) fn trace(&mut self, tree: usize, what: impl FnOnce() -> TraceKind) {
        if !self.is_traced() {
            return;
        }
        let Some(tracing) = &mut self.tracing else { return };
        let what = what();
        match tracing.left.checked_sub(what.size()) {
            Some(left) => {
                tracing.left = left;
                self.outcome.trace.push(TraceEvent { at: self.now, tree, what });
            }
            None => self.outcome.trace_ended = Some(self.now),
        }
    }

    /// Records how far the running merges are.
    pub(super) fn trace_progress(&mut self) {
        for at in 0..self.trees.len() {
            for number in 0..self.trees[at].merges.len() {
                let merge = &self.trees[at].merges[number];
                let (job, done, share) = (merge.id, merge.done, merge.shown);
                self.trace(at, || TraceKind::MergeShare { job, done, share });
            }
        }
    }

    /// Records the decisions about writers that differ from the last ones.
    pub(super) fn trace_admissions(&mut self, before: &[Admission]) {
        for (at, before) in before.iter().enumerate() {
            let now = self.trees[at].admission;
            if now != *before {
                self.trace(at, || TraceKind::Admission(now));
            }
        }
    }

    /// Returns the latencies of the window that ends, and begins those of the next one.
    pub(super) fn take_window_latencies(&mut self) -> Option<WindowLatencies> {
        let latencies = std::mem::take(&mut self.tracing.as_mut()?.latencies);
        Some(WindowLatencies {
            p50: latencies.quantile(0.5)?,
            p99: latencies.quantile(0.99)?,
            longest: latencies.quantile(1.0)?,
        })
    }

    /// Adds the latencies of completed writes, as [`Latencies::add`].
    pub(super) fn add_latencies(&mut self, count: f64, first: f64, last: f64) {
        self.outcome.latencies.add(count, first, last);
        if let Some(tracing) = &mut self.tracing {
            tracing.latencies.add(count, first, last);
        }
    }
}
