//! How close a tree is to the limits at which writers are delayed and stopped.

use std::fmt;

use crate::design::{Bound, Design, FlushMode, Limit};
use crate::shape::TreeShape;

/// The longest delay of a writer, in nanoseconds per byte, just before the writer would be stopped.
/// It corresponds to 4 MiB a second.
const SLOWEST_NANOS_PER_BYTE: f64 = 240.0;

/// The minimum number of runs that a global limit expects. It lets a tree of one level hold one or
/// two flushed runs while its own run is merged.
const GLOBAL_EXPECTED_MIN: u32 = 2;

/// The number of runs beyond the limit at which writers stop even if their memtable has room.
/// Flushes that were pending when the limit was reached add fewer runs than this.
const PENDING_FLUSHES_MAX: u32 = 4;

/// What stalls writers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StallCause {
    /// Merges fall behind: level 0 holds too many runs.
    Level0Runs,
    /// Merges fall behind: some level holds too many runs.
    LevelRuns,
    /// Merges fall behind: all levels together hold too many runs.
    TotalRuns,
    /// Flushing falls behind: too many immutable memtables.
    ImmutableMemtables,
    /// A compaction is due, and the design stalls writers until none is.
    CompactionsDue,
    /// Collections fall behind: value files take more space than the design allows.
    ValueSpace,
    /// Flushing falls behind: memtables take all that they may of the memory budget. The engine observes
    /// this cause; no design leads to it.
    MemoryBudget,
}

impl StallCause {
    /// All causes.
    pub const ALL: [StallCause; 7] = [
        Self::Level0Runs,
        Self::LevelRuns,
        Self::TotalRuns,
        Self::ImmutableMemtables,
        Self::CompactionsDue,
        Self::ValueSpace,
        Self::MemoryBudget,
    ];
}

impl fmt::Display for StallCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level0Runs => "level-0-runs",
            Self::LevelRuns => "level-runs",
            Self::TotalRuns => "total-runs",
            Self::ImmutableMemtables => "immutable-memtables",
            Self::CompactionsDue => "compactions-due",
            Self::ValueSpace => "value-space",
            Self::MemoryBudget => "memory-budget",
        })
    }
}

/// A cause of stalls, with the measured number and the limits that it reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Pressure {
    /// The cause.
    pub cause: StallCause,
    /// The level that was measured; `None` if all levels were counted together.
    pub level: Option<usize>,
    /// The number of runs or memtables counted; 0 for [`StallCause::CompactionsDue`]. For
    /// [`StallCause::ValueSpace`], this and the limits are percentages of the live values, for
    /// [`StallCause::MemoryBudget`] of what memtables may take.
    pub measured: u32,
    /// The number of runs or memtables at which writers are delayed.
    pub threshold: u32,
    /// The number of runs or memtables at which writers stop.
    pub stop_at: u32,
    /// How far the newest run fills its level, in percent, for a level that holds one run while
    /// merging keeps up. In such a level, the run count alone leaves no step between full speed and
    /// a stop. bLSM delays writers by how far a level has refilled while its previous run is still
    /// being merged.
    pub newest_percent: Option<u8>,
}

impl Pressure {
    /// Returns a pressure without a `newest_percent`.
    pub fn new(
        cause: StallCause,
        level: Option<usize>,
        measured: u32,
        threshold: u32,
        stop_at: u32,
    ) -> Self {
        Self { cause, level, measured, threshold, stop_at, newest_percent: None }
    }

    /// Returns the condition that ends the stall, in words: `level 0 holds fewer than 12 runs`.
    pub fn until(&self) -> String {
        let Self { cause, level, threshold, .. } = self;
        let level = level.unwrap_or_default();
        match cause {
            StallCause::Level0Runs | StallCause::LevelRuns => {
                format!("level {level} holds fewer than {threshold} runs")
            }
            StallCause::TotalRuns => format!("all levels hold fewer than {threshold} runs"),
            StallCause::ImmutableMemtables => {
                format!("fewer than {threshold} memtables wait to be flushed")
            }
            StallCause::CompactionsDue => format!("level {level} needs no compaction"),
            StallCause::ValueSpace => {
                format!("value files take less than {threshold} % of the bytes of live values")
            }
            StallCause::MemoryBudget => "memtables take less than their share of memory".into(),
        }
    }

    /// Returns what makes room before writers stop, in words: `a merge out of level 0 ends`.
    pub fn relief(&self) -> String {
        match (self.cause, self.level) {
            (StallCause::ImmutableMemtables | StallCause::MemoryBudget, _) => "a flush ends".into(),
            (StallCause::ValueSpace, _) => "a collection ends".into(),
            (_, Some(level)) => format!("a merge out of level {level} ends"),
            (_, None) => "a merge ends".into(),
        }
    }

    /// Returns how close the tree is to a stop; at 1 and above, writers stop.
    fn excess(&self) -> f64 {
        (f64::from(self.measured) + self.newest_part()) / f64::from(self.stop_at.max(1))
    }

    fn newest_part(&self) -> f64 {
        f64::from(self.newest_percent.unwrap_or(0)) / 100.0
    }

    /// Returns true if a stop takes effect at once, even if the memtable has room. It does if the
    /// design allows no write while a compaction is due, or if requested flushes have added more
    /// runs than were pending. Otherwise writers continue until their memtable is full: stopping
    /// them earlier would only lengthen their stalls (performance-stability, Theorem 1).
    pub fn stops_at_once(&self) -> bool {
        match self.cause {
            StallCause::CompactionsDue | StallCause::MemoryBudget => true,
            StallCause::ImmutableMemtables | StallCause::ValueSpace => false,
            StallCause::Level0Runs | StallCause::LevelRuns | StallCause::TotalRuns => {
                self.measured >= self.stop_at.saturating_add(PENDING_FLUSHES_MAX)
            }
        }
    }

    /// Returns the delay of a writer, in nanoseconds per byte that it writes.
    pub fn delay_nanos_per_byte(&self) -> f64 {
        let strength = self.strength();
        strength * strength * SLOWEST_NANOS_PER_BYTE
    }

    /// Returns the tree's position between its first delay (0) and its stop (1).
    pub fn strength(&self) -> f64 {
        let span = f64::from(self.stop_at.saturating_sub(self.threshold));
        let steps = f64::from(self.measured.saturating_sub(self.threshold));
        let strength = match self.newest_percent {
            Some(_) => (steps + self.newest_part()) / span.max(1.0),
            None => (steps + 1.0) / (span + 1.0),
        };
        strength.clamp(0.0, 1.0)
    }
}

impl fmt::Display for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { cause, level, measured, threshold, stop_at, newest_percent } = self;
        let level = level.unwrap_or_default();
        match cause {
            StallCause::CompactionsDue => write!(f, "{cause}: level {level} needs a compaction"),
            StallCause::LevelRuns => {
                write!(f, "{cause}: {measured} in level {level}")?;
                if let Some(percent) = newest_percent {
                    write!(f, ", the newest fills {percent} % of it")?;
                }
                write!(f, " (delay at {threshold}, stop at {stop_at})")
            }
            StallCause::ValueSpace => {
                write!(f, "{cause}: {measured} % of the live values ")?;
                write!(f, "(delay at {threshold} %, stop at {stop_at} %)")
            }
            StallCause::MemoryBudget => {
                write!(f, "{cause}: memtables take {measured} % of their share")
            }
            _ => write!(f, "{cause}: {measured} (delay at {threshold}, stop at {stop_at})"),
        }
    }
}

/// Returns the pressure of the runs that count towards a design's limit. If the limit applies to
/// each level, this is the highest pressure of any level.
pub(crate) fn run_pressure(shape: &TreeShape, design: &Design) -> Pressure {
    let limits = &design.constraint;
    match limits.limit {
        Limit::Level0 => Pressure::new(
            StallCause::Level0Runs,
            Some(0),
            count(runs_that_merge(shape, design)),
            limits.delay_runs,
            limits.stop_runs,
        ),
        Limit::Local(bound) => {
            let deeper = (1..shape.levels.len()).map(|level| local(shape, design, level, bound));
            deeper.fold(local(shape, design, 0, bound), |worst, other| {
                if other.excess() > worst.excess() { other } else { worst }
            })
        }
        Limit::Global(bound) => {
            let last = shape.last_level();
            let expected = (0..=last).map(|level| settled_runs(design, level, last)).sum::<u32>();
            let expected = expected.max(GLOBAL_EXPECTED_MIN);
            let deeper = shape.run_count() - shape.level(0).runs.len();
            let runs = match design.flush {
                FlushMode::New => count(shape.run_count()),
                FlushMode::Merge => count(deeper + runs_that_merge(shape, design)),
            };
            bounded(StallCause::TotalRuns, None, runs, expected, bound.runs(expected))
        }
    }
}

/// Counts the runs of level 0, except runs that a size-tiered policy will not merge again, because
/// their number only grows. If flushes merge, a run counts as the number of memtables whose data it
/// holds.
fn runs_that_merge(shape: &TreeShape, design: &Design) -> usize {
    let runs = &shape.level(0).runs;
    if let Some(policy) = design.strategy.size_tiered() {
        return runs.iter().filter(|run| policy.merges_again(run.size_bytes())).count();
    }
    match design.flush {
        FlushMode::New => runs.len(),
        FlushMode::Merge => {
            let buffers = shape.level(0).size_bytes() / design.buffer_bytes.max(1);
            runs.len().max(usize::try_from(buffers).unwrap_or(usize::MAX))
        }
    }
}

/// Returns the maximum number of runs that a level has while merging keeps up: the number at which
/// the level acts, or one for a single-run level.
pub(crate) fn expected_runs(design: &Design, level: usize, last_level: usize) -> u32 {
    let allowed = design.strategy.runs_allowed(level, last_level);
    if level == 0 || allowed > 1 { allowed.saturating_add(1) } else { 1 }
}

/// Like [`expected_runs`], but zero for level 0 if every flush merges into level 1 at once: the
/// paper counts L components for leveling, and a flushed one beyond them (performance-stability
/// §5.1.1).
fn settled_runs(design: &Design, level: usize, last_level: usize) -> u32 {
    let passes_on = level == 0 && design.strategy.runs_allowed(0, last_level) == 0;
    if passes_on { 0 } else { expected_runs(design, level, last_level) }
}

/// Levels below level 0 may reach their bound, because writers add runs to level 0 only, and merges
/// that would exceed a bound wait.
fn local(shape: &TreeShape, design: &Design, level: usize, bound: Bound) -> Pressure {
    let last = shape.last_level();
    let expected = expected_runs(design, level, last);
    let stop_at = bound.runs(expected).saturating_add(u32::from(level > 0));
    let runs = &shape.level(level).runs;
    let measured = match design.flush {
        FlushMode::Merge if level == 0 => runs_that_merge(shape, design),
        _ => runs.len(),
    };
    let mut pressure =
        bounded(StallCause::LevelRuns, Some(level), count(measured), expected, stop_at);
    if let Some(newest) = runs.first().filter(|_| level > 0 && expected == 1) {
        let capacity = design.with_scaled_capacities(shape).capacity_bytes(level, last).max(1);
        let percent = u128::from(newest.size_bytes()) * 100 / u128::from(capacity);
        pressure.newest_percent = Some(percent.min(100) as u8);
        pressure.threshold = pressure.threshold.min(stop_at - 1);
    }
    pressure
}

/// Writers are delayed from halfway between the expected number of runs and the limit.
fn bounded(
    cause: StallCause,
    level: Option<usize>,
    measured: u32,
    expected: u32,
    stop_at: u32,
) -> Pressure {
    let threshold = (expected.saturating_add(stop_at) / 2).saturating_add(1).min(stop_at);
    Pressure::new(cause, level, measured, threshold, stop_at)
}

pub(crate) fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
