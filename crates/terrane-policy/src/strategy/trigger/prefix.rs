//! `prefix(1GiB,5,1.2)`: AsterixDB's `PrefixMergePolicy`. Small runs gather until a merge is
//! worthwhile, and large ones are left alone ("rest").
//!
//! Going from the oldest run to the newest, the policy merges the first sequence that
//! - exceeds the size from which runs rest, with as few runs as possible, or else
//! - extends to the newest run and holds the tolerated number of runs,
//!
//! if the ratio allows its oldest run. Resting runs separate sequences. One merge runs at a time.
//! (Parameters `max-mergable-component-size` and `max-tolerance-component-count`; the ratio is a
//! constant there.)

use super::rule::{TriggerInfo, TriggerRule, sized_info, wrong};
use crate::error::ParseError;
use crate::strategy::size_tiered::{
    MergeCause, SizeRatio, SizeTiered, SizedMerge, SizedRun, arguments, bytes_of,
};
use crate::units::{format_bytes, parse_bytes};

/// Merges adjacent runs that together exceed a size, or many small ones; one merge at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Prefix {
    /// Larger runs are not merged again.
    rests_from: u64,
    /// The number of runs that are merged even if their total is smaller.
    tolerated: u32,
    ratio: SizeRatio,
}

static INFO: TriggerInfo = sized_info(
    "prefix",
    "prefix(1GiB,5)",
    &["prefix(64KiB,3)", "prefix(1MiB,2,5)"],
    &["run-count"],
);

impl TriggerRule for Prefix {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(given: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let bad = || wrong(text, "bytes, 2 to 1000 runs and a ratio, as in 'prefix(1GiB,5,1.2)'");
        let mut prefix = Self::DEFAULT;
        let all = arguments(given);
        if all.len() > 3 {
            return Err(bad());
        }
        if let Some(bytes) = all.first() {
            prefix.rests_from = parse_bytes(bytes).map_err(|_| bad())?;
        }
        if let Some(runs) = all.get(1) {
            prefix.tolerated = runs.parse().map_err(|_| bad())?;
        }
        if let Some(ratio) = all.get(2) {
            prefix.ratio = SizeRatio::parse(ratio).ok_or_else(bad)?;
        }
        let is_fine = prefix.rests_from > 0 && (2..=1000).contains(&prefix.tolerated);
        is_fine.then_some(prefix).ok_or_else(bad)
    }

    fn argument(&self) -> Option<String> {
        let Self { rests_from, tolerated, ratio } = self;
        Some(format!("{},{tolerated},{ratio}", format_bytes(*rests_from)))
    }

    fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        Some(self)
    }
}

impl SizeTiered for Prefix {
    fn merges_again(&self, bytes: u64) -> bool {
        bytes <= self.rests_from
    }

    fn choose(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        if runs.iter().any(|run| !run.is_free) {
            return None;
        }
        (1..runs.len()).rev().find_map(|oldest| self.from(runs, oldest))
    }
}

impl Prefix {
    /// AsterixDB's defaults: 1 GiB and 5 runs.
    const DEFAULT: Self = Self { rests_from: 1 << 30, tolerated: 5, ratio: SizeRatio::DEFAULT };

    /// Returns the sequence with the given oldest run, if it should be merged.
    fn from(&self, runs: &[SizedRun], oldest: usize) -> Option<SizedMerge> {
        let own = runs[oldest].bytes;
        let rests = |run: &SizedRun| !self.merges_again(run.bytes);
        // Younger runs, up to the next resting one.
        let newest = runs[..oldest].iter().rposition(rests).map_or(0, |at| at + 1);
        if rests(&runs[oldest]) || newest == oldest {
            return None;
        }
        let is_large = |from: &usize| {
            let younger = bytes_of(&runs[*from..oldest]);
            own.saturating_add(younger) > self.rests_from && self.ratio.allows(own, younger)
        };
        if let Some(from) = (newest..oldest).rev().find(is_large) {
            let bytes = bytes_of(&runs[from..=oldest]);
            let cause = MergeCause::TotalSize { bytes, limit: self.rests_from };
            return Some(SizedMerge { runs: from..oldest + 1, cause });
        }
        let are_many = newest == 0 && oldest + 1 >= self.tolerated as usize;
        let fits = self.ratio.allows(own, bytes_of(&runs[..oldest]));
        let (count, limit) = (oldest as u64 + 1, u64::from(self.tolerated));
        let cause = MergeCause::Count { runs: count, limit };
        (are_many && fits).then_some(SizedMerge { runs: 0..oldest + 1, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::size_tiered::test::{merge, sizes_oldest_first};

    fn chosen(text: &str, oldest_first: &[i64]) -> Vec<u64> {
        sizes_oldest_first::<Prefix>(text, oldest_first)
    }

    #[test]
    fn the_tolerated_number_of_small_runs_is_merged() {
        assert_eq!(chosen("1000B,4", &[10, 10, 10]), []);
        assert_eq!(chosen("1000B,4", &[10, 10, 10, 10]), [10, 10, 10, 10]);
        // A run larger than 1.2 times all younger runs waits for more of them.
        assert_eq!(chosen("1000B,4", &[40, 10, 10, 10]), []);
        assert_eq!(chosen("1000B,4", &[40, 10, 10, 10, 10]), [40, 10, 10, 10, 10]);
        assert_eq!(chosen("1000B,4", &[400, 10, 10, 10, 10]), [10, 10, 10, 10]);
    }

    #[test]
    fn runs_that_reach_the_size_are_merged_and_rest() {
        // The three oldest runs exceed 100 bytes without the newest.
        assert_eq!(chosen("100B,5", &[60, 30, 25, 10]), [60, 30, 25]);
        assert_eq!(chosen("100B,5", &[115, 30, 25, 10]), []);
        // A sum of exactly 100 bytes does not suffice.
        assert_eq!(chosen("100B,5", &[50, 30, 20]), []);
        assert_eq!(chosen("100B,5", &[50, 30, 21]), [50, 30, 21]);
        // A resting run separates the runs on either side of it.
        assert_eq!(chosen("100B,2", &[10, 10, 115, 10]), []);
        assert_eq!(chosen("100B,2", &[10, 10, 115, 10, 10]), [10, 10]);
    }

    #[test]
    fn one_merge_runs_at_a_time() {
        let chosen = |runs: &[i64]| merge::<Prefix>("100B,2", runs).map(|merge| merge.runs);
        assert_eq!(chosen(&[10, 10, 10]), Some(0..3));
        assert_eq!(chosen(&[10, 10, -10]), None);
    }
}
