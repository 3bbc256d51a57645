//! Size-tiered policies: all runs form one list, and adjacent runs of similar size are merged.
//!
//! No level is ever full. The list holds all runs of the tree in order of age, and the result of a
//! merge takes the place of its oldest input. Because flushes land in level 0, a tree that always
//! had such a policy consists only of level 0; the runs of a tree that had another design before
//! form the list unchanged.
//!
//! | text | merges | source |
//! |---|---|---|
//! | `prefix(1GiB,5,1.2)` | adjacent runs that reach 1 GiB together, or 5 of the newest | [`Prefix`](super::trigger::Prefix) |
//! | `concurrent(3,10,1.2)` | 3 to 10 of the newest runs, as far back as sizes are similar | [`Concurrent`](super::trigger::Concurrent) |
//! | `universal(runs=4,space=200,ratio=1,min=2)` | for space amplification, for similar size, and for the number of runs | [`Universal`](super::trigger::Universal) |
//! | `buckets(min=4,max=32)` | runs of like size, once there are four | [`Buckets`](super::trigger::Buckets) |
//! | `exploring(min=3,max=10)` | the adjacent runs that cost the fewest bytes to merge away | [`Exploring`](super::trigger::Exploring) |
//! | `small-set(ratio=3,max=10)` | small runs that hold three times the bytes of the largest of them | [`SmallSet`](super::trigger::SmallSet) |
//! | `generations(min=7,max=15)` | runs that took equally many merges to build | [`Generations`](super::trigger::Generations) |
//!
//! A policy sees [`SizedRun`]s and chooses which of them to merge; it knows nothing of trees.

use std::fmt;
use std::ops::Range;

use crate::units::short_bytes;

/// A run as a policy sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizedRun {
    /// Its bytes.
    pub bytes: u64,
    /// Its bytes, plus the weight of its tombstones ([`Strategy::tombstone_weight`]).
    ///
    /// [`Strategy::tombstone_weight`]: super::Strategy::tombstone_weight
    pub weighed_bytes: u64,
    /// True if no running merge has claimed the run.
    pub is_free: bool,
}

impl SizedRun {
    /// Returns a run that no merge has claimed, whose tombstones have no weight.
    pub fn free(bytes: u64) -> Self {
        Self { bytes, weighed_bytes: bytes, is_free: true }
    }
}

/// The runs that a policy chose to merge, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SizedMerge {
    /// At least two adjacent runs, none of them claimed by a running merge.
    pub runs: Range<usize>,
    /// The reason.
    pub cause: MergeCause,
}

/// Why a size-tiered policy merges runs: the measured value, and the limit that it reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MergeCause {
    /// There are more runs than the policy allows, or enough for a merge.
    Count {
        /// The number of runs.
        runs: u64,
        /// The limit.
        limit: u64,
    },
    /// The runs newer than the oldest hold this percentage of its bytes.
    SpaceAmplification {
        /// The percentage.
        percent: u64,
        /// The limit.
        limit: u64,
    },
    /// The oldest run of the merge is small enough compared with the total of its younger runs.
    SizeRatio {
        /// Its bytes as a percentage of theirs.
        percent: u64,
        /// The maximum percentage for a merge.
        limit: u64,
    },
    /// There are enough adjacent runs of similar size to merge.
    Similar {
        /// The number of runs.
        runs: u64,
        /// The number required for a merge.
        limit: u64,
    },
    /// There are enough runs of similar size to merge, but other runs lie between them.
    Spread {
        /// The number of runs of similar size.
        runs: u64,
        /// The number required for a merge.
        limit: u64,
    },
    /// No run is too large compared with all others of the merge together.
    LargestRatio {
        /// The bytes of the largest as a percentage of the others' bytes.
        percent: u64,
        /// The maximum percentage for a merge.
        limit: u64,
    },
    /// The runs hold several times the bytes of the largest of them.
    SumRatio {
        /// Their bytes as a percentage of the largest run's bytes.
        percent: u64,
        /// The percentage that they must exceed.
        limit: u64,
    },
    /// The runs together are so small that their ratio does not matter.
    Small {
        /// Their bytes.
        bytes: u64,
        /// The bytes from which the ratio matters.
        limit: u64,
    },
    /// The runs reach a total size.
    TotalSize {
        /// Their bytes.
        bytes: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Writers would otherwise be delayed or stopped, because the policy would not merge anything.
    Stall {
        /// The number of runs that count.
        runs: u64,
        /// The number at which writers would wait.
        limit: u64,
    },
}

impl fmt::Display for MergeCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Count { runs, limit } => write!(f, "there are {runs} runs, limit {limit}"),
            Self::SpaceAmplification { percent, limit } => {
                write!(f, "newer runs hold {percent} % of the bytes of the oldest, limit {limit} %")
            }
            Self::SizeRatio { percent, limit } => write!(
                f,
                "the oldest of them holds {percent} % of the bytes of the others, limit {limit} %"
            ),
            Self::Similar { runs, limit } => {
                write!(f, "{runs} adjacent runs are of similar size, limit {limit}")
            }
            Self::Spread { runs, limit } => write!(
                f,
                "{runs} runs are of similar size, limit {limit}, and others lie between them"
            ),
            Self::LargestRatio { percent, limit } => write!(
                f,
                "the largest of them holds {percent} % of the bytes of the others, limit {limit} %"
            ),
            Self::SumRatio { percent, limit } => {
                write!(f, "they hold {percent} % of the bytes of the largest, more than {limit} %")
            }
            Self::Small { bytes, limit } => {
                write!(
                    f,
                    "runs hold {} together, less than {}",
                    short_bytes(bytes),
                    short_bytes(limit)
                )
            }
            Self::TotalSize { bytes, limit } => {
                write!(f, "runs hold {} together, limit {}", short_bytes(bytes), short_bytes(limit))
            }
            Self::Stall { runs, limit } => {
                write!(f, "writers would wait at {limit} runs, and there are {runs}")
            }
        }
    }
}

/// A size-tiered policy.
pub trait SizeTiered {
    /// Chooses the runs to merge from a list, newest run first.
    fn choose(&self, runs: &[SizedRun]) -> Option<SizedMerge>;

    /// Chooses the runs to merge when writers would otherwise wait and [`SizeTiered::choose`] finds
    /// none. If this finds none either, all runs that the policy would merge again become one.
    fn relieve(&self, _runs: &[SizedRun]) -> Option<Range<usize>> {
        None
    }

    /// Returns true if a run of this size will be merged again.
    fn merges_again(&self, _bytes: u64) -> bool {
        true
    }
}

/// The maximum size of a merge's oldest run relative to all younger runs together: 1.2 keeps a
/// large run from being rewritten for little gain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeRatio {
    percent: u32,
}

impl SizeRatio {
    /// The usual ratio, 1.2.
    pub const DEFAULT: Self = Self { percent: 120 };

    pub(crate) const ONE: Self = Self { percent: 100 };

    pub(crate) const fn of_percent(percent: u32) -> Self {
        Self { percent }
    }

    pub(crate) fn percent(self) -> u64 {
        u64::from(self.percent)
    }

    /// Returns true if the ratio times `bytes` exceeds `other`.
    pub(crate) fn exceeds(self, other: u64, bytes: u64) -> bool {
        u128::from(other) * 100 < u128::from(bytes) * u128::from(self.percent)
    }

    /// Returns true if `sum` exceeds the ratio times `bytes`.
    pub(crate) fn exceeded_by(self, sum: u64, bytes: u64) -> bool {
        !self.allows(sum, bytes)
    }

    /// Returns true if a run of `oldest` bytes may be merged with younger runs of `younger` bytes
    /// in all.
    pub(crate) fn allows(self, oldest: u64, younger: u64) -> bool {
        u128::from(oldest) * 100 <= u128::from(younger) * u128::from(self.percent)
    }

    /// Returns the cause of a merge whose oldest run the ratio allows.
    pub(crate) fn cause(self, oldest: u64, younger: u64) -> MergeCause {
        MergeCause::SizeRatio { percent: percent_of(oldest, younger), limit: self.percent() }
    }

    /// Parses a ratio such as `1.2`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let ratio = text.parse::<f64>().ok().filter(|ratio| (0.01..=1000.0).contains(ratio))?;
        Some(Self { percent: (ratio * 100.0).round() as u32 })
    }
}

impl fmt::Display for SizeRatio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", f64::from(self.percent) / 100.0)
    }
}

pub(crate) fn bytes_of(runs: &[SizedRun]) -> u64 {
    runs.iter().fold(0, |sum, run| sum.saturating_add(run.bytes))
}

/// Splits a list into its longest stretches of equal values; stretches of `None` are omitted.
pub(crate) fn stretches<T: PartialEq>(values: &[Option<T>]) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    let parts = values.chunk_by(|a, b| a == b).map(move |part| {
        at += part.len();
        (part[0].is_some(), at - part.len()..at)
    });
    parts.filter_map(|(is_kept, part)| is_kept.then_some(part))
}

/// Merges at least `least` runs of one group, and the runs between them, up to `most` runs and
/// `large_bytes` in all. Of the possible ranges it takes the one with the fewest bytes of other
/// groups and then with the most runs of the group. Runs without a group are never merged.
///
/// The runs of a group are of similar size. A system that may merge any tables of a group leaves
/// out those between them. Here only adjacent runs can be merged, and where sizes alternate, no two
/// runs of a group might ever be adjacent.
pub(crate) fn spread<T: PartialEq>(
    runs: &[SizedRun],
    groups: &[Option<T>],
    (least, most): (u32, u32),
    large_bytes: u64,
) -> Option<SizedMerge> {
    let from_each = (0..runs.len()).flat_map(|from| {
        let (mut alike, mut others) = (0, 0u64);
        let free = groups[from..].iter().take(most as usize).take_while(|one| one.is_some());
        free.enumerate().filter_map(move |(at, group)| {
            if *group != groups[from] {
                others = others.saturating_add(runs[from + at].bytes);
                return None;
            }
            alike += 1;
            (alike >= least).then_some((from..from + at + 1, alike, others))
        })
    });
    let allowed = from_each.filter(|(span, ..)| bytes_of(&runs[span.clone()]) <= large_bytes);
    let (span, alike, _) =
        allowed.min_by_key(|(_, alike, others)| (*others, std::cmp::Reverse(*alike)))?;
    let cause = MergeCause::Spread { runs: u64::from(alike), limit: u64::from(least) };
    Some(SizedMerge { runs: span, cause })
}

/// Returns `part` as a percentage of `whole`, rounded down.
pub(crate) fn percent_of(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent).unwrap_or(u64::MAX)
}

/// Splits the arguments of a text and trims them; empty if there are no arguments, or only empty
/// parentheses.
pub(crate) fn arguments(given: Option<&str>) -> Vec<&str> {
    let given = given.filter(|text| !text.trim().is_empty());
    given.map_or(Vec::new(), |text| text.split(',').map(str::trim).collect())
}

/// Passes each `key=value` argument of a text to `set`; `None` if an argument has another form or
/// `set` rejects it.
pub(crate) fn for_each_setting(
    given: Option<&str>,
    mut set: impl FnMut(&str, &str) -> Option<()>,
) -> Option<()> {
    arguments(given).into_iter().try_for_each(|argument| {
        let (key, value) = argument.split_once('=')?;
        set(key.trim(), value.trim())
    })
}

/// Helpers for the tests of policies.
#[cfg(test)]
pub(crate) mod test {
    use super::{SizeTiered, SizedMerge, SizedRun};
    use crate::strategy::trigger::rule::TriggerRule;

    /// Returns runs of these sizes; a negative size marks a run that is being merged.
    pub(crate) fn sized(sizes: &[i64]) -> Vec<SizedRun> {
        let one =
            |&bytes: &i64| SizedRun { is_free: bytes > 0, ..SizedRun::free(bytes.unsigned_abs()) };
        sizes.iter().map(one).collect()
    }

    /// Returns the policy with these settings.
    pub(crate) fn policy<P: TriggerRule>(settings: &str) -> P {
        P::parse(Some(settings), settings).unwrap()
    }

    /// Returns the choice of a policy with these settings.
    pub(crate) fn merge<P: TriggerRule + SizeTiered>(
        settings: &str,
        newest_first: &[i64],
    ) -> Option<SizedMerge> {
        policy::<P>(settings).choose(&sized(newest_first))
    }

    /// Returns the sizes of the runs that a policy merges, newest run first.
    pub(crate) fn sizes<P: TriggerRule + SizeTiered>(
        settings: &str,
        newest_first: &[i64],
    ) -> Vec<u64> {
        let chosen = merge::<P>(settings, newest_first).map_or(0..0, |merge| merge.runs);
        sized(newest_first)[chosen].iter().map(|run| run.bytes).collect()
    }

    /// Returns the sizes of the runs that a policy merges; argument and result list the oldest run
    /// first.
    pub(crate) fn sizes_oldest_first<P: TriggerRule + SizeTiered>(
        settings: &str,
        oldest_first: &[i64],
    ) -> Vec<u64> {
        let newest_first: Vec<i64> = oldest_first.iter().rev().copied().collect();
        sizes::<P>(settings, &newest_first).into_iter().rev().collect()
    }
}
