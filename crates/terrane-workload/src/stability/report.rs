//! The report of a phase.

use super::phase::Load;
use super::query::Query;
use super::timeline::Timeline;
use crate::latency::Latency;
use crate::operation_mix::MixPart;
use crate::store::{Glance, StoreCounters};

/// The reported percentiles (S3-48).
pub const PERCENTILES: [f64; 6] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99];

/// A sample of the engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// The time since the start of the phase.
    pub seconds: f64,
    /// The gauges of the engine.
    pub glance: Glance,
}

/// An interval in which writes were waiting and none completed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// When the interval started, relative to the start of the phase.
    pub begin_seconds: f64,
    /// The length of the interval, accurate to one tick of the timeline.
    pub seconds: f64,
}

/// The results of a phase. Timelines and samples include the warm-up; everything else excludes it.
#[derive(Debug, Clone)]
pub struct PhaseReport {
    /// What started each write.
    pub load: Load,
    /// The number of writers.
    pub writers: u32,
    /// The measured time.
    pub seconds: f64,
    /// The length of the warm-up before the measured part.
    pub warm_up_seconds: f64,
    /// The number of arrivals; `None` in a closed system.
    pub offered: Option<u64>,
    /// The number of completed writes.
    pub completed: u64,
    /// The number of arrivals that were not started by the end of the phase.
    pub unfinished: u64,
    /// The longest waiting time of these arrivals.
    pub longest_wait_left_seconds: f64,
    /// Write latencies: from arrival to end, waiting included. A write that was not started counts
    /// with its waiting time.
    pub write: Latency,
    /// Processing latencies: from the call of the engine to its return.
    pub processing: Latency,
    /// The driver's error: the delays of idle clients, which are part of the write latency.
    pub late: Latency,
    /// Writes over time, with the longest write latency per tick.
    pub timeline: Timeline,
    /// Samples of the engine over time.
    pub samples: Vec<Sample>,
    /// The results of the readers.
    pub readers: Option<ReaderReport>,
    /// Latencies from arrival to end of each operation of a mix; empty if all writes are updates.
    pub kinds: Vec<KindLatency>,
    /// The number of wrong answers to the operations of a mix.
    pub wrong_answers: u64,
    /// Bytes of keys and values written.
    pub user_bytes_written: u64,
    /// The engine's counters over the phase.
    pub counters: StoreCounters,
}

/// The latencies of an operation of a mix.
#[derive(Debug, Clone)]
pub struct KindLatency {
    /// The operation.
    pub part: MixPart,
    /// Latencies from arrival to end.
    pub latency: Latency,
}

/// The results of readers that ran concurrently with the writers.
#[derive(Debug, Clone)]
pub struct ReaderReport {
    /// The query of the readers.
    pub query: Query,
    /// The number of readers.
    pub threads: u32,
    /// The number of answered queries.
    pub completed: u64,
    /// The measured time.
    pub seconds: f64,
    /// Latencies of queries.
    pub latency: Latency,
    /// The number of answers over time.
    pub timeline: Timeline,
    /// The number of wrong answers.
    pub wrong_answers: u64,
}

impl ReaderReport {
    /// Returns the queries per second of all readers.
    pub fn per_second(&self) -> f64 {
        per_second(self.completed, self.seconds)
    }
}

impl PhaseReport {
    /// Returns the completed writes per second.
    pub fn per_second(&self) -> f64 {
        per_second(self.completed, self.seconds)
    }

    /// Returns the arrivals per second; in a closed system, the completed writes per second.
    pub fn offered_per_second(&self) -> f64 {
        match self.offered {
            Some(offered) => per_second(offered, self.seconds + self.warm_up_seconds),
            None => self.per_second(),
        }
    }

    /// Returns the completed writes of the slowest full second after the warm-up, relative to its
    /// arrivals or, in a closed system, to the mean second. `None` without a full second that has
    /// arrivals.
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

    /// Returns the intervals after the warm-up in which writes were waiting and none completed.
    pub fn stalls(&self) -> Vec<Stall> {
        let tick_nanos = self.timeline.tick_nanos();
        let tick_seconds = tick_nanos as f64 / 1e9;
        let mut stalls: Vec<Stall> = Vec::new();
        let mut completed = 0;
        let mut last = None;
        for (number, tick) in self.timeline.ticks().iter().enumerate() {
            let begin = number as u64 * tick_nanos;
            // Writes that arrive within the tick need not complete in it.
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

    /// Returns the duration of the longest of the [stalls](Self::stalls), in seconds.
    pub fn longest_stall_seconds(&self) -> f64 {
        self.stalls().iter().map(|stall| stall.seconds).fold(0.0, f64::max)
    }

    /// Returns the bytes written to files per byte that the user wrote, if the engine reports them.
    pub fn write_amplification(&self) -> Option<f64> {
        let written = self.counters.storage_bytes_written?;
        (self.user_bytes_written > 0).then(|| written as f64 / self.user_bytes_written as f64)
    }

    /// Returns the mean number of sorted runs between two points of the phase, given as fractions
    /// such as 0.25 and 0.5.
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
