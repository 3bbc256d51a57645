//! Size-tiered policies: one list of runs, of which neighbours of like size become one.
//!
//! There are no levels to be full: all runs of the tree, in order of age, are the list, and what is
//! merged takes the place of the oldest of its inputs. Flushes land in level 0, so that a tree that
//! had such a policy from the beginning is level 0 alone; a tree that comes from another design is
//! taken as it is.
//!
//! | text | merges | source |
//! |---|---|---|
//! | `prefix(1GiB,5,1.2)` | neighbours that reach 1 GiB together, or 5 of the newest | [`Prefix`] |
//! | `concurrent(3,10,1.2)` | 3 to 10 of the newest, as far back as sizes are alike | [`Concurrent`] |
//!
//! A policy is asked with [`SizedRun`]s and answers which of them to merge: it knows no trees.

mod concurrent;
mod prefix;
mod sized_run;

use std::fmt;
use std::ops::Range;

pub use concurrent::Concurrent;
pub use prefix::Prefix;
pub use sized_run::{SizeRatio, SizedRun};

/// A policy of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SizeTiered {
    /// One merge at a time, of runs up to a size.
    Prefix(Prefix),
    /// Merges at the same time, of so many runs.
    Concurrent(Concurrent),
}

impl SizeTiered {
    /// Which of the runs, the newest first, to merge.
    pub fn choose(&self, runs: &[SizedRun]) -> Option<Range<usize>> {
        match self {
            Self::Prefix(prefix) => prefix.choose(runs),
            Self::Concurrent(concurrent) => concurrent.choose(runs),
        }
    }

    /// Whether a run of this size will be merged again.
    pub fn merges_again(&self, bytes: u64) -> bool {
        match self {
            Self::Prefix(prefix) => prefix.merges_again(bytes),
            Self::Concurrent(_) => true,
        }
    }
}

impl fmt::Display for SizeTiered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => prefix.fmt(f),
            Self::Concurrent(concurrent) => concurrent.fmt(f),
        }
    }
}
