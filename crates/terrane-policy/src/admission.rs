//! When writers may go on: the component constraint of a tree (performance-stability §4.1).
//!
//! A tree that takes writes faster than it merges them grows without bound, and reads with it. So
//! the number of runs and the number of full write buffers are limited: [`Limit`] says which runs
//! count, [`Violation`] what happens to writers when there are too many.

mod limit;

use std::fmt;
use std::str::FromStr;

use crate::design::Design;
use crate::error::ParseError;
use crate::flush::FlushMode;
use crate::pick::{PickInput, due_by_shape};
use crate::shape::TreeShape;
pub use limit::{Bound, Limit, Violation};

/// A number of runs that is never reached: level 0 may grow perpetually, as that of a system that
/// puts writes before compactions (compaction paper §3.1.2).
pub const NEVER: u32 = u32::MAX;

/// The slowest that a delayed writer is made, right before it would be stopped, in nanoseconds
/// per byte: 4 MiB a second.
const SLOWEST_NANOS_PER_BYTE: f64 = 240.0;

/// Runs beyond the limit at which writers wait wherever they are: more than buffers make that were
/// full when the limit was reached.
const ON_THEIR_WAY_MAX: u32 = 4;

/// What else writers wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stall {
    /// Only runs and buffers, as production systems do.
    Runs,
    /// Every compaction that the shape of the tree asks for: the compaction paper puts compactions
    /// before writes, so that no measurement sees a tree out of shape (§4.1).
    Full,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Runs => "runs",
            Self::Full => "full",
        })
    }
}

impl FromStr for Stall {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "runs" => Ok(Self::Runs),
            "full" => Ok(Self::Full),
            _ => Err(ParseError::new("stall", text, "runs or full")),
        }
    }
}

/// The limits of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Constraint {
    /// Which runs are counted.
    pub limit: Limit,
    /// What happens to writers when there are too many.
    pub violation: Violation,
    /// Runs in level 0 from which on writers are delayed, more with each further run; with
    /// [`Limit::Level0`].
    pub delay_runs: u32,
    /// Runs in level 0 at which writers wait; with [`Limit::Level0`].
    pub stop_runs: u32,
    /// Full write buffers, waiting to be flushed, at which writers wait.
    pub stop_buffers: u32,
    /// What else writers wait for.
    pub stall: Stall,
    /// The most operations that writers may write in a second, whatever the tree could take
    /// (performance-stability §5.2.3, "Limit").
    pub max_rate: Option<u32>,
}

/// What holds writers up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StallCause {
    /// Merging falls behind: level 0 holds too many runs.
    Level0Runs,
    /// Merging falls behind: some level holds too many runs.
    LevelRuns,
    /// Merging falls behind: all levels together hold too many runs.
    TotalRuns,
    /// Flushing falls behind: too many full write buffers.
    ImmutableMemtables,
    /// The tree is out of shape, and its design has writers wait for that.
    CompactionsDue,
}

impl StallCause {
    /// All causes.
    pub const ALL: [StallCause; 5] = [
        Self::Level0Runs,
        Self::LevelRuns,
        Self::TotalRuns,
        Self::ImmutableMemtables,
        Self::CompactionsDue,
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
        })
    }
}

/// A cause with the number that was found and the limit that it met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// What is behind.
    pub cause: StallCause,
    /// The level where it was found, unless it is about all of them.
    pub level: Option<usize>,
    /// Runs or buffers found; 0 for [`StallCause::CompactionsDue`].
    pub measured: u32,
    /// Runs or buffers at which this answer starts.
    pub threshold: u32,
    /// Runs or buffers at which writers stop.
    pub stop_at: u32,
    /// In a level that holds one run when no merge is behind, how far its newest run fills it: from
    /// one run to the next there is no other step. bLSM slows writers down by how far a level is
    /// full again while what was in it is still on its way.
    pub newest_percent: Option<u8>,
}

impl Pressure {
    /// What ends it, in words: `level 0 holds fewer than 12 runs`.
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
            StallCause::CompactionsDue => format!("level {level} is in shape"),
        }
    }

    /// How near the tree is to its stop; 1 and more are at or beyond it.
    fn excess(&self) -> f64 {
        (f64::from(self.measured) + self.newest_part()) / f64::from(self.stop_at.max(1))
    }

    fn newest_part(&self) -> f64 {
        f64::from(self.newest_percent.unwrap_or(0)) / 100.0
    }

    /// Whether writers that are to stop do so at once, also if there is room in memory: where the
    /// tree has to be in shape at every write, and where flushes that were asked for have made more
    /// runs than were on their way. Else they go on until their memtable is full: to have them wait
    /// earlier would only add to how long they wait (performance-stability, Theorem 1).
    pub fn stops_at_once(&self) -> bool {
        match self.cause {
            StallCause::CompactionsDue => true,
            StallCause::ImmutableMemtables => false,
            StallCause::Level0Runs | StallCause::LevelRuns | StallCause::TotalRuns => {
                self.measured >= self.stop_at.saturating_add(ON_THEIR_WAY_MAX)
            }
        }
    }

    /// By how much a writer is slowed down, in nanoseconds for each byte that it writes.
    pub fn delay_nanos_per_byte(&self) -> f64 {
        let strength = self.strength();
        strength * strength * SLOWEST_NANOS_PER_BYTE
    }

    /// How far the tree is from its first delay (0) to its stop (1).
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
            StallCause::CompactionsDue => write!(f, "{cause}: level {level} is out of shape"),
            StallCause::LevelRuns => {
                write!(f, "{cause}: {measured} in level {level}")?;
                if let Some(percent) = newest_percent {
                    write!(f, ", the newest fills {percent} % of it")?;
                }
                write!(f, " (delay at {threshold}, stop at {stop_at})")
            }
            _ => write!(f, "{cause}: {measured} (delay at {threshold}, stop at {stop_at})"),
        }
    }
}

/// What a writer may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Go on.
    Proceed,
    /// Go on slowly.
    Delay(Pressure),
    /// Wait until the pressure is gone.
    Stop(Pressure),
}

/// What writers of a tree may do, by its shape, its number of full write buffers and its design.
pub fn admit(shape: &TreeShape, full_buffers: usize, design: &Design) -> Admission {
    let limits = &design.constraint;
    let buffers = count(full_buffers);
    if buffers >= limits.stop_buffers {
        return Admission::Stop(Pressure {
            cause: StallCause::ImmutableMemtables,
            level: None,
            measured: buffers,
            threshold: limits.stop_buffers,
            stop_at: limits.stop_buffers,
            newest_percent: None,
        });
    }
    let answer = match (limits.violation, admit_by_runs(shape, design)) {
        (Violation::None, _) | (Violation::Stop, Admission::Delay(_)) => Admission::Proceed,
        (_, answer) => answer,
    };
    if limits.stall == Stall::Full && !matches!(answer, Admission::Stop(_)) {
        let due = due_by_shape(&PickInput::new(shape, design));
        if let Some(level) = due {
            return Admission::Stop(Pressure {
                cause: StallCause::CompactionsDue,
                level: Some(level),
                measured: 0,
                threshold: 0,
                stop_at: 0,
                newest_percent: None,
            });
        }
    }
    answer
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn admit_by_runs(shape: &TreeShape, design: &Design) -> Admission {
    let pressure = run_pressure(shape, design);
    if pressure.measured >= pressure.stop_at {
        Admission::Stop(pressure)
    } else if pressure.measured >= pressure.threshold {
        Admission::Delay(pressure)
    } else {
        Admission::Proceed
    }
}

/// The runs that the limit of a design counts: of several levels those of the fullest.
pub(crate) fn run_pressure(shape: &TreeShape, design: &Design) -> Pressure {
    let limits = &design.constraint;
    match limits.limit {
        Limit::Level0 => Pressure {
            cause: StallCause::Level0Runs,
            level: Some(0),
            measured: count(runs_that_merge(shape, design)),
            threshold: limits.delay_runs,
            stop_at: limits.stop_runs,
            newest_percent: None,
        },
        Limit::Local(bound) => {
            let deeper = (1..shape.levels.len()).map(|level| local(shape, design, level, bound));
            deeper.fold(local(shape, design, 0, bound), |worst, other| {
                if other.excess() > worst.excess() { other } else { worst }
            })
        }
        Limit::Global(bound) => {
            let last = shape.last_level();
            let expected = (0..=last).map(|level| expected_runs(design, level, last)).sum();
            let deeper = shape.run_count() - shape.level(0).runs.len();
            let runs = match design.flush {
                FlushMode::New => count(shape.run_count()),
                FlushMode::Merge => count(deeper + runs_that_merge(shape, design)),
            };
            bounded(StallCause::TotalRuns, None, runs, expected, bound.runs(expected))
        }
    }
}

/// Those of level 0, but for what a size-tiered policy lets rest: of that there is ever more. Where
/// flushes are merged a run counts for as many as it holds buffers.
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

/// The most runs that a level has when no merge is behind: those at which it acts, or the one that
/// it is.
fn expected_runs(design: &Design, level: usize, last_level: usize) -> u32 {
    let allowed = design.strategy.runs_allowed(level, last_level);
    if level == 0 || allowed > 1 { allowed.saturating_add(1) } else { 1 }
}

/// A level other than the first may be at its bound: what writers add goes to the first.
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
        let capacity = design.fitted(shape).capacity_bytes(level, last).max(1);
        let percent = u128::from(newest.size_bytes()) * 100 / u128::from(capacity);
        pressure.newest_percent = Some(percent.min(100) as u8);
        pressure.threshold = pressure.threshold.min(stop_at - 1);
    }
    pressure
}

/// Writers are delayed from half-way between what is expected and what is too much.
fn bounded(
    cause: StallCause,
    level: Option<usize>,
    measured: u32,
    expected: u32,
    stop_at: u32,
) -> Pressure {
    let threshold = (expected.saturating_add(stop_at) / 2).saturating_add(1).min(stop_at);
    Pressure { cause, level, measured, threshold, stop_at, newest_percent: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn design() -> Design {
        "tiering L0=2 T=2; delay=3; stop=5; buffers=2".parse().unwrap()
    }

    fn with_runs(runs: u64) -> TreeShape {
        (1..=runs)
            .map(|run| format!("L0 r{run}: {run}=a..=z:1\n"))
            .collect::<String>()
            .parse()
            .unwrap()
    }

    #[test]
    fn writers_slow_down_before_they_stop() {
        assert_eq!(admit(&with_runs(2), 1, &design()), Admission::Proceed);
        let strength = |runs| match admit(&with_runs(runs), 0, &design()) {
            Admission::Delay(pressure) => pressure.strength(),
            other => panic!("{other:?}"),
        };
        assert!(0.0 < strength(3) && strength(3) < strength(4) && strength(4) < 1.0);
        assert!(matches!(admit(&with_runs(5), 0, &design()), Admission::Stop(_)));
    }

    #[test]
    fn writers_wait_for_every_compaction_where_they_are_told_to() {
        let mut design: Design = "tiering T=3; stall=full".parse().unwrap();
        assert_eq!(admit(&with_runs(2), 0, &design), Admission::Proceed);
        let Admission::Stop(pressure) = admit(&with_runs(3), 0, &design) else { panic!() };
        assert_eq!(pressure.to_string(), "compactions-due: level 0 is out of shape");
        design.constraint.stall = Stall::Runs;
        assert_eq!(admit(&with_runs(3), 0, &design), Admission::Proceed);
    }

    fn verdict(runs: u64, settings: &str) -> &'static str {
        let design = format!("tiering L0=3 T=3; {settings}").parse().unwrap();
        match admit(&with_runs(runs), 0, &design) {
            Admission::Proceed => "proceed",
            Admission::Delay(_) => "delay",
            Admission::Stop(_) => "stop",
        }
    }

    #[test]
    fn the_interaction_says_what_becomes_of_too_many_runs() {
        let at =
            |runs, violation| verdict(runs, &format!("delay=4; stop=6; violation={violation}"));
        assert_eq!([3, 5, 6].map(|runs| at(runs, "slow-down")), ["proceed", "delay", "stop"]);
        assert_eq!([3, 5, 6].map(|runs| at(runs, "stop")), ["proceed", "proceed", "stop"]);
        assert_eq!(at(600, "none"), "proceed");
    }

    #[test]
    fn bounds_are_multiples_of_what_a_design_has_or_numbers() {
        // Three runs gather in level 0: twice as many are too many.
        assert_eq!(
            [4, 5, 6].map(|runs| verdict(runs, "limit=local(2x)")),
            ["proceed", "delay", "stop"]
        );
        assert_eq!(
            [8, 9].map(|runs| verdict(runs, "limit=global(9); violation=stop")),
            ["proceed", "stop"]
        );
        // One level of one run, and the flush that comes in: two levels, four runs.
        let design: Design = "leveling L0=1; limit=global; violation=stop".parse().unwrap();
        let tree = |level0: u64| {
            let runs: String =
                (0..level0).map(|at| format!("L0 r{}: {0}=a..=z:1\n", 90 - at)).collect();
            format!("{runs}L1 r2: 2=a..=z:1\nL1 r1: 1=a..=z:1\n").parse::<TreeShape>().unwrap()
        };
        assert_eq!(admit(&tree(1), 0, &design), Admission::Proceed);
        let Admission::Stop(pressure) = admit(&tree(2), 0, &design) else { panic!() };
        assert_eq!(pressure.to_string(), "total-runs: 4 (delay at 4, stop at 4)");
        let local: Design = "leveling L0=1; limit=local".parse().unwrap();
        // Two runs in level 1 are at the bound of each level, and one in level 0 leaves room.
        assert!(!matches!(admit(&tree(1), 0, &local), Admission::Stop(_)));
        let Admission::Stop(pressure) = admit(&tree(2), 0, &local) else { panic!() };
        assert_eq!((pressure.cause, pressure.level), (StallCause::LevelRuns, Some(0)));
    }

    #[test]
    fn writers_slow_down_as_a_level_of_one_run_fills_again() {
        // What is in level 1 is on its way to level 2, and the next run has come so far.
        let design: Design =
            "leveling L0=1 T=10; granularity=level; base=100B; limit=local(2x)".parse().unwrap();
        let with = |newest: u64| {
            let tree = format!("L1 r3: 3=a..=z:{newest}B\nL1 r2: 2=a..=z:100B\n");
            admit(&tree.parse().unwrap(), 0, &design)
        };
        let strength = |newest| match with(newest) {
            Admission::Delay(pressure) => pressure.strength(),
            other => panic!("{other:?}"),
        };
        assert_eq!([10, 50, 100, 250].map(strength), [0.1, 0.5, 1.0, 1.0]);
        let Admission::Delay(pressure) = with(50) else { panic!() };
        assert_eq!(
            pressure.to_string(),
            "level-runs: 2 in level 1, the newest fills 50 % of it (delay at 2, stop at 3)"
        );
        let one: TreeShape = "L1 r2: 2=a..=z:100B".parse().unwrap();
        assert_eq!(admit(&one, 0, &design), Admission::Proceed);
    }

    #[test]
    fn full_buffers_stop_writers_whatever_the_shape() {
        let answer = admit(&TreeShape::default(), 2, &design());
        let Admission::Stop(pressure) = answer else { panic!("{answer:?}") };
        assert_eq!(pressure.to_string(), "immutable-memtables: 2 (delay at 2, stop at 2)");
    }
}
