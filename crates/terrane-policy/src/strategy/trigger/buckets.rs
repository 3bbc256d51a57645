//! `buckets(style=cassandra,min=4,max=32,low=0.5,high=1.5,small=50MiB)`: runs of similar size, as in
//! the size-tiered compaction of Cassandra and ScyllaDB.
//!
//! Runs are put into buckets in the order of their sizes. A run joins a bucket if it holds more than
//! `low` and less than `high` times the bucket's average, or if both are smaller than `small`. A
//! bucket of at least `min` runs is merged, at most `max` runs at a time.
//!
//! | | `cassandra` | `scylladb` |
//! |---|---|---|
//! | first | the bucket with the smallest average | the bucket with the most runs |
//! | without a bucket of `min` runs | nothing | any two runs of one bucket |
//! | a bucket | may grow by ever larger runs | keeps its smallest run above `low` times its average |
//!
//! Both systems merge any tables of a bucket, because each cell has a timestamp. Here the order of
//! runs decides which version is newer, so only adjacent runs of the bucket are merged. While
//! flushes are of similar size, older runs are larger, and this makes no difference. If no bucket
//! has `min` adjacent runs but one has `min` in all, for example because large and small flushes
//! alternate, they are merged together with the runs between them, at the place where these have
//! the fewest bytes. (Options `min_threshold`, `max_threshold`, `bucket_low`, `bucket_high` and
//! `min_sstable_size`. Not here: Cassandra prefers the bucket that is read most.)

use std::cmp::Reverse;

use super::rule::{TriggerInfo, TriggerRule, sized_info, wrong};
use crate::error::ParseError;
use crate::strategy::size_tiered::{
    MergeCause, SizeRatio, SizeTiered, SizedMerge, SizedRun, bytes_of, for_each_setting, spread,
    stretches,
};
use crate::units::{format_bytes, parse_bytes};

/// Merges adjacent runs of similar size, once there are enough of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buckets {
    style: Style,
    least: u32,
    most: u32,
    low: SizeRatio,
    high: SizeRatio,
    small_bytes: u64,
}

/// The system whose rules decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Style {
    Cassandra,
    ScyllaDb,
}

/// Statistics of a bucket's runs.
struct Bucket {
    runs: u64,
    smallest: u64,
    average: u64,
}

static INFO: TriggerInfo = sized_info(
    "buckets",
    "buckets(style=cassandra)",
    &[
        "buckets(min=2,max=4,small=2KiB)",
        "buckets(style=scylladb,min=3,low=0.7,high=1.3,small=4KiB)",
    ],
    &["run-count"],
);

impl TriggerRule for Buckets {
    fn info() -> &'static TriggerInfo {
        &INFO
    }

    fn parse(given: Option<&str>, text: &str) -> Result<Self, ParseError> {
        let mut policy = Self::DEFAULT;
        let set = |key: &str, value: &str| {
            match key {
                "style" => policy.style = Style::parse(value)?,
                "min" => policy.least = value.parse().ok()?,
                "max" => policy.most = value.parse().ok()?,
                "low" => policy.low = SizeRatio::parse(value)?,
                "high" => policy.high = SizeRatio::parse(value)?,
                "small" => policy.small_bytes = parse_bytes(value).ok()?,
                _ => return None,
            }
            Some(())
        };
        let is_read = for_each_setting(given, set).is_some();
        let Self { least, most, low, high, .. } = policy;
        let is_fine = is_read
            && (2..=1000).contains(&least)
            && (least..=1000).contains(&most)
            && low < SizeRatio::ONE
            && high > SizeRatio::ONE;
        is_fine.then_some(policy).ok_or_else(|| {
            wrong(text, "2 to 1000 runs, low below 1 and high above 1: 'buckets(style=cassandra,min=4,max=32,low=0.5,high=1.5,small=50MiB)'")
        })
    }

    fn argument(&self) -> Option<String> {
        let Self { style, least, most, low, high, small_bytes } = self;
        let (style, small) = (style.name(), format_bytes(*small_bytes));
        Some(format!("style={style},min={least},max={most},low={low},high={high},small={small}"))
    }

    fn size_tiered(&self) -> Option<&dyn SizeTiered> {
        Some(self)
    }
}

impl Style {
    fn name(self) -> &'static str {
        match self {
            Self::Cassandra => "cassandra",
            Self::ScyllaDb => "scylladb",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Cassandra, Self::ScyllaDb].into_iter().find(|style| style.name() == text)
    }
}

impl SizeTiered for Buckets {
    fn choose(&self, runs: &[SizedRun]) -> Option<SizedMerge> {
        let buckets = self.sorted(runs);
        let full = self.best(runs, &buckets, self.least);
        match self.style {
            Style::Cassandra => full,
            Style::ScyllaDb => full.or_else(|| self.best(runs, &buckets, 2)),
        }
        .or_else(|| spread(runs, &buckets, (self.least, self.most), u64::MAX))
    }
}

impl Buckets {
    /// The defaults of both systems.
    const DEFAULT: Self = Self {
        style: Style::Cassandra,
        least: 4,
        most: 32,
        low: SizeRatio::of_percent(50),
        high: SizeRatio::of_percent(150),
        small_bytes: 50 << 20,
    };

    /// Returns the bucket number of each run; `None` for runs that a merge has claimed.
    fn sorted(&self, runs: &[SizedRun]) -> Vec<Option<usize>> {
        let mut by_size: Vec<usize> = (0..runs.len()).filter(|at| runs[*at].is_free).collect();
        by_size.sort_by_key(|at| runs[*at].bytes);
        let mut buckets: Vec<Bucket> = Vec::new();
        let mut found = vec![None; runs.len()];
        for at in by_size {
            let size = runs[at].bytes;
            let oldest_seen = match self.style {
                Style::Cassandra => 0,
                Style::ScyllaDb => buckets.len().saturating_sub(1),
            };
            let joined = (oldest_seen..buckets.len())
                .rev()
                .find_map(|number| Some((number, self.joined(&buckets[number], size)?)));
            let (number, bucket) = joined
                .unwrap_or((buckets.len(), Bucket { runs: 1, smallest: size, average: size }));
            match buckets.get_mut(number) {
                Some(known) => *known = bucket,
                None => buckets.push(bucket),
            }
            found[at] = Some(number);
        }
        found
    }

    /// Returns the bucket with one more run of this size, if the run may join it.
    fn joined(&self, bucket: &Bucket, size: u64) -> Option<Bucket> {
        let are_small = size < self.small_bytes && bucket.average < self.small_bytes;
        let are_alike =
            self.low.exceeded_by(size, bucket.average) && self.high.exceeds(size, bucket.average);
        let sum = u128::from(bucket.runs) * u128::from(bucket.average) + u128::from(size);
        let runs = bucket.runs + 1;
        let average = u64::try_from(sum / u128::from(runs)).unwrap_or(u64::MAX);
        let keeps_smallest = self.style == Style::Cassandra
            || size < self.small_bytes
            || self.low.exceeded_by(bucket.smallest, average);
        ((are_small || are_alike) && keeps_smallest).then_some(Bucket { runs, average, ..*bucket })
    }

    /// Returns the runs to merge among the stretches of one bucket that have at least this many runs.
    fn best(&self, runs: &[SizedRun], buckets: &[Option<usize>], least: u32) -> Option<SizedMerge> {
        let alike = stretches(buckets).filter(|stretch| stretch.len() >= least as usize);
        let oldest = alike.map(|one| one.end - one.len().min(self.most as usize)..one.end);
        let average = |at: &std::ops::Range<usize>| bytes_of(&runs[at.clone()]) / at.len() as u64;
        let best = match self.style {
            Style::Cassandra => oldest.min_by_key(average),
            Style::ScyllaDb => oldest.min_by_key(|one| (Reverse(one.len()), average(one))),
        }?;
        let cause = MergeCause::Similar { runs: best.len() as u64, limit: u64::from(least) };
        Some(SizedMerge { runs: best, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::size_tiered::test::{policy, sized, sizes};

    /// Returns the buckets of runs of these sizes, as lists of sizes.
    fn buckets(text: &str, newest_first: &[i64]) -> Vec<Vec<u64>> {
        let runs = sized(newest_first);
        let numbers = policy::<Buckets>(text).sorted(&runs);
        let count = numbers.iter().flatten().max().map_or(0, |most| most + 1);
        let of = |number: usize| {
            let all = runs.iter().zip(&numbers).filter(move |(_, one)| **one == Some(number));
            all.map(|(run, _)| run.bytes).collect()
        };
        (0..count).map(of).collect()
    }

    /// Returns the sizes of the chosen runs, newest first.
    fn chosen(text: &str, newest_first: &[i64]) -> Vec<u64> {
        sizes::<Buckets>(text, newest_first)
    }

    /// The cases are those of Cassandra's own unit test.
    #[test]
    fn runs_of_like_size_share_a_bucket() {
        for style in ["style=cassandra,small=2", "style=scylladb,small=2"] {
            assert_eq!(buckets(style, &[1, 4, 8, 8, 4, 1]), [[1, 1], [4, 4], [8, 8]]);
            assert_eq!(buckets(style, &[3, 8, 3, 8, 8, 3]), [[3, 3, 3], [8, 8, 8]]);
        }
        assert_eq!(buckets("small=10", &[3, 8, 3, 8, 8, 3]).len(), 1);
    }

    #[test]
    fn bounds_of_a_bucket_are_exclusive() {
        assert_eq!(buckets("small=0B", &[149, 100]).len(), 1);
        assert_eq!(buckets("small=0B", &[150, 100]).len(), 2);
        assert_eq!(buckets("small=0B,high=1.6", &[150, 100]).len(), 1);
        // Both the run and the bucket's average must be small.
        assert_eq!(buckets("small=50", &[10, 49]).len(), 1);
        assert_eq!(buckets("small=50", &[10, 50]).len(), 2);
    }

    /// The average rises with every run, until the smallest run is less than half of it.
    #[test]
    fn a_bucket_of_scylladb_does_not_lose_its_smallest_run() {
        let rising = [100, 140, 170, 200, 225, 245, 265, 280];
        assert_eq!(buckets("small=0B", &rising).len(), 1);
        let strict = buckets("style=scylladb,small=0B", &rising);
        assert_eq!((strict[0].len(), &strict[1][..]), (7, &[280][..]));
        // A bucket of small runs may lose its smallest; a run is small if it is below the bound.
        assert_eq!(buckets("style=scylladb,small=280", &rising).len(), 2);
        assert_eq!(buckets("style=scylladb,small=281", &rising).len(), 1);
        assert_eq!(buckets("style=scylladb,small=1000", &[1, 100, 900]).len(), 1);
    }

    #[test]
    fn a_bucket_is_merged_once_it_has_enough_runs() {
        assert_eq!(chosen("small=0B", &[10, 10, 10]), []);
        assert_eq!(chosen("small=0B", &[10, 11, 9, 10]), [10, 11, 9, 10]);
        assert_eq!(chosen("small=0B", &[10, 10, 10, 10, 40, 40]), [10; 4]);
        // The oldest runs of a bucket are merged first.
        assert_eq!(chosen("small=0B,min=2,max=2", &[11, 10, 10, 9]), [10, 9]);
        // Only adjacent runs are merged, and only free ones.
        assert_eq!(chosen("small=0B,min=3", &[10, 10, 40, 10, -10, 10]), [10, 10, 40, 10]);
        assert_eq!(chosen("small=0B,min=2", &[10, -10, 10, 10]), [10, 10]);
        assert_eq!(chosen("small=0B,min=2", &[10, 40, 10, 10, 40, 40, 40]), [10, 10]);
    }

    #[test]
    fn cassandra_takes_the_smallest_runs_and_scylladb_the_most() {
        let sizes = [10, 10, 10, 10, 99, 99, 99, 99, 99];
        assert_eq!(chosen("small=0B", &sizes), [10; 4]);
        assert_eq!(chosen("style=scylladb,small=0B", &sizes), [99; 5]);
        assert_eq!(chosen("style=scylladb,small=0B", &sizes[..8]), [10; 4]);
        // The average decides, not the sum.
        let many = [16, 16, 16, 16, 10, 10, 10, 10, 10, 10, 10, 10];
        assert_eq!(chosen("small=0B", &many), [10; 8]);
    }

    #[test]
    fn scylladb_merges_pairs_if_no_bucket_is_full() {
        assert_eq!(chosen("style=scylladb,small=0B", &[10, 10, 99, 99, 99]), [99; 3]);
        assert_eq!(chosen("style=scylladb,small=0B", &[10, 10, 99]), [10, 10]);
        assert_eq!(chosen("style=scylladb,small=0B", &[10, 30, 99]), []);
    }
}
