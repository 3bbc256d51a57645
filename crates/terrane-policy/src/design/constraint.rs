//! The component constraint of a tree as a value: which runs count, how many are too many, and how
//! writers are then slowed or stopped (performance-stability §4.1, §5.1.1, §5.1.2).

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::call;

/// A number of runs that is never reached: level 0 may grow without bound, as in systems that
/// prefer writes to compactions (compaction paper §3.1.2).
pub const NEVER: u32 = u32::MAX;

/// The limits of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Constraint {
    /// Which runs are counted.
    pub limit: Limit,
    /// What happens to writers when there are too many runs.
    pub violation: Violation,
    /// Runs in level 0 at which delays of writers begin; each further run increases them. Applies
    /// to [`Limit::Level0`].
    pub delay_runs: u32,
    /// Runs in level 0 at which writers stop. Applies to [`Limit::Level0`].
    pub stop_runs: u32,
    /// Immutable memtables at which writers stop.
    pub stop_buffers: u32,
    /// Whether writers also wait for due compactions.
    pub stall: Stall,
    /// The maximum number of operations per second that writers may perform, even if the tree could
    /// take more (performance-stability §5.2.3, "Limit").
    pub max_rate: Option<u32>,
}

/// What writers wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stall {
    /// Writers wait only for the numbers of runs and memtables to fall, as in production systems.
    Runs,
    /// Writers also wait for every compaction that the tree's shape makes due. The compaction paper
    /// gives compactions precedence over writes, so that no measurement includes overdue
    /// compactions (§4.1).
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

/// Which runs are counted, and against which bound: the component constraint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// The runs of level 0, against `delay_runs` and `stop_runs`, as in LevelDB and RocksDB.
    Level0,
    /// The runs of each level separately, as in bLSM. Merges into a level at its limit wait.
    Local(Bound),
    /// The runs of all levels together.
    Global(Bound),
}

/// How many runs are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Bound {
    /// A multiple of the maximum number of runs that the design has while merging keeps up. The
    /// paper's bound is 2: 2L runs for leveling, 2TL for tiering.
    Times(u32),
    /// A fixed number.
    Runs(u32),
}

impl Bound {
    /// Returns the bound in runs for a design that has at most `expected` runs while merging keeps
    /// up.
    pub fn runs(self, expected: u32) -> u32 {
        match self {
            Self::Times(factor) => expected.saturating_mul(factor),
            Self::Runs(runs) => runs,
        }
    }
}

/// What happens to writers when there are too many runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Violation {
    /// Delays grow as the tree approaches the limit, and writers stop at it.
    SlowDown,
    /// Writers proceed at full speed until they are stopped (Theorem 1).
    Stop,
    /// Writers that would be stopped before a job makes room write at the rate at which the room lasts until
    /// then ([`spread`](crate::admission::spread)). They stop if it does not.
    Spread,
    /// Nothing: the number of runs is unbounded.
    None,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Level0 => f.write_str("level0"),
            Self::Local(bound) => write!(f, "local({bound})"),
            Self::Global(bound) => write!(f, "global({bound})"),
        }
    }
}

impl FromStr for Limit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bound = |text: Option<&str>| text.map_or(Ok(Bound::Times(2)), str::parse);
        match call(text)? {
            ("level0", None) => Ok(Self::Level0),
            ("local", argument) => bound(argument).map(Self::Local),
            ("global", argument) => bound(argument).map(Self::Global),
            _ => Err(ParseError::new("limit", text, "level0, local(2x), global(2x) or global(50)")),
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(factor) => write!(f, "{factor}x"),
            Self::Runs(runs) => write!(f, "{runs}"),
        }
    }
}

impl FromStr for Bound {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new("bound", text, "2x and more, or 2 runs and more");
        let number = |digits: &str, least: u32| {
            digits.parse().ok().filter(|number| *number >= least).ok_or_else(bad)
        };
        match text.strip_suffix('x') {
            Some(factor) => number(factor, 2).map(Self::Times),
            None => number(text, 2).map(Self::Runs),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::SlowDown => "slow-down",
            Self::Stop => "stop",
            Self::Spread => "spread",
            Self::None => "none",
        })
    }
}

impl FromStr for Violation {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "slow-down" => Ok(Self::SlowDown),
            "stop" => Ok(Self::Stop),
            "spread" => Ok(Self::Spread),
            "none" => Ok(Self::None),
            _ => Err(ParseError::new("violation", text, "spread, stop, slow-down or none")),
        }
    }
}
