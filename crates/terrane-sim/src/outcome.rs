//! What a simulation tells.

use terrane_policy::StallCause;

use crate::latency::Latencies;

/// What happened in a simulation.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How long it was, in seconds.
    pub seconds: f64,
    /// Amounts of all of it.
    pub totals: Totals,
    /// Of times of equal length, in order.
    pub windows: Vec<Window>,
    /// When writers had to wait, in order.
    pub stalls: Vec<StallPeriod>,
    /// From when a write was to be made until it was (open), or as long as it took (closed).
    pub latencies: Latencies,
    /// As long as writes took once they were begun.
    pub processing: Latencies,
    /// How many writes were made at which times, in order, with lines in between; only noted where
    /// [`Setup::check`](crate::Setup::check) says so.
    pub departures: Vec<(f64, f64)>,
    /// Writes that had come and not been made at the end.
    pub queued: f64,
    /// Why it ended before its time: nothing was going on and nothing could begin.
    pub stuck: Option<String>,
}

/// Amounts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Writes that were made.
    pub writes: f64,
    /// Bytes of their keys and values.
    pub user_bytes: f64,
    /// Flushes.
    pub flushes: u64,
    /// Those of them that merged with level 0.
    pub flushes_merged: u64,
    /// Bytes that they wrote.
    pub flush_bytes: f64,
    /// Merges that ended.
    pub merges: u64,
    /// Compactions that only moved tables.
    pub moves: u64,
    /// Bytes that merges read.
    pub read_bytes: f64,
    /// Bytes that merges wrote.
    pub merge_bytes: f64,
    /// Time by which writers were slowed down, in seconds, a writer's seconds each.
    pub delayed_seconds: f64,
    /// Runs times seconds.
    pub run_seconds: f64,
    /// The most runs at any time.
    pub most_runs: usize,
}

/// What a window was like.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Writes a second.
    pub rate: f64,
    /// How long writers had to wait, in seconds.
    pub stalled_seconds: f64,
    /// Runs on average.
    pub runs: f64,
    /// The most runs.
    pub most_runs: usize,
    /// Bytes of each level at its end.
    pub level_bytes: Vec<u64>,
    /// Runs of each level at its end.
    pub level_runs: Vec<usize>,
    /// Bytes written for each byte of the user, in this window.
    pub write_amplification: f64,
}

/// A time in which writers had to wait.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StallPeriod {
    /// What for.
    pub cause: StallCause,
    /// Runs or buffers that were too many.
    pub measured: u32,
    /// Since when, in seconds.
    pub from: f64,
    /// Until when.
    pub until: f64,
}

impl Totals {
    /// Bytes written to tables per byte that the user wrote.
    pub fn write_amplification(&self) -> f64 {
        (self.flush_bytes + self.merge_bytes) / self.user_bytes.max(1.0)
    }
}

impl Outcome {
    /// Writes a second from some time on.
    pub fn rate_from(&self, seconds: f64) -> f64 {
        let length = self.seconds / self.windows.len().max(1) as f64;
        let skip = (seconds / length.max(1e-9)).round() as usize;
        let rest = self.windows.get(skip..).unwrap_or_default();
        rest.iter().map(|window| window.rate).sum::<f64>() / rest.len().max(1) as f64
    }

    /// Runs on average.
    pub fn mean_runs(&self) -> f64 {
        self.totals.run_seconds / self.seconds.max(1e-9)
    }

    /// How long writers waited, in seconds, for a cause or for all.
    pub fn stalled_seconds(&self, cause: Option<StallCause>) -> f64 {
        let of = self.stalls.iter().filter(|stall| cause.is_none_or(|cause| stall.cause == cause));
        of.map(|stall| stall.until - stall.from).fold(0.0, |sum, time| sum + time)
    }

    /// The longest time that writers waited at a stretch, in seconds.
    pub fn longest_stall(&self) -> f64 {
        self.stalls.iter().map(|stall| stall.until - stall.from).fold(0.0, f64::max)
    }
}
