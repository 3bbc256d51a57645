//! `exploring(min=3,max=10,ratio=1.2,small=128MiB,stuck=16)`: HBase's exploring compaction.
//!
//! The policy considers every sequence of `min` to `max` adjacent runs. A sequence is allowed if no run
//! is larger than `ratio` times all others of the sequence together, or if the sequence is smaller than
//! `small`. The policy takes the allowed sequence with the most runs, and of those the smallest. Runs
//! older than a running merge wait for it. `large=BYTES` bounds the size of a merge, and larger old
//! runs are left alone.
//!
//! At `stuck` runs, where writers would be blocked, the policy takes the sequence with the most runs
//! per byte or, if no sequence is allowed, the smallest.
//!
//! (`hbase.hstore.compaction.min`, `.max`, `.ratio`, `.min.size` and `.max.size`, and
//! `hbase.hstore.blockingStoreFiles`. Not here: another ratio off-peak, and major compactions.)

use std::ops::Range;

use super::rule::{TriggerInfo, TriggerRule, sized_info, wrong};
use crate::error::ParseError;
use crate::strategy::size_tiered::{
    MergeCause, SizeRatio, SizeTiered, SizedMerge, SizedRun, bytes_of, for_each_setting, percent_of,
};
use crate::units::{format_bytes, parse_bytes};

/// Merges the adjacent runs that cost the fewest bytes to merge away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Exploring {
    least: u32,
    most: u32,
    ratio: SizeRatio,
    small_bytes: u64,
    large_bytes: Option<u64>,
    stuck: u32,
}

static INFO: TriggerInfo = sized_info(
    "exploring",
    "exploring(min=3)",
    &["exploring(min=2,small=1KiB,stuck=9)", "exploring(min=3,max=4,small=1KiB,large=1MiB)"],
    &["run-count"],
);

impl TriggerRule for Exploring {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(given: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let mut policy = Self::DEFAULT;
        let set = |key: &str, value: &str| {
            match key {
                "min" => policy.least = value.parse().ok()?,
                "max" => policy.most = value.parse().ok()?,
                "ratio" => policy.ratio = SizeRatio::parse(value)?,
                "small" => policy.small_bytes = parse_bytes(value).ok()?,
                "large" => policy.large_bytes = Some(parse_bytes(value).ok()?),
                "stuck" => policy.stuck = value.parse().ok()?,
                _ => return None,
            }
            Some(())
        };
        let is_read = for_each_setting(given, set).is_some();
        let Self { least, most, stuck, .. } = policy;
        let is_fine = is_read
            && (2..=1000).contains(&least)
            && (least..=1000).contains(&most)
            && (least..=1_000_000).contains(&stuck)
            && policy.large_bytes != Some(0);
        is_fine.then_some(policy).ok_or_else(|| {
            wrong(text, "2 to 1000 runs, a ratio and bytes: 'exploring(min=3,max=10,ratio=1.2,small=128MiB,stuck=16)', and large=BYTES")
        })
    }

    fn argument(&self) -> Option<String> {
        let Self { least, most, ratio, small_bytes, large_bytes, stuck } = self;
        let small = format_bytes(*small_bytes);
        let large = large_bytes.map(|bytes| format!(",large={}", format_bytes(bytes)));
        let large = large.unwrap_or_default();
        Some(format!("min={least},max={most},ratio={ratio},small={small}{large},stuck={stuck}"))
    }

    fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        Some(self)
    }
}

impl SizeTiered for Exploring {
    fn merges_again(&self, bytes: u64) -> bool {
        bytes <= self.large_bytes()
    }

    fn choose(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        let busy = runs.iter().filter(|run| !run.is_free).count();
        let is_stuck = runs.len() - busy + usize::from(busy > 0) >= self.stuck as usize;
        let newer = runs.iter().take_while(|run| run.is_free).count();
        let kept = |run: &SizedRun| self.merges_again(run.bytes);
        let candidates = &runs[..runs[..newer].iter().rposition(kept).map_or(0, |at| at + 1)];
        let windows = || self.windows(candidates.len());
        let bytes = |window: &Range<usize>| bytes_of(&candidates[window.clone()]);
        let allowed = windows().filter(|window| self.allows(&candidates[window.clone()]));
        let best = allowed.reduce(|best, other| {
            let (bytes, of_other) = (bytes(&best), bytes(&other));
            if is_better((other.len(), of_other), (best.len(), bytes), is_stuck) {
                other
            } else {
                best
            }
        });
        if let Some(best) = best {
            let cause = self.cause(&candidates[best.clone()]);
            return Some(SizedMerge { runs: best, cause });
        }
        let (held, limit) = (runs.len() as u64, u64::from(self.stuck));
        let cause = MergeCause::Stall { runs: held, limit };
        let smallest = windows().filter(|_| is_stuck).min_by_key(bytes)?;
        Some(SizedMerge { runs: smallest, cause })
    }
}

/// Compares sequences by their number of runs and their bytes.
fn is_better((runs, bytes): (usize, u64), (of_best, best): (usize, u64), is_stuck: bool) -> bool {
    if is_stuck && best > 0 && bytes > 0 {
        // More runs per byte, by more than 5 percent.
        let per_byte = |runs: usize, other: u64| runs as u128 * u128::from(other);
        return per_byte(of_best, bytes) * 105 < per_byte(runs, best) * 100;
    }
    runs > of_best || runs == of_best && bytes < best
}

impl Exploring {
    /// HBase's defaults.
    const DEFAULT: Self = Self {
        least: 3,
        most: 10,
        ratio: SizeRatio::DEFAULT,
        small_bytes: 128 << 20,
        large_bytes: None,
        stuck: 16,
    };

    fn large_bytes(&self) -> u64 {
        self.large_bytes.unwrap_or(u64::MAX)
    }

    /// Returns all sequences of the right length among `count` runs: in the order of their oldest run,
    /// oldest first, and the shorter ones first among those.
    fn windows(&self, count: usize) -> impl Iterator<Item = Range<usize>> {
        let (least, most) = (self.least as usize, self.most as usize);
        (1..=count)
            .rev()
            .flat_map(move |end| (least..=most.min(end)).map(move |length| end - length..end))
    }

    fn allows(&self, window: &[SizedRun]) -> bool {
        let bytes = bytes_of(window);
        let largest = largest(window);
        let in_ratio = || self.ratio.allows(largest, bytes - largest);
        bytes <= self.large_bytes() && (bytes < self.small_bytes || in_ratio())
    }

    fn cause(&self, window: &[SizedRun]) -> MergeCause {
        let (bytes, largest) = (bytes_of(window), largest(window));
        let others = bytes - largest;
        if !self.ratio.allows(largest, others) {
            return MergeCause::Small { bytes, limit: self.small_bytes };
        }
        let limit = self.ratio.percent();
        MergeCause::LargestRatio { percent: percent_of(largest, others), limit }
    }
}

fn largest(window: &[SizedRun]) -> u64 {
    window.iter().map(|run| run.bytes).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::size_tiered::test::{merge, policy, sizes_oldest_first};

    fn chosen(text: &str, oldest_first: &[i64]) -> Vec<u64> {
        sizes_oldest_first::<Exploring>(text, oldest_first)
    }

    /// The settings are those of HBase's own unit tests.
    const TESTED: &str = "min=3,max=5,ratio=1,small=10B,large=2100B,stuck=10";
    const TOO_LARGE: i64 = 2101;

    #[test]
    fn a_run_may_be_as_large_as_all_others_of_its_merge() {
        assert_eq!(chosen(TESTED, &[100, 50, 23, 12, 12]), [23, 12, 12]);
        assert_eq!(chosen(TESTED, &[100, 50, 25, 12, 12]), []);
        assert_eq!(chosen(TESTED, &[50, 10, 10, 10, 10]), [10, 10, 10, 10]);
        assert_eq!(chosen(TESTED, &[10, 10, 10, 10, 50]), [10, 10, 10, 10]);
        assert_eq!(chosen("min=3,ratio=5,small=10B", &[999, 50, 12, 12, 1]), [50, 12, 12, 1]);
        assert_eq!(chosen(TESTED, &[999, 50, 12, 12, 1]), [12, 12, 1]);
    }

    #[test]
    fn small_runs_are_merged_whatever_their_ratio() {
        assert_eq!(chosen(TESTED, &[7, 1, 1]), [7, 1, 1]);
        assert_eq!(chosen(TESTED, &[8, 1, 1]), []);
    }

    #[test]
    fn a_merge_has_a_greatest_number_of_runs_and_of_bytes() {
        assert_eq!(chosen(TESTED, &[7, 6, 5, 4, 3, 2, 1]), [5, 4, 3, 2, 1]);
        assert_eq!(chosen(TESTED, &[TOO_LARGE, TOO_LARGE, 700, 700, 700]), [700; 3]);
        assert_eq!(chosen(TESTED, &[TOO_LARGE, TOO_LARGE, 700, 700]), []);
        assert_eq!(chosen(TESTED, &[251, 253, 251, 2099]), [251, 253, 251]);
        assert_eq!(chosen(TESTED, &[2099, 2099, 2099]), []);
        assert_eq!(chosen(TESTED, &[TOO_LARGE, TOO_LARGE]), []);
        assert_eq!(chosen(TESTED, &[]), []);
    }

    #[test]
    fn a_store_that_is_stuck_merges_where_it_is_cheapest() {
        assert_eq!(chosen(TESTED, &[512, 256, 128, 64, 32, 16, 8, 4, 2, 1]), [4, 2, 1]);
        let run = |count, then: &[i64]| [&vec![99; count], then].concat();
        assert_eq!(chosen(TESTED, &run(6, &[30, 30, 30, 30])), [30, 30, 30]);
        assert_eq!(chosen(TESTED, &run(5, &[30, 30, 30, 30])), [99, 30, 30, 30, 30]);
        assert_eq!(chosen(TESTED, &run(6, &[30, 30, 30, 15])), [30, 30, 30, 15]);
        // A stuck store allows a merge that is larger than usual.
        assert_eq!(chosen(TESTED, &[2099; 9]), []);
        assert_eq!(chosen(TESTED, &[2099; 10]), [2099; 3]);
        // The older runs are preferred, unless the newer ones are clearly cheaper.
        assert_eq!(chosen(TESTED, &run(4, &[30, 26, 26, 29, 25, 25])), [30, 26, 26]);
        assert_eq!(chosen(TESTED, &run(4, &[27, 27, 27, 20, 20, 20])), [20, 20, 20]);
    }

    /// Sequences are compared by bytes per run, unless one of them has no bytes; then the one with more
    /// runs is better.
    #[test]
    fn a_stuck_store_may_have_empty_runs() {
        let chosen = |oldest_first: [u64; 4]| {
            let runs: Vec<SizedRun> =
                oldest_first.iter().rev().map(|&bytes| SizedRun::free(bytes)).collect();
            let policy: Exploring = policy("min=3,max=4,ratio=1,small=10B,stuck=3");
            let merge = policy.choose(&runs).unwrap();
            oldest_first[4 - merge.runs.end..4 - merge.runs.start].to_vec()
        };
        assert_eq!(chosen([0, 0, 0, 5]), [0, 0, 0, 5]);
        assert_eq!(chosen([5, 0, 0, 0]), [5, 0, 0, 0]);
        assert_eq!(chosen([1, 0, 0, 1]), [1, 0, 0]);
        assert_eq!(chosen([7, 0, 0, 1]), [0, 0, 1]);
    }

    #[test]
    fn of_sequences_with_as_many_runs_the_smallest_is_taken_and_of_those_the_oldest() {
        let chosen = |newest_first: &[i64]| {
            merge::<Exploring>("min=3,max=3,ratio=1,small=0B", newest_first).unwrap().runs
        };
        assert_eq!(chosen(&[10, 10, 10, 10]), 1..4);
        assert_eq!(chosen(&[11, 10, 10, 10]), 1..4);
        assert_eq!(chosen(&[10, 10, 10, 11]), 0..3);
    }

    #[test]
    fn runs_older_than_a_running_merge_wait() {
        assert_eq!(chosen(TESTED, &[20, 20, 20, -50, 20, 20, 20]), [20; 3]);
        assert_eq!(chosen(TESTED, &[20, 20, 20, -50, 20, 20]), []);
        // A running merge leaves one run, which also counts.
        let busy = [512, -90, -90, 256, 128, 64, 32, 16, 8, 4, 2];
        assert_eq!(chosen(TESTED, &busy), [8, 4, 2]);
        assert_eq!(chosen(TESTED, &busy[1..]), []);
        assert_eq!(chosen(TESTED, &[512, -90, 256, 128, 64, 32, 16, 8, 4, 2]), [8, 4, 2]);
        assert_eq!(chosen(TESTED, &[512, -90, 256, 128, 64, 32, 16, 8, 4]), []);
    }
}
