//! `generations(chunk=10MiB,min=7,max=15,large=5GiB)`: the merges of WiredTiger's LSM trees.
//!
//! A flush creates a run of generation 0, and a merge creates a run of the generation after that of its
//! inputs. `min` to `max` adjacent runs of one generation are merged: first the newest generation that
//! has enough, and within a generation the oldest runs. A merge takes at most `large` bytes.
//!
//! WiredTiger stores the generation of each run. Here it follows from its size: a run of generation g
//! holds about `min` to the power of g chunks, and the boundaries lie halfway between two generations.
//!
//! WiredTiger merges across generations if there was no merge for longer than flushes should take to
//! cause one. Here sizes decide, without a clock: if no generation has `min` adjacent runs but one has
//! `min` in all, they are merged together with the runs between them, where these have the fewest bytes.
//!
//! (`chunk_size`, `merge_min`, of which 0 means half of `merge_max`, `merge_max` and `chunk_max`. Not
//! here: after a longer time without merges, WiredTiger merges fewer runs.)

use std::ops::Range;

use libm::log;

use super::rule::{TriggerInfo, TriggerRule, sized_info, wrong};
use crate::error::ParseError;
use crate::strategy::size_tiered::{
    MergeCause, SizeTiered, SizedMerge, SizedRun, bytes_of, for_each_setting, spread, stretches,
};
use crate::units::{format_bytes, parse_bytes};

/// Merges adjacent runs that took equally many merges to build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Generations {
    chunk_bytes: u64,
    least: u32,
    most: u32,
    large_bytes: u64,
}

static INFO: TriggerInfo = sized_info(
    "generations",
    "generations(min=7)",
    &["generations(chunk=4KiB,min=2,max=4)", "generations(chunk=1KiB,min=3,max=3,large=256KiB)"],
    &["run-count"],
);

impl TriggerRule for Generations {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(given: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let mut policy = Self::DEFAULT;
        let set = |key: &str, value: &str| {
            match key {
                "chunk" => policy.chunk_bytes = parse_bytes(value).ok()?,
                "min" => policy.least = value.parse().ok()?,
                "max" => policy.most = value.parse().ok()?,
                "large" => policy.large_bytes = parse_bytes(value).ok()?,
                _ => return None,
            }
            Some(())
        };
        let is_read = for_each_setting(given, set).is_some();
        let Self { chunk_bytes, least, most, large_bytes } = policy;
        let is_fine = is_read
            && chunk_bytes > 0
            && (2..=1000).contains(&least)
            && (least..=1000).contains(&most)
            && large_bytes > chunk_bytes;
        is_fine.then_some(policy).ok_or_else(|| {
            wrong(text, "2 to 1000 runs, and chunk below large: 'generations(chunk=10MiB,min=7,max=15,large=5GiB)'")
        })
    }

    fn argument(&self) -> Option<String> {
        let Self { chunk_bytes, least, most, large_bytes } = self;
        let (chunk, large) = (format_bytes(*chunk_bytes), format_bytes(*large_bytes));
        Some(format!("chunk={chunk},min={least},max={most},large={large}"))
    }

    fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        Some(self)
    }
}

impl SizeTiered for Generations {
    fn merges_again(&self, bytes: u64) -> bool {
        bytes <= self.large_bytes
    }

    fn choose(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        let of = |run: &SizedRun| run.is_free.then(|| self.generation(run.bytes));
        let generations: Vec<Option<u32>> = runs.iter().map(of).collect();
        let found = stretches(&generations).find_map(|stretch| self.oldest(runs, stretch));
        let adjacent = found.map(|runs| {
            let cause =
                MergeCause::Similar { runs: runs.len() as u64, limit: u64::from(self.least) };
            SizedMerge { runs, cause }
        });
        adjacent.or_else(|| spread(runs, &generations, (self.least, self.most), self.large_bytes))
    }
}

impl Generations {
    /// WiredTiger's defaults.
    const DEFAULT: Self = Self { chunk_bytes: 10 << 20, least: 7, most: 15, large_bytes: 5 << 30 };

    /// Returns the generation of a run of this size: the exponent of the power of `min` nearest, by
    /// ratio, to its number of chunks.
    fn generation(&self, bytes: u64) -> u32 {
        let chunks = bytes as f64 / self.chunk_bytes as f64;
        // The negative logarithms of runs smaller than a chunk saturate at 0.
        (log(chunks) / log(f64::from(self.least))).round() as u32
    }

    /// Returns the oldest runs of a stretch that may be merged.
    fn oldest(&self, runs: &[SizedRun], stretch: Range<usize>) -> Option<Range<usize>> {
        let (least, most) = (self.least as usize, self.most as usize);
        let fits = |window: &Range<usize>| bytes_of(&runs[window.clone()]) <= self.large_bytes;
        (stretch.start + least..=stretch.end).rev().find_map(|end| {
            let newest = stretch.start.max(end.saturating_sub(most));
            (newest..=end - least).map(|from| from..end).find(fits)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::size_tiered::test::{policy, sizes};

    fn chosen(text: &str, newest_first: &[i64]) -> Vec<u64> {
        sizes::<Generations>(text, newest_first)
    }

    const THREE: &str = "chunk=10B,min=3,max=5,large=5000B";

    #[test]
    fn a_generation_is_a_power_of_the_least_number_of_runs() {
        let policy: Generations = policy(THREE);
        let of = |bytes| policy.generation(bytes);
        assert_eq!([of(0), of(1), of(10), of(17)], [0; 4]);
        assert_eq!([of(18), of(30), of(50)], [1; 3]);
        assert_eq!([of(53), of(90), of(250)], [2, 2, 3]);
        // With WiredTiger's defaults, runs of 7 to 15 chunks are one generation, and those of 49 chunks
        // the next.
        let usual = Generations::DEFAULT;
        let chunks = |count: u64| usual.generation(count * (10 << 20));
        assert_eq!([chunks(1), chunks(7), chunks(15), chunks(49), chunks(105)], [0, 1, 1, 2, 2]);
    }

    #[test]
    fn adjacent_runs_of_one_generation_are_merged() {
        assert_eq!(chosen(THREE, &[10, 10]), []);
        assert_eq!(chosen(THREE, &[10, 10, 10]), [10; 3]);
        assert_eq!(chosen(THREE, &[9, 11, 10, 30, 30]), [9, 11, 10]);
        assert_eq!(chosen(THREE, &[10, 10, 30, 30, 30, 90]), [30; 3]);
        assert_eq!(chosen(THREE, &[10, 10, 30, 90, 30]), []);
        assert_eq!(chosen(THREE, &[10, 10, 10, 30, 30, 30]), [10; 3]);
    }

    #[test]
    fn runs_between_those_of_a_generation_join_them() {
        assert_eq!(chosen(THREE, &[10, 10, 30, 10, 30]), [10, 10, 30, 10]);
        assert_eq!(chosen(THREE, &[10, 10, 30, 10, 30, 30]), [30, 10, 30, 30]);
        assert_eq!(chosen(THREE, &[30, 10, 30, 30, 10, 90, 10]), [30, 10, 30, 30]);
        // A merge takes neither more runs nor more bytes than the maximum, nor claimed runs.
        assert_eq!(chosen(THREE, &[10, 30, 90, 10, 30, 10]), []);
        assert_eq!(chosen("chunk=10B,min=3,max=5,large=49B", &[10, 30, 10, 10]), []);
        assert_eq!(chosen("chunk=10B,min=3,max=5,large=60B", &[10, 30, 10, 10]), [10, 30, 10, 10]);
        assert_eq!(chosen(THREE, &[10, -30, 10, 10]), []);
    }

    #[test]
    fn the_oldest_runs_of_a_generation_go_first() {
        assert_eq!(chosen(THREE, &[11, 11, 10, 10, 10, 9, 9]), [10, 10, 10, 9, 9]);
        assert_eq!(chosen(THREE, &[10, -10, 10, 10, 10]), [10; 3]);
        assert_eq!(chosen(THREE, &[10, -10, 10, 10]), []);
    }

    #[test]
    fn no_merge_is_too_large() {
        let limited = "chunk=10B,min=2,max=4,large=35B";
        assert_eq!(chosen(limited, &[10, 10, 10, 10]), [10; 3]);
        assert_eq!(chosen("chunk=10B,min=2,max=4,large=30B", &[10, 10, 10, 10]), [10; 3]);
        assert_eq!(chosen(limited, &[20, 20]), []);
        assert_eq!(chosen(limited, &[10, 10, 20, 20]), [10; 2]);
    }
}
