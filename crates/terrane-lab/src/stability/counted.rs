//! The counters of a run as plain numbers: the only input for fitting the simulator.
//!
//! `--json` prints it, so that a run can be fitted again without the machine that it ran on. The
//! tests replay recorded runs.

use serde::{Deserialize, Serialize};
use terrane::{Design, IoBudget, Stats};
use terrane_policy::TreeShape;
use terrane_sim::{Arrival, Skew};
use terrane_workload::stability::{Arrival as DrivenArrival, Rate, Sample, TwoPhaseReport};

use super::plan::StabilityPlan;
use crate::simulation::mix::skew_of;

/// The engine's counters and tree at the boundaries of the phases.
#[derive(Debug, Clone)]
pub(super) struct EngineCounts {
    pub(super) before_testing: Stats,
    pub(super) before_running: Stats,
    pub(super) after: Stats,
    /// The tree when the running phase started.
    pub(super) shape: TreeShape,
    /// The limit on bytes written during the phases.
    pub(super) budget: IoBudget,
}

/// A run in numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CountedRun {
    /// The design of the running phase.
    pub(super) design: String,
    /// The number of keys.
    pub(super) records: f64,
    /// The size of a key, in bytes.
    pub(super) key_bytes: f64,
    /// The mean size of a key and its value, in bytes.
    pub(super) record_bytes: f64,
    /// The distribution of keys, as [`Skew`] prints it.
    pub(super) skew: String,
    /// The arrivals of the running phase, as [`Arrival`] prints them.
    pub(super) arrival: String,
    /// The number of clients that write.
    pub(super) writers: u32,
    /// The number of threads that merge.
    pub(super) merge_threads: usize,
    /// The limit on bytes written per second.
    pub(super) budget: Option<f64>,
    /// The median processing time of a write, in seconds.
    pub(super) write_seconds: f64,
    /// The time of flushes per write, in seconds.
    pub(super) flush_seconds: f64,
    /// The mean bytes of an entry in all tables at the end.
    pub(super) entry_bytes: f64,
    /// The length of the running phase, in seconds.
    pub(super) seconds: f64,
    /// The mean number of runs in the running phase.
    pub(super) runs: f64,
    /// The bytes written by completed flushes and merges per user byte, both as means over the
    /// running phase.
    pub(super) write_amplification: f64,
    /// The counters of both phases together.
    pub(super) all: PhaseCounts,
    /// The counters of the running phase.
    pub(super) running: PhaseCounts,
    /// The tree when the running phase started, in the text form of a shape.
    pub(super) shape: String,
}

/// The growth of the engine's counters.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct PhaseCounts {
    pub(super) writes: f64,
    pub(super) user_bytes: f64,
    pub(super) flushes: f64,
    pub(super) flush_bytes: f64,
    pub(super) flush_seconds: f64,
    pub(super) merges: f64,
    pub(super) moves: f64,
    /// Bytes read by merges, including unfinished ones.
    pub(super) read_bytes: f64,
    /// Bytes written by completed merges.
    pub(super) written_bytes: f64,
    pub(super) merge_seconds: f64,
    pub(super) merge_cpu_seconds: f64,
    /// The time that writers were stopped or delayed, summed over writers.
    pub(super) held_seconds: f64,
}

impl PhaseCounts {
    fn between(before: &Stats, after: &Stats) -> Self {
        let grown = |of: fn(&Stats) -> u64| of(after).saturating_sub(of(before)) as f64;
        let seconds = |of: fn(&Stats) -> u64| grown(of) / 1e6;
        Self {
            writes: grown(|stats| stats.writes),
            user_bytes: grown(|stats| stats.user_bytes_written),
            flushes: grown(|stats| stats.flushes),
            flush_bytes: grown(|stats| stats.flush_bytes_written),
            flush_seconds: seconds(|stats| stats.flush_micros),
            merges: grown(|stats| stats.compactions),
            moves: grown(|stats| stats.move_compactions),
            read_bytes: grown(|stats| stats.compaction_bytes_read),
            written_bytes: grown(|stats| stats.compaction_bytes_written),
            merge_seconds: seconds(|stats| stats.latencies.compaction.sum_micros()),
            merge_cpu_seconds: seconds(|stats| stats.compaction_cpu_micros),
            held_seconds: seconds(|stats| stats.stalls.total_micros()),
        }
    }
}

impl CountedRun {
    /// Returns a run in numbers.
    ///
    /// # Errors
    ///
    /// A sentence if the simulator cannot simulate such a run.
    pub(super) fn of(
        plan: &StabilityPlan,
        design: &Design,
        report: &TwoPhaseReport,
        counts: &EngineCounts,
    ) -> Result<Self, String> {
        if plan.indexes.is_some() {
            return Err(
                "the simulator plays one tree, and indexes are trees of their own".to_owned()
            );
        }
        if plan.phases.mix.is_some() {
            return Err("the simulator continues updates, not a mix of operations".to_owned());
        }
        let run = &plan.phases.run;
        let distribution = run.distribution.unwrap_or(terrane_workload::Distribution::Uniform);
        let skew: Skew = skew_of(distribution)
            .ok_or_else(|| format!("the simulator has no keys distributed as {distribution}"))?;
        let EngineCounts { before_testing, before_running, after, shape, budget } = counts;
        let running = &report.running;
        let unfit = || "the running phase is too short, or completed no write".to_owned();
        let write_amplification = mean_write_amplification(&running.samples).ok_or_else(unfit)?;
        let runs = running.mean_components(0.0, 1.0).ok_or_else(unfit)?;
        let all = PhaseCounts::between(before_testing, after);
        let load = PhaseCounts::between(&Stats::default(), before_testing);
        let per_write = |counts: &PhaseCounts| counts.flush_seconds / counts.writes.max(1.0);
        // With a budget, flushes mostly wait for it; the load has no budget.
        let flush_seconds = match budget {
            IoBudget::Unlimited => per_write(&all),
            _ => per_write(&all).min(per_write(&load)),
        };
        Ok(Self {
            design: design.to_string(),
            records: run.num as f64,
            key_bytes: run.key_size_bytes as f64,
            record_bytes: plan.bytes_per_write(),
            skew: skew.to_string(),
            arrival: arrival(plan, report.testing.per_second()).to_string(),
            writers: plan.phases.writers,
            merge_threads: plan.merge_threads,
            budget: match budget {
                IoBudget::Total(bytes) | IoBudget::Leftover(bytes) => Some(*bytes as f64),
                _ => None,
            },
            write_seconds: running.processing.percentile_micros(50.0) / 1e6,
            flush_seconds,
            entry_bytes: after.table_bytes as f64 / (after.table_entries as f64).max(1.0),
            seconds: running.seconds,
            runs,
            write_amplification,
            all,
            running: PhaseCounts::between(before_running, after),
            shape: shape.to_string(),
        })
    }
}

/// Returns the mean over time of the bytes written so far, divided by the same mean of the user bytes.
/// Each flush and merge counts in proportion to the time left after its end, so the figure hardly
/// changes if a merge completes just before or just after the end of the phase. `None` if the samples
/// count no write.
fn mean_write_amplification(samples: &[Sample]) -> Option<f64> {
    let sum = |of: fn(&Sample) -> Option<u64>| {
        let first = samples.first().and_then(of).unwrap_or(0);
        let grown = |sample: &Sample| of(sample).unwrap_or(0).saturating_sub(first) as f64;
        let pairs = samples.windows(2).map(|pair| {
            let seconds = pair[1].seconds - pair[0].seconds;
            f64::midpoint(grown(&pair[0]), grown(&pair[1])) * seconds
        });
        pairs.sum::<f64>()
    };
    let user_bytes = sum(|sample| sample.glance.user_bytes_written);
    (user_bytes > 0.0).then(|| sum(|sample| sample.glance.table_bytes_written) / user_bytes)
}

/// Returns the arrivals of the running phase.
fn arrival(plan: &StabilityPlan, maximum: f64) -> Arrival {
    let of = |rate: Rate| match rate {
        Rate::PerSecond(rate) => rate,
        Rate::OfMaximum(percent) => percent / 100.0 * maximum,
    };
    match plan.phases.arrival {
        DrivenArrival::Constant => Arrival::Constant(plan.phases.utilization * maximum),
        DrivenArrival::Burst { low, high } => Arrival::Burst {
            low: of(low.0).max(1e-9),
            low_seconds: low.1,
            high: of(high.0).max(1e-9),
            high_seconds: high.1,
        },
    }
}
