//! What came out of a phase.

use super::phase::Load;
use super::query::Query;
use super::timeline::Timeline;
use crate::latency::Latency;
use crate::store::{Glance, StoreCounters};

/// The percentiles that are reported (S3-48).
pub const PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// The engine at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Since the beginning of the phase.
    pub seconds: f64,
    /// What it looked like.
    pub glance: Glance,
}

/// A time in which no write ended although some were waiting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// When it began, since the beginning of the phase.
    pub begin_seconds: f64,
    /// How long it was, to a tick of the timeline.
    pub seconds: f64,
}

/// What came out of a phase. Times over time have the warm-up in them, all else leaves it out.
#[derive(Debug, Clone)]
pub struct PhaseReport {
    /// Who decided when a write began.
    pub load: Load,
    /// Clients that wrote.
    pub writers: u32,
    /// How long was measured.
    pub seconds: f64,
    /// What went before that.
    pub warm_up_seconds: f64,
    /// Writes that arrived; in a closed system writes do not arrive.
    pub offered: Option<u64>,
    /// Writes that ended.
    pub completed: u64,
    /// Writes that arrived and had not begun when the phase ended.
    pub unfinished: u64,
    /// How long the oldest of those had waited.
    pub longest_wait_left_seconds: f64,
    /// Write latency: from the arrival of a write to its end, waiting included. A write that had
    /// not begun counts with the time that it had waited.
    pub write: Latency,
    /// Processing latency: from the moment that a client gave a write to the engine to its end.
    pub processing: Latency,
    /// The driver's own error: how late an idle client began, a part of the write latency.
    pub late: Latency,
    /// Writes over time, with the write latency of the longest.
    pub timeline: Timeline,
    /// The engine over time.
    pub samples: Vec<Sample>,
    /// What the readers did.
    pub readers: Option<ReaderReport>,
    /// Bytes of keys and values that were written.
    pub user_bytes_written: u64,
    /// What the engine counted during the phase.
    pub counters: StoreCounters,
}

/// What readers did beside the writers.
#[derive(Debug, Clone)]
pub struct ReaderReport {
    /// What they asked.
    pub query: Query,
    /// How many they were.
    pub threads: u32,
    /// Queries that were answered.
    pub completed: u64,
    /// How long was measured.
    pub seconds: f64,
    /// How long answers took.
    pub latency: Latency,
    /// Answers over time.
    pub timeline: Timeline,
    /// Answers that were not the right ones.
    pub wrong_answers: u64,
}

impl ReaderReport {
    /// Queries a second, of all readers.
    pub fn per_second(&self) -> f64 {
        per_second(self.completed, self.seconds)
    }
}

impl PhaseReport {
    /// Writes a second.
    pub fn per_second(&self) -> f64 {
        per_second(self.completed, self.seconds)
    }

    /// Writes that arrived in a second; those that ended in it in a closed system.
    pub fn offered_per_second(&self) -> f64 {
        match self.offered {
            Some(offered) => per_second(offered, self.seconds + self.warm_up_seconds),
            None => self.per_second(),
        }
    }

    /// Writes of the slowest full second after the warm-up over those that arrived in it, or in a
    /// closed system over those of the mean second; `None` if no second was full, or in none of
    /// them anything arrived.
    pub fn slowest_second_share(&self) -> Option<f64> {
        let seconds = self.timeline.windows(1.0);
        let full = seconds
            .iter()
            .filter(|window| window.seconds > 0.99 && window.begin_seconds >= self.warm_up_seconds);
        let shares = full.filter_map(|window| {
            let wanted = match self.load {
                Load::Closed => self.per_second() * window.seconds,
                Load::Open(schedule) => {
                    let at = |seconds: f64| schedule.arrivals_before((seconds * 1e9) as u64);
                    let end = window.begin_seconds + window.seconds;
                    (at(end) - at(window.begin_seconds)) as f64
                }
            };
            (wanted > 0.0).then(|| window.completed as f64 / wanted)
        });
        shares.min_by(f64::total_cmp)
    }

    /// When no write ended although some were waiting, after the warm-up.
    pub fn stalls(&self) -> Vec<Stall> {
        let tick_nanos = self.timeline.tick_nanos();
        let tick_seconds = tick_nanos as f64 / 1e9;
        let mut stalls: Vec<Stall> = Vec::new();
        let mut completed = 0;
        let mut last = None;
        for (number, tick) in self.timeline.ticks().iter().enumerate() {
            let begin = number as u64 * tick_nanos;
            // Who arrived during the tick may rightly not be done by its end.
            let is_waited = match self.load {
                Load::Closed => true,
                Load::Open(schedule) => schedule.arrivals_before(begin) > completed,
            };
            completed += tick.completed;
            let begin_seconds = begin as f64 / 1e9;
            if tick.completed > 0 || !is_waited || begin_seconds < self.warm_up_seconds {
                continue;
            }
            match stalls.last_mut() {
                Some(stall) if last == Some(number.wrapping_sub(1)) => {
                    stall.seconds += tick_seconds;
                }
                _ => stalls.push(Stall { begin_seconds, seconds: tick_seconds }),
            }
            last = Some(number);
        }
        stalls
    }

    /// The longest of the [stalls](Self::stalls), in seconds.
    pub fn longest_stall_seconds(&self) -> f64 {
        self.stalls().iter().map(|stall| stall.seconds).fold(0.0, f64::max)
    }

    /// Bytes written to files over those that the user wrote, as far as the engine tells.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.counters.storage_bytes_written?;
        (self.user_bytes_written > 0).then(|| written as f64 / self.user_bytes_written as f64)
    }

    /// The mean number of sorted runs between two shares of the phase, such as 0.25 and 0.5.
    pub fn mean_components(&self, from: f64, to: f64) -> Option<f64> {
        let total = self.seconds + self.warm_up_seconds;
        let within = |sample: &&Sample| (total * from..=total * to).contains(&sample.seconds);
        let counts: Vec<f64> = self
            .samples
            .iter()
            .filter(within)
            .filter_map(|sample| sample.glance.components.map(|count| count as f64))
            .collect();
        (!counts.is_empty()).then(|| counts.iter().sum::<f64>() / counts.len() as f64)
    }
}

fn per_second(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}
