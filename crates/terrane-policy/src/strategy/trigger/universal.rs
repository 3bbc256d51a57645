//! `universal(runs=4,space=200,ratio=1,min=2)`: RocksDB's universal compaction.
//!
//! Nothing is merged while there are fewer than `runs` runs. From then on, the first of these reasons
//! decides:
//! 1. space amplification: the runs newer than the oldest hold `space` percent of its bytes. The oldest
//!    run and all runs up to the next one that a merge has claimed become one;
//! 2. size ratio: from the newest run on, a run joins the newer ones if it is at most `ratio` percent
//!    larger than all of them together. The newest such sequence of at least `min` runs is merged;
//! 3. the number of runs: if more than `runs` runs are free, enough of the newest ones are merged to
//!    bring the number below that, whatever their sizes.
//!
//! If tombstones have a weight, it counts for the newer runs of a comparison, but not for the oldest. A
//! merge for the last two reasons takes at most `max` runs. (`level0_file_num_compaction_trigger`,
//! `max_size_amplification_percent`, `size_ratio`, `min_merge_width` and `max_merge_width`, with the
//! default `stop_style`; the compaction paper's Tier, §4.1.)

use std::ops::Range;

use super::rule::{TriggerInfo, TriggerRule, parse_percent, sized_info, wrong};
use crate::error::ParseError;
use crate::strategy::size_tiered::{
    MergeCause, SizeTiered, SizedMerge, SizedRun, for_each_setting, percent_of,
};

/// Merges runs for space amplification, for size ratio and for their number, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Universal {
    runs: u32,
    space_percent: u32,
    ratio_percent: u32,
    least: u32,
    most: u32,
}

static INFO: TriggerInfo = sized_info(
    "universal",
    "universal(runs=4)",
    &["universal(runs=3)", "universal(runs=2,space=60,ratio=50,min=3,max=4)"],
    &["run-count", "space-amplification"],
);

impl TriggerRule for Universal {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(given: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let mut policy = Self::DEFAULT;
        let set = |key: &str, value: &str| {
            let percent = || parse_percent(value, 1_000_000, text).ok();
            match key {
                "runs" => policy.runs = value.parse().ok()?,
                "space" => policy.space_percent = percent()?,
                "ratio" if value.trim_end_matches('%') == "0" => policy.ratio_percent = 0,
                "ratio" => policy.ratio_percent = percent()?,
                "min" => policy.least = value.parse().ok()?,
                "max" => policy.most = value.parse().ok()?,
                _ => return None,
            }
            Some(())
        };
        let is_read = for_each_setting(given, set).is_some();
        let Self { runs, least, most, .. } = policy;
        let is_fine = is_read
            && (2..=1000).contains(&runs)
            && (2..=1000).contains(&least)
            && (least..=Self::UNLIMITED).contains(&most);
        is_fine.then_some(policy).ok_or_else(|| {
            wrong(text, "2 to 1000 runs and percentages: 'universal(runs=4,space=200,ratio=1,min=2)', and max=RUNS of at least min")
        })
    }

    fn argument(&self) -> Option<String> {
        let Self { runs, space_percent, ratio_percent, least, most } = self;
        let most = if *most == Self::UNLIMITED { String::new() } else { format!(",max={most}") };
        Some(format!("runs={runs},space={space_percent},ratio={ratio_percent},min={least}{most}"))
    }

    fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        Some(self)
    }
}

impl SizeTiered for Universal {
    fn choose(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        if runs.len() < self.runs as usize {
            return None;
        }
        self.for_space(runs).or_else(|| self.for_ratio(runs)).or_else(|| self.for_number(runs))
    }
}

fn weighed(runs: &[SizedRun]) -> u64 {
    runs.iter().fold(0, |sum, run| sum.saturating_add(run.weighed_bytes))
}

impl Universal {
    const UNLIMITED: u32 = u32::MAX;

    /// RocksDB's defaults.
    const DEFAULT: Self =
        Self { runs: 4, space_percent: 200, ratio_percent: 1, least: 2, most: Self::UNLIMITED };

    fn for_space(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        let (oldest, newer) = runs.split_last().filter(|(oldest, _)| oldest.is_free)?;
        let from = newer.iter().rposition(|run| !run.is_free).map_or(0, |at| at + 1);
        let percent = percent_of(weighed(&newer[from..]), oldest.bytes);
        let limit = u64::from(self.space_percent);
        let cause = MergeCause::SpaceAmplification { percent, limit };
        (percent >= limit).then_some(SizedMerge { runs: from..runs.len(), cause })
    }

    fn for_ratio(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        let percent = 100 + u64::from(self.ratio_percent);
        let joins = |younger: u64, run: u64| {
            u128::from(younger) * u128::from(percent) >= u128::from(run) * 100
        };
        let runs_merged = self.newest_sequence(runs, self.most as usize, joins)?;
        let (oldest, younger) = runs[runs_merged.clone()].split_last()?;
        let cause = MergeCause::SizeRatio {
            percent: percent_of(oldest.bytes, weighed(younger)),
            limit: percent,
        };
        Some(SizedMerge { runs: runs_merged, cause })
    }

    fn for_number(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        let free = runs.iter().filter(|run| run.is_free).count();
        // Without an excess, the sequence has one run, which is below the minimum.
        let excess = free.checked_sub(self.runs as usize)?;
        let most = (self.most as usize).min(excess + 1);
        let runs_merged = self.newest_sequence(runs, most, |_, _| true)?;
        let cause = MergeCause::Count { runs: free as u64, limit: u64::from(self.runs) };
        Some(SizedMerge { runs: runs_merged, cause })
    }

    /// Returns the newest sequence of free runs, from the minimum number to `most`, in which each run
    /// joins the younger ones. A sequence that stays too short is skipped, and the next one begins with
    /// the run after its newest.
    fn newest_sequence(
        &self,
        runs: &[SizedRun],
        most: usize,
        joins: impl Fn(u64, u64) -> bool,
    ) -> Option<Range<usize>> {
        let sequence = |from: usize| {
            let mut younger = None;
            let may_join = |run: &&SizedRun| {
                let joins = younger.is_none_or(|younger| joins(younger, run.bytes));
                younger = Some(younger.unwrap_or(0).saturating_add(run.weighed_bytes));
                run.is_free && joins
            };
            from..from + runs[from..].iter().take(most).take_while(may_join).count()
        };
        (0..runs.len()).map(sequence).find(|found| found.len() >= self.least as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::size_tiered::test::{merge, policy};

    fn chosen(text: &str, newest_first: &[i64]) -> Option<(Range<usize>, &'static str)> {
        merge::<Universal>(text, newest_first).map(|merge| {
            let cause = match merge.cause {
                MergeCause::SpaceAmplification { .. } => "space",
                MergeCause::SizeRatio { .. } => "ratio",
                MergeCause::Count { .. } => "number",
                other => panic!("{other:?}"),
            };
            (merge.runs, cause)
        })
    }

    #[test]
    fn nothing_is_merged_before_there_are_enough_runs() {
        assert_eq!(chosen("runs=4", &[1, 1, 1]), None);
        assert_eq!(chosen("runs=4", &[1, 1, 1, 1]), Some((0..4, "space")));
        // Runs that are being merged also count.
        assert_eq!(chosen("runs=4", &[1, 1, 3, -9]), Some((0..2, "ratio")));
    }

    #[test]
    fn space_amplification_comes_first_and_merges_into_the_oldest() {
        assert_eq!(chosen("runs=4", &[10, 40, 50, 50]), Some((0..4, "space")));
        assert_eq!(chosen("runs=4,space=201", &[10, 40, 50, 50]), Some((2..4, "ratio")));
        assert_eq!(chosen("runs=2,space=200", &[200, 100]), Some((0..2, "space")));
        // Only the runs older than the claimed one are merged and counted.
        assert_eq!(chosen("runs=4", &[9, -9, 150, 60, 100]), Some((2..5, "space")));
        assert_eq!(chosen("runs=4,space=300", &[9, -90, 150, 60, 100]), Some((2..5, "ratio")));
        // While the oldest run is claimed, a merge gains nothing.
        assert_eq!(chosen("runs=3", &[60, 100, -10]), None);
        assert_eq!(chosen("runs=3", &[60, -100, 10]), None);
    }

    #[test]
    fn runs_join_younger_ones_that_are_as_large_together() {
        // The states of a load with flushes of one unit each, up to the third merge of all runs.
        assert_eq!(chosen("runs=4", &[1, 1, 1, 4]), Some((0..3, "ratio")));
        assert_eq!(chosen("runs=4", &[1, 1, 3, 4]), Some((0..2, "ratio")));
        assert_eq!(chosen("runs=4", &[1, 2, 3, 4]), None);
        assert_eq!(chosen("runs=4", &[1, 1, 2, 3, 4]), Some((0..5, "ratio")));
        // A run that is one percent larger may join; one that is two percent larger may not.
        assert_eq!(chosen("runs=3", &[100, 101, 900]), Some((0..2, "ratio")));
        assert_eq!(chosen("runs=3", &[100, 102, 900]), None);
        assert_eq!(chosen("runs=3,ratio=2", &[100, 102, 900]), Some((0..2, "ratio")));
        assert_eq!(chosen("runs=3,ratio=0", &[100, 101, 900]), None);
    }

    #[test]
    fn tombstones_weigh_in_newer_runs_alone() {
        let chosen = |runs: &[(u64, u64)]| {
            let sized = |&(bytes, weighed_bytes): &(u64, u64)| SizedRun {
                weighed_bytes,
                ..SizedRun::free(bytes)
            };
            let runs: Vec<SizedRun> = runs.iter().map(sized).collect();
            policy::<Universal>("runs=3").choose(&runs).map(|merge| merge.runs)
        };
        assert_eq!(chosen(&[(10, 10), (30, 30), (99, 99)]), None);
        assert_eq!(chosen(&[(10, 30), (30, 30), (99, 99)]), Some(0..2));
        assert_eq!(chosen(&[(10, 10), (30, 60), (99, 99)]), None);
        assert_eq!(chosen(&[(10, 10), (30, 188), (99, 99)]), Some(0..3));
        assert_eq!(chosen(&[(10, 10), (30, 187), (99, 99)]), Some(1..3));
    }

    #[test]
    fn sequences_that_are_too_short_are_left_out() {
        assert_eq!(chosen("runs=4,min=3", &[1, 1, 30, 30, 30, 900]), Some((2..5, "ratio")));
        assert_eq!(chosen("runs=4,min=3,max=3", &[9, 9, 9, 9, 900]), Some((0..3, "ratio")));
        assert_eq!(chosen("runs=4", &[-1, 5, 5, -9, 90]), Some((1..3, "ratio")));
    }

    #[test]
    fn the_newest_runs_are_merged_if_there_are_too_many() {
        assert_eq!(chosen("runs=4", &[1, 2, 4, 8, 16]), Some((0..2, "number")));
        assert_eq!(chosen("runs=4", &[1, 2, 4, 8, 16, 32]), Some((0..3, "number")));
        assert_eq!(chosen("runs=4,max=2", &[1, 2, 4, 8, 16, 32]), Some((0..2, "number")));
        // Only free runs count.
        assert_eq!(chosen("runs=4", &[1, 2, 4, 8, -16]), None);
        assert_eq!(chosen("runs=4", &[-1, 2, 4, 8, 16, 32]), Some((1..3, "number")));
        // Two runs may not be merged if the minimum is three.
        assert_eq!(chosen("runs=4,min=3", &[1, 2, 4, 8, 16]), None);
    }
}
