//! `small-set(ratio=3,max=10)`: Accumulo's default compaction planner.
//!
//! The policy adds runs to a set in the order of their sizes, smallest first. A set may be merged if
//! it holds more than `ratio` times the bytes of its largest run. The set grows for as long as it may
//! be merged. A later, larger set is preferred if merging the smaller one would leave a run larger
//! than the later set's largest run, and thus prevent that merge. If no set of the `max` smallest
//! runs may be merged, the next larger ones are tried. With `total=BYTES`, only the smallest runs
//! whose sizes add up to at most BYTES are considered.
//!
//! A running merge counts as one run of all its bytes; if the set would include it, the policy waits
//! for that merge.
//!
//! Accumulo merges any files, because each key has a timestamp. Here the order of runs decides which
//! version is newer, so only adjacent runs of a set are merged: as many as satisfy the ratio by
//! themselves. While flushes are of similar size, the smallest runs are the newest, and this makes no
//! difference. (`table.compaction.major.ratio`, `maxOpen` and `maxSize`.)

use std::ops::Range;

use super::rule::{TriggerInfo, TriggerRule, sized_info, wrong};
use crate::error::ParseError;
use crate::strategy::size_tiered::{
    MergeCause, SizeRatio, SizeTiered, SizedMerge, SizedRun, bytes_of, for_each_setting,
    percent_of, stretches,
};
use crate::units::{format_bytes, parse_bytes};

/// Merges small runs that hold several times the bytes of the largest of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SmallSet {
    ratio: SizeRatio,
    most: u32,
    total_bytes: Option<u64>,
}

/// A run, or all adjacent runs that merges have claimed.
struct SetMember {
    /// The index of the run, or of the newest of several.
    at: usize,
    bytes: u64,
    is_free: bool,
}

static INFO: TriggerInfo = sized_info(
    "small-set",
    "small-set(ratio=3)",
    &["small-set(ratio=2)", "small-set(ratio=1.5,max=3,total=256KiB)"],
    &["level-saturation", "run-count"],
);

impl TriggerRule for SmallSet {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(given: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let mut policy = Self::DEFAULT;
        let set = |key: &str, value: &str| {
            match key {
                "ratio" => policy.ratio = SizeRatio::parse(value)?,
                "max" => policy.most = value.parse().ok()?,
                "total" => policy.total_bytes = Some(parse_bytes(value).ok()?),
                _ => return None,
            }
            Some(())
        };
        let is_read = for_each_setting(given, set).is_some();
        let is_fine = is_read
            && policy.ratio >= SizeRatio::ONE
            && (2..=1000).contains(&policy.most)
            && policy.total_bytes != Some(0);
        is_fine.then_some(policy).ok_or_else(|| {
            wrong(text, "a ratio of at least 1 and 2 to 1000 runs: 'small-set(ratio=3,max=10)', and total=BYTES")
        })
    }

    fn argument(&self) -> Option<String> {
        let Self { ratio, most, total_bytes } = self;
        let total = total_bytes.map(|bytes| format!(",total={}", format_bytes(bytes)));
        Some(format!("ratio={ratio},max={most}{}", total.unwrap_or_default()))
    }

    fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        Some(self)
    }
}

impl SizeTiered for SmallSet {
    fn merges_again(&self, bytes: u64) -> bool {
        bytes <= self.total_bytes.unwrap_or(u64::MAX)
    }

    fn choose(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        let mut members = members(runs);
        members.sort_by_key(|member| member.bytes);
        let mut sum = 0u64;
        members.retain(|member| {
            sum = sum.saturating_add(member.bytes);
            self.merges_again(sum)
        });
        let length = members.len().min(self.most as usize);
        let windows = members.windows(length.max(1));
        for set in windows.filter_map(|window| Some(&window[..self.set_of(window)?])) {
            if set.iter().any(|member| !member.is_free) {
                return None;
            }
            // Accumulo merges runs that are not adjacent; here only a later set may have adjacent
            // ones.
            if let Some(merge) = self.adjacent(runs, set) {
                return Some(merge);
            }
        }
        None
    }
}

/// Returns the runs; adjacent runs that merges have claimed count as one.
fn members(runs: &[SizedRun]) -> Vec<SetMember> {
    let mut members: Vec<SetMember> = Vec::new();
    for (at, &SizedRun { bytes, is_free, .. }) in runs.iter().enumerate() {
        match members.last_mut() {
            Some(last) if !is_free && !last.is_free => {
                last.bytes = last.bytes.saturating_add(bytes);
            }
            _ => members.push(SetMember { at, bytes, is_free }),
        }
    }
    members
}

impl SmallSet {
    /// Accumulo's defaults.
    const DEFAULT: Self = Self { ratio: SizeRatio::of_percent(300), most: 10, total_bytes: None };

    /// Returns how many of these runs, which are sorted by size, make up the set to merge.
    fn set_of(&self, sorted: &[SetMember]) -> Option<usize> {
        let mut sum = sorted.first()?.bytes;
        // The last of the current series of mergeable sets, with its bytes.
        let mut chosen: Option<(usize, u64)> = None;
        let mut allowed: Option<(usize, u64)> = None;
        let prefers = |chosen: Option<(usize, u64)>, at: usize| {
            chosen.is_none_or(|(_, bytes)| bytes > sorted[at].bytes)
        };
        for (at, member) in sorted.iter().enumerate().skip(1) {
            sum = sum.saturating_add(member.bytes);
            if self.ratio.exceeded_by(sum, member.bytes) {
                allowed = Some((at, sum));
                continue;
            }
            let Some((last, bytes)) = allowed.filter(|(last, _)| last + 1 == at) else { continue };
            if !prefers(chosen, last) {
                return chosen.map(|(at, _)| at + 1);
            }
            chosen = Some((last, bytes));
        }
        let ends_allowed = allowed.filter(|(at, _)| at + 1 == sorted.len());
        let last = ends_allowed.filter(|(at, _)| prefers(chosen, *at));
        last.or(chosen).map(|(at, _)| at + 1)
    }

    /// Returns the longest mergeable stretch of adjacent runs in the set, the newest of several.
    fn adjacent(&self, runs: &[SizedRun], set: &[SetMember]) -> Option<SizedMerge> {
        let mut marked = vec![None; runs.len()];
        for member in set {
            marked[member.at] = Some(());
        }
        let parts = stretches(&marked).flat_map(|stretch| {
            let starts = stretch.clone();
            starts.flat_map(move |from| (from + 2..=stretch.end).map(move |to| from..to))
        });
        let largest = |part: &Range<usize>| runs[part.clone()].iter().map(|run| run.bytes).max();
        let allowed = parts.filter(|part| {
            let (sum, largest) = (bytes_of(&runs[part.clone()]), largest(part).unwrap_or(0));
            self.ratio.exceeded_by(sum, largest)
        });
        let longest =
            allowed.reduce(|best, other| if other.len() > best.len() { other } else { best })?;
        let percent = percent_of(bytes_of(&runs[longest.clone()]), largest(&longest)?);
        let cause = MergeCause::SumRatio { percent, limit: self.ratio.percent() };
        Some(SizedMerge { runs: longest, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::size_tiered::test::{merge, sizes_oldest_first};

    /// Runs of equal size are ordered by age, so that sets of the smallest are adjacent.
    fn chosen(text: &str, oldest_first: &[i64]) -> Vec<u64> {
        sizes_oldest_first::<SmallSet>(text, oldest_first)
    }

    /// The cases are those of Accumulo's own unit tests.
    #[test]
    fn the_set_grows_while_it_satisfies_the_ratio() {
        assert_eq!(chosen("ratio=2", &[100, 100, 100, 1, 1, 1]), [1, 1, 1]);
        assert_eq!(chosen("ratio=2", &[100, 100, 100, 1]), [100, 100, 100, 1]);
        let tens = [50, 49, 10, 10, 10, 10];
        assert_eq!(chosen("ratio=2", &tens), [10; 4]);
        assert_eq!(chosen("ratio=3", &tens), [10; 4]);
        let three = [100, 100, 100, 100, 10, 10, 10, 10, 1, 1, 1, 1];
        assert_eq!(chosen("ratio=3", &three), [1; 4]);
        assert_eq!(
            chosen("ratio=3", &[100, 100, 100, 100, 10, 10, 10, 10, 4]),
            [10, 10, 10, 10, 4]
        );
        assert_eq!(chosen("ratio=3", &[100, 100, 100, 100, 44]), [100, 100, 100, 100, 44]);
        assert_eq!(chosen("ratio=3", &[444]), []);
        assert_eq!(chosen("ratio=3", &[17, 11, 11, 11]), []);
        assert_eq!(chosen("ratio=3", &[16, 11, 11, 11]), [16, 11, 11, 11]);
        let mixed = [500, 100, 100, 100, 5, 5, 3, 3, 1, 1, 1, 1];
        assert_eq!(chosen("ratio=3", &mixed), [5, 5, 3, 3, 1, 1, 1, 1]);
    }

    #[test]
    fn a_merge_must_not_stand_in_the_way_of_a_larger_one() {
        // Four runs of 33 would become one of 132, which is larger than 100.
        let sizes = [100, 99, 33, 33, 33, 33];
        assert_eq!(chosen("ratio=2", &sizes), [100, 99, 33, 33, 33, 33]);
        assert_eq!(chosen("ratio=3", &sizes), [100, 99, 33, 33, 33, 33]);
        // Four runs of 25 become one of 100, as large as the largest run of the later set.
        assert_eq!(chosen("ratio=2", &[100, 100, 25, 25, 25, 25]), [25; 4]);
    }

    #[test]
    fn larger_runs_are_tried_if_the_smallest_do_not_satisfy_the_ratio() {
        assert_eq!(chosen("ratio=3,max=4", &[12, 11, 10, 9, 8, 7]), [10, 9, 8, 7]);
        assert_eq!(chosen("ratio=3,max=4", &[10, 9, 8, 4, 2, 1]), [10, 9, 8, 4]);
        assert_eq!(chosen("ratio=3,max=4", &[32, 16, 8, 4, 2, 1]), []);
    }

    #[test]
    fn runs_beyond_the_total_are_left_out() {
        assert_eq!(chosen("ratio=3,max=4,total=100B", &[200; 6]), []);
        let sizes = [30, 30, 30, 30, 2, 1];
        assert_eq!(chosen("ratio=3,max=4,total=100B", &sizes), [30, 30, 30, 2]);
        assert_eq!(chosen("ratio=3,max=8,total=100B", &sizes), [30, 30, 30, 2, 1]);
        assert_eq!(chosen("ratio=3,max=8,total=200B", &sizes), [30, 30, 30, 30, 2, 1]);
        // The smallest runs count first, whatever their age.
        assert_eq!(chosen("ratio=3,total=100B", &[10, 10, 10, 10, 90]), [10; 4]);
        assert_eq!(chosen("ratio=3,total=40B", &[10, 10, 10, 10]), [10; 4]);
    }

    #[test]
    fn a_running_merge_is_waited_for_if_its_result_belongs_to_the_set() {
        assert_eq!(chosen("ratio=2", &[11, 12, 13, -3, -3]), []);
        assert_eq!(chosen("ratio=2", &[-30, -30, 11, 12, 13]), [11, 12, 13]);
    }

    #[test]
    fn only_adjacent_runs_of_the_set_are_merged() {
        assert_eq!(chosen("ratio=3", &[5, 5, 5, 5, 90, 5, 5, 5, 5, 5]), [5; 5]);
        assert_eq!(chosen("ratio=3", &[5, 5, 90, 5, 5, 90]), []);
        assert_eq!(chosen("ratio=2", &[90, 5, 5, 5, 60, 5, 5, 5]), [5; 3]);
        // Two runs suffice, wherever they are,
        assert_eq!(chosen("ratio=1.5", &[10, 10]), [10, 10]);
        assert_eq!(chosen("ratio=1.5", &[10, 10, 200, 90, 200]), [10, 10]);
        // if they satisfy the ratio by themselves.
        assert_eq!(chosen("ratio=3", &[30, 500, 30, 10, 500, 30, 10]), []);
        let twice = merge::<SmallSet>("ratio=3", &[5, 5, 5, 5, 90, 5, 5, 5, 5]);
        assert_eq!(twice.map(|merge| merge.runs), Some(0..4), "the newest of several");
    }
}
