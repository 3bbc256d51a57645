//! `concurrent(3,10,1.2)`: AsterixDB's `ConcurrentMergePolicy`. It merges the newest runs that no
//! merge has claimed, back to the oldest one of similar size, so that small merges run concurrently
//! with large ones.
//!
//! Among the newest free runs, the policy looks for the oldest one that the ratio allows compared
//! with the runs newer than it. A merge takes at most a given number of runs, and waits until a
//! minimum number is available. (Parameters `min-` and `max-merge-component-count` and
//! `size-ratio`; its `max-component-count` is a limit on runs here, such as `global(30)`.)
//!
//! With a size, as in `concurrent(3,10,1.2,1TiB)`, it is AsterixDB's default policy,
//! `SizeBoundedConcurrentMergePolicy`: the runs of a merge together hold fewer bytes than that, so
//! larger runs are left alone. (`max-component-size`. AsterixDB's policy merges one run more than
//! `max-merge-component-count`.)

use std::ops::Range;

use super::rule::{TriggerInfo, TriggerRule, sized_info, wrong};
use crate::error::ParseError;
use crate::strategy::size_tiered::{
    SizeRatio, SizeTiered, SizedMerge, SizedRun, arguments, bytes_of,
};
use crate::units::{format_bytes, parse_bytes};

/// Merges some of the newest runs if they are of similar size; merges run concurrently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Concurrent {
    least: u32,
    most: u32,
    ratio: SizeRatio,
    /// All merges are smaller than this many bytes.
    bound: Option<u64>,
}

static INFO: TriggerInfo = sized_info(
    "concurrent",
    "concurrent(3,10)",
    &["concurrent(2,4)", "concurrent(3,10,0.5)", "concurrent(2,4,1.2,256KiB)"],
    &["run-count"],
);

impl Concurrent {
    /// AsterixDB's defaults: 3 to 10 runs.
    const DEFAULT: Self = Self { least: 3, most: 10, ratio: SizeRatio::DEFAULT, bound: None };
}

impl TriggerRule for Concurrent {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(given: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let bad = || {
            wrong(
                text,
                "2 to 1000 runs, as many or more, a ratio and bytes: 'concurrent(3,10,1.2)', 'concurrent(3,10,1.2,1TiB)'",
            )
        };
        let mut concurrent = Self::DEFAULT;
        let all = arguments(given);
        if all.len() > 4 {
            return Err(bad());
        }
        if let Some(least) = all.first() {
            concurrent.least = least.parse().map_err(|_| bad())?;
            concurrent.most = concurrent.most.max(concurrent.least);
        }
        if let Some(most) = all.get(1) {
            concurrent.most = most.parse().map_err(|_| bad())?;
        }
        if let Some(ratio) = all.get(2) {
            concurrent.ratio = SizeRatio::parse(ratio).ok_or_else(bad)?;
        }
        if let Some(bound) = all.get(3) {
            concurrent.bound = Some(parse_bytes(bound).map_err(|_| bad())?);
        }
        let Self { least, most, bound, .. } = concurrent;
        let is_fine =
            (2..=1000).contains(&least) && (least..=1000).contains(&most) && bound != Some(0);
        is_fine.then_some(concurrent).ok_or_else(bad)
    }

    fn argument(&self) -> Option<String> {
        let Self { least, most, ratio, bound } = self;
        let bound = bound.map(|bytes| format!(",{}", format_bytes(bytes))).unwrap_or_default();
        Some(format!("{least},{most},{ratio}{bound}"))
    }

    fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        Some(self)
    }
}

impl SizeTiered for Concurrent {
    fn merges_again(&self, bytes: u64) -> bool {
        self.fits(bytes)
    }

    fn choose(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        self.of_at_least(self.least as usize, runs)
    }

    /// Chooses any two runs that may be merged.
    fn relieve(&self, runs: &[SizedRun]) -> Option<Range<usize>> {
        self.of_at_least(2, runs).map(|merge| merge.runs)
    }
}

impl Concurrent {
    fn fits(&self, bytes: u64) -> bool {
        self.bound.is_none_or(|bound| bytes < bound)
    }

    fn of_at_least(&self, least: usize, runs: &[SizedRun]) -> Option<SizedMerge> {
        let free = runs.iter().take_while(|run| run.is_free).count();
        (least - 1..free).rev().find_map(|oldest| {
            let most = (oldest + 1).saturating_sub(self.most as usize);
            let fits = |newest: &usize| self.fits(bytes_of(&runs[*newest..=oldest]));
            let newest = (most..=oldest + 1 - least).find(fits)?;
            let (own, younger) = (runs[oldest].bytes, bytes_of(&runs[newest..oldest]));
            let cause = self.ratio.cause(own, younger);
            let merge = SizedMerge { runs: newest..oldest + 1, cause };
            self.ratio.allows(own, younger).then_some(merge)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::size_tiered::test::{merge, policy, sized};

    fn chosen(text: &str, newest_first: &[i64]) -> Option<Range<usize>> {
        merge::<Concurrent>(text, newest_first).map(|merge| merge.runs)
    }

    #[test]
    fn runs_are_merged_back_to_the_oldest_of_similar_size() {
        assert_eq!(chosen("3,10", &[1, 1]), None);
        assert_eq!(chosen("3,10", &[1, 1, 1]), Some(0..3));
        assert_eq!(chosen("3,10", &[1, 1, 1, 9]), Some(0..3));
        assert_eq!(chosen("3,10", &[1, 1, 1, 3, 9]), Some(0..4));
        assert_eq!(chosen("3,10,2", &[1, 1, 1, 3, 9]), Some(0..5));
        assert_eq!(chosen("3,10", &[1, 1, 9]), None);
    }

    #[test]
    fn no_more_than_the_most_are_merged_and_the_oldest_go_first() {
        assert_eq!(chosen("3,4", &[1; 9]), Some(5..9));
        assert_eq!(chosen("2,2", &[1, 1, 1, 5]), Some(1..3));
    }

    #[test]
    fn merges_run_concurrently() {
        assert_eq!(chosen("3,10", &[1, 1, 1, -9, -9, -9]), Some(0..3));
        // Runs older than a running merge wait for it.
        assert_eq!(chosen("3,10", &[1, 1, -9, 4, 4, 4, 4]), None);
    }

    /// The cases are those of AsterixDB's own unit tests for its size-bounded policy.
    #[test]
    fn no_merge_reaches_the_bound() {
        const BOUND: &str = "3,5,1,30B";
        assert_eq!(chosen(BOUND, &[1, 2, 3, 6]), Some(0..4));
        assert_eq!(chosen(BOUND, &[1, 2]), None);
        assert_eq!(chosen(BOUND, &[1, 2, 3, 7]), Some(0..3));
        assert_eq!(chosen(BOUND, &[1, 2, 17, 20]), None);
        assert_eq!(chosen(BOUND, &[3, 9, 11, 20]), Some(0..3));
        assert_eq!(chosen(BOUND, &[15, 16, 15, 16]), None);
        assert_eq!(chosen(BOUND, &[1, 2, 3, 4, -5, 6, 7, 100]), Some(0..4));
        let rests = [1, 2, 3, 4, 29, 1, 2, 3, 4, 29, 1, 2, 3, 4, 29, 1, 2, 3, 4, 29];
        assert_eq!(chosen(BOUND, &rests), Some(15..19));
        // The bound is exclusive, and larger runs are not merged again.
        assert_eq!(chosen("3,5,1,30B", &[10, 10, 10]), None);
        assert_eq!(chosen("3,5,1,31B", &[10, 10, 10]), Some(0..3));
        let policy: Concurrent = policy(BOUND);
        assert!(policy.merges_again(29) && !policy.merges_again(30));
    }

    #[test]
    fn two_runs_relieve_writers_if_their_size_allows_it() {
        let relieved =
            |text: &str, sizes: &[i64]| policy::<Concurrent>(text).relieve(&sized(sizes));
        assert_eq!(relieved("3,5,1,30B", &[9, 20, 14, 14]), Some(2..4));
        assert_eq!(relieved("3,5,1,30B", &[16, 16, 16]), None);
        assert_eq!(relieved("3,5,1", &[1, 3, 9]), None);
    }
}
