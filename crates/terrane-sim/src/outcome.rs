//! The results of a simulation.

use terrane_policy::StallCause;

use crate::latency::Latencies;
use crate::trace::TraceEvent;

/// The results of a simulation.
#[derive(Debug, Clone, Default)]
pub struct SimulationOutcome {
    /// The simulated time, in seconds.
    pub seconds: f64,
    /// Totals over the whole time.
    pub totals: Totals,
    /// Totals of each tree, in the order of the setup.
    pub trees: Vec<TreeTotals>,
    /// Successive intervals of equal length.
    pub windows: Vec<SimulationWindow>,
    /// Stalls in chronological order.
    pub stalls: Vec<StallPeriod>,
    /// Latencies from arrival to completion in an open system; in a closed one, from start to
    /// completion.
    pub latencies: Latencies,
    /// Latencies from start to completion.
    pub processing: Latencies,
    /// Times with the cumulative number of completed writes, linear in between. Only recorded with
    /// [`SimulationSetup::check`](crate::SimulationSetup::check).
    pub departures: Vec<(f64, f64)>,
    /// What happened, in the order of time. Only recorded with
    /// [`SimulationSetup::trace_max`](crate::SimulationSetup::trace_max).
    pub trace: Vec<TraceEvent>,
    /// When the trace became full, in seconds; `None` if it is complete.
    pub trace_ended: Option<f64>,
    /// Writes that had arrived but were not completed at the end.
    pub queued: f64,
    /// Why the simulation ended early: a deadlock, or a failed check.
    pub stuck: Option<String>,
}

/// Totals over some time.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Completed writes.
    pub writes: f64,
    /// The bytes of keys and values in the completed writes.
    pub user_bytes: f64,
    /// Completed flushes.
    pub flushes: u64,
    /// Flushes that merged with level 0.
    pub flushes_merged: u64,
    /// Bytes written by flushes.
    pub flush_bytes: f64,
    /// Completed merges.
    pub merges: u64,
    /// Compactions that only moved tables.
    pub moves: u64,
    /// Tables dropped unread because all of their values had expired.
    pub drops: u64,
    /// Bytes read by merges.
    pub read_bytes: f64,
    /// Completed collections of value files, which also count as merges.
    pub collections: u64,
    /// Bytes of values that collections copied to new value files, which are also part of
    /// `merge_bytes`.
    pub collected_bytes: f64,
    /// Bytes written by merges.
    pub merge_bytes: f64,
    /// The total duration of completed merges, in seconds.
    pub merge_seconds: f64,
    /// The total time for which admission delayed writers, in seconds.
    pub delayed_seconds: f64,
    /// Bytes written by completed flushes and merges.
    pub ended_bytes: f64,
    /// The integral of `ended_bytes` over time, in byte-seconds.
    pub expired_byte_seconds: f64,
    /// The integral of `user_bytes` over time, in byte-seconds.
    pub user_byte_seconds: f64,
    /// The integral of the number of runs over time, in run-seconds.
    pub run_seconds: f64,
    /// The maximum number of runs.
    pub most_runs: usize,
}

/// Totals over some time of one of several trees.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TreeTotals {
    /// Completed flushes.
    pub flushes: u64,
    /// Completed merges.
    pub merges: u64,
    /// Bytes written by flushes and merges.
    pub written_bytes: f64,
    /// The integral of the number of runs over time, in run-seconds.
    pub run_seconds: f64,
    /// The maximum number of runs.
    pub most_runs: usize,
}

/// Averages over one interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SimulationWindow {
    /// Completed writes per second.
    pub rate: f64,
    /// The duration of stalls, in seconds.
    pub stalled_seconds: f64,
    /// The mean number of runs.
    pub runs: f64,
    /// The maximum number of runs.
    pub most_runs: usize,
    /// The bytes of each level at the end of the window.
    pub level_bytes: Vec<u64>,
    /// The runs of each level at the end of the window.
    pub level_runs: Vec<usize>,
    /// The bytes of all value files at the end of the window.
    pub value_bytes: u64,
    /// The bytes of the values to which tables point at the end of the window.
    pub live_value_bytes: u64,
    /// Completed writes. Writes are a fluid, so a window may have a part of one.
    pub writes: f64,
    /// Bytes of keys and values in the completed writes.
    pub user_bytes: f64,
    /// Bytes written to tables and value files.
    pub written_bytes: f64,
    /// Writes that had arrived but were not completed at the end of the window.
    pub queued: f64,
    /// The latencies of the writes; only recorded with a trace, and `None` without writes.
    pub latencies: Option<WindowLatencies>,
}

/// The latencies of the writes of a window, as in [`SimulationOutcome::latencies`], in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowLatencies {
    /// Half of the writes took at most this long.
    pub p50: f64,
    /// 99 % of the writes took at most this long.
    pub p99: f64,
    /// The longest.
    pub longest: f64,
}

/// An interval in which writers were stalled.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StallPeriod {
    /// The number of the tree that stopped them, in the order of the setup.
    pub tree: usize,
    /// The cause.
    pub cause: StallCause,
    /// The number of runs or memtables that exceeded the limit.
    pub measured: u32,
    /// The source and target level of the tree's largest merge at the start of the stall.
    pub merging: Option<(usize, usize)>,
    /// The start, in seconds.
    pub from: f64,
    /// The end, in seconds.
    pub until: f64,
}

/// Returns `bytes` per user byte; `None` if not even one write was completed, because the quotient
/// would then be a number of bytes.
fn per_user_byte(bytes: f64, user_bytes: f64, writes: f64) -> Option<f64> {
    (writes >= 1.0).then(|| bytes / user_bytes)
}

impl Totals {
    /// Returns the bytes written to tables and value files.
    pub fn written_bytes(&self) -> f64 {
        self.flush_bytes + self.merge_bytes
    }

    /// Returns the bytes written to tables and value files per byte that the user wrote; `None` if
    /// no write was completed.
    pub fn write_amplification(&self) -> Option<f64> {
        per_user_byte(self.written_bytes(), self.user_bytes, self.writes)
    }

    /// Returns the time average of the bytes that completed flushes and merges have written, per
    /// byte that the user has written; `None` if no write was completed. It hardly depends on
    /// whether a merge ends just before or just after the end of the run.
    pub fn mean_write_amplification(&self) -> Option<f64> {
        per_user_byte(self.expired_byte_seconds, self.user_byte_seconds, self.writes)
    }
}

impl SimulationWindow {
    /// Returns the bytes written to tables and value files per byte that the user wrote in this
    /// window; `None` if no write was completed. In a window between two flushes or merges it is
    /// far from the mean; divide sums over several windows instead of averaging it.
    pub fn write_amplification(&self) -> Option<f64> {
        per_user_byte(self.written_bytes, self.user_bytes, self.writes)
    }

    /// Returns the write amplification of several windows together; `None` if no write was
    /// completed in them.
    pub fn write_amplification_of(windows: &[Self]) -> Option<f64> {
        let sum = |of: fn(&Self) -> f64| windows.iter().map(of).sum::<f64>();
        let writes = sum(|window| window.writes);
        per_user_byte(sum(|window| window.written_bytes), sum(|window| window.user_bytes), writes)
    }
}

impl SimulationOutcome {
    /// Returns the mean rate of the windows after the first `seconds`, in writes per second.
    pub fn rate_from(&self, seconds: f64) -> f64 {
        let length = self.seconds / self.windows.len().max(1) as f64;
        let skip = (seconds / length.max(1e-9)).round() as usize;
        let rest = self.windows.get(skip..).unwrap_or_default();
        rest.iter().map(|window| window.rate).sum::<f64>() / rest.len().max(1) as f64
    }

    /// Returns the mean number of runs.
    pub fn mean_runs(&self) -> f64 {
        self.totals.run_seconds / self.seconds.max(1e-9)
    }

    /// Returns how long writers were stalled by one cause, or by any cause, in seconds.
    pub fn stalled_seconds(&self, cause: Option<StallCause>) -> f64 {
        let of = self.stalls.iter().filter(|stall| cause.is_none_or(|cause| stall.cause == cause));
        of.map(|stall| stall.until - stall.from).fold(0.0, |sum, time| sum + time)
    }

    /// Returns how long one of several trees stopped writers, in seconds.
    pub fn seconds_stalled_by(&self, tree: usize) -> f64 {
        let own = self.stalls.iter().filter(|stall| stall.tree == tree);
        own.map(|stall| stall.until - stall.from).fold(0.0, |sum, time| sum + time)
    }

    /// Returns the duration of the longest stall, in seconds.
    pub fn longest_stall(&self) -> f64 {
        self.stalls.iter().map(|stall| stall.until - stall.from).fold(0.0, f64::max)
    }
}
