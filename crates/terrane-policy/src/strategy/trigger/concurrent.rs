//! `concurrent(3,10,1.2)`: AsterixDB's `ConcurrentMergePolicy`. It merges the newest runs that no
//! merge has taken yet, back to the oldest one of similar size, so that small merges run while large
//! ones do.
//!
//! Among the newest free runs, the policy looks for the oldest one that is not larger, compared to
//! those before it, than the ratio allows. A merge takes at most a given number of runs, and waits
//! until it has a least number of them. (Parameters `min-` and `max-merge-component-count` and
//! `size-ratio`; its `max-component-count` is a limit of runs here, as `global(30)`.)

use std::fmt;

use super::rule::{TriggerInfo, TriggerRule, sized_info, wrong};
use crate::error::ParseError;
use crate::strategy::size_tiered::{
    SizeRatio, SizeTiered, SizedMerge, SizedRun, arguments, bytes_of,
};

/// A number of the newest runs of similar size; merges run concurrently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Concurrent {
    least: u32,
    most: u32,
    ratio: SizeRatio,
}

static INFO: TriggerInfo = sized_info(
    "concurrent",
    "concurrent(3,10)",
    &["concurrent(2,4)", "concurrent(3,10,0.5)"],
    &["run-count"],
);

impl Concurrent {
    /// AsterixDB's defaults: 3 to 10 runs.
    const DEFAULT: Self = Self { least: 3, most: 10, ratio: SizeRatio::DEFAULT };
}

impl TriggerRule for Concurrent {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(given: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let bad =
            || wrong(text, "2 to 1000 runs, as many or more, and a ratio: 'concurrent(3,10,1.2)'");
        let mut concurrent = Self::DEFAULT;
        let all = arguments(given);
        if all.len() > 3 {
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
        let Self { least, most, .. } = concurrent;
        let is_fine = (2..=1000).contains(&least) && (least..=1000).contains(&most);
        is_fine.then_some(concurrent).ok_or_else(bad)
    }

    fn argument(&self) -> Option<String> {
        Some(format!("{},{},{}", self.least, self.most, self.ratio))
    }

    fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        Some(self)
    }
}

impl SizeTiered for Concurrent {
    fn choose(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        let free = runs.iter().take_while(|run| run.is_free).count();
        let (least, most) = (self.least as usize, self.most as usize);
        (least - 1..free).rev().find_map(|oldest| {
            let newest = (oldest + 1).saturating_sub(most);
            let younger = bytes_of(&runs[newest..oldest]);
            let own = runs[oldest].bytes;
            let cause = self.ratio.cause(own, younger);
            let merge = SizedMerge { runs: newest..oldest + 1, cause };
            self.ratio.allows(own, younger).then_some(merge)
        })
    }
}

impl fmt::Display for Concurrent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "concurrent({})", self.argument().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;

    /// Takes sizes with the newest run first; the sizes of runs that are being merged are negative.
    fn chosen(text: &str, newest_first: &[i64]) -> Option<Range<usize>> {
        let sized = |&bytes: &i64| SizedRun { bytes: bytes.unsigned_abs(), is_free: bytes > 0 };
        let runs: Vec<SizedRun> = newest_first.iter().map(sized).collect();
        Concurrent::parse(Some(text), text).unwrap().choose(&runs).map(|merge| merge.runs)
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
}
