//! The paper's sizes (§5), scaled down; its strategies; and the keys.

use anyhow::Result;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use terrane_workload::Distribution;
use terrane_workload::distribution::IndexChooser;

/// The paper's entries of 128 bytes with keys of 4.
const ENTRIES: f64 = 10e6;
/// The paper's buffer, and its block cache.
const BUFFER_BYTES: f64 = (8 << 20) as f64;
const BUFFER_BYTES_MIN: u64 = 4 << 10;
/// The paper's pages. A buffer has 512 of them.
const PAGE_BYTES: f64 = (16 << 10) as f64;
/// Direct I/O reads whole sectors, and smaller pages would be mostly header.
const PAGE_BYTES_MIN: u32 = 4 << 10;
pub(super) const VALUE_BYTES: usize = 124;
pub(super) const ENTRY_BYTES: u64 = 128;

/// The minimum number of entries in a tree.
const ENTRIES_MIN: usize = 2000;
/// Runs at smaller scales are trials.
const TRIAL_SCALE: f64 = 0.0015;
/// The minimum number of entries fills this buffer eight times.
const TRIAL_BUFFER_BYTES: u64 = 32 << 10;
/// The maximum number of entries in a tree: a gibibyte, of which merging makes a second copy.
const ENTRIES_MAX: usize = 10_000_000;
/// The maximum total number of entries in loads that run concurrently.
const ENTRIES_AT_ONCE: usize = 10_000_000;

/// The strategies of Table 2 except those for deletes, which behave as `lo+1` when nothing is
/// deleted (§5), and textbook tiering.
pub(super) const WITHOUT_DELETES: &[&str] =
    &["full", "lo+1", "lo+2", "rr", "cold", "old", "tier", "tier-levels"];
/// Every strategy: the nine of Table 2 with the deadlines of TSA, the tenth of the journal version,
/// textbook tiering, and Full with a first level that is full at two runs.
pub(super) const ALL: &[&str] = &[
    "full",
    "lo+1",
    "lo+2",
    "rr",
    "cold",
    "old",
    "tsd",
    "tsa50",
    "tier",
    "1-lvl",
    "tier-levels",
    "full-2",
];
/// The strategies for deletes, and the strategies in [`WITHOUT_DELETES`].
pub(super) const WITH_DELETES: &[&str] = &[
    "full",
    "lo+1",
    "lo+2",
    "rr",
    "cold",
    "old",
    "tsd",
    "tsd12",
    "tsa25",
    "tsa33",
    "tsa50",
    "tier",
    "tier-levels",
];
/// One strategy of each kind, for ablations.
pub(super) const OF_EACH_KIND: &[&str] = &["full", "lo+1", "old", "tier"];

/// The sizes of a run.
#[derive(Debug, Clone, Copy)]
pub(super) struct CompactionSizes {
    /// The share of the paper's sizes, at most 1.
    pub(super) scale: f64,
    pub(super) rounds: usize,
    pub(super) seed: u64,
}

impl CompactionSizes {
    /// Returns these sizes with a scale of at most `scale`.
    pub(super) fn at_most(self, scale: f64) -> Self {
        Self { scale: self.scale.min(scale), ..self }
    }

    /// Returns true if the run is so small that it only shows that everything works: it has trees
    /// of the minimum size, fewer strategies, and two values of each axis.
    pub(super) fn is_trial(&self) -> bool {
        self.scale < TRIAL_SCALE
    }

    /// Returns the strategies to run.
    pub(super) fn strategies(&self, all: &'static [&'static str]) -> &'static [&'static str] {
        if self.is_trial() { OF_EACH_KIND } else { all }
    }

    /// Returns a number of reads, fewer in a trial.
    pub(super) fn reads(&self, count: usize) -> usize {
        if self.is_trial() { count.div_ceil(10) } else { count }
    }

    pub(super) fn entries(&self) -> usize {
        if self.is_trial() { ENTRIES_MIN } else { self.share_of(ENTRIES) }
    }

    /// Returns the scaled number of entries, within the limits of a run.
    pub(super) fn share_of(&self, entries: f64) -> usize {
        ((entries * self.scale) as usize).clamp(ENTRIES_MIN, ENTRIES_MAX)
    }

    /// Returns true if a tree of the scaled number of entries is within the limits of a run.
    pub(super) fn can_hold(&self, entries: f64) -> bool {
        entries * self.scale <= ENTRIES_MAX as f64
    }

    /// Returns the number of loads of `entries` entries that may run concurrently.
    pub(super) fn workers(entries: usize) -> usize {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (ENTRIES_AT_ONCE / (2 * entries).max(1)).clamp(1, processors)
    }

    pub(super) fn buffer_bytes(&self) -> u64 {
        if self.is_trial() {
            return TRIAL_BUFFER_BYTES;
        }
        ((BUFFER_BYTES * self.scale) as u64).max(BUFFER_BYTES_MIN)
    }

    /// Returns the size of the block cache, which equals the buffer.
    pub(super) fn cache_bytes(&self) -> u64 {
        self.buffer_bytes()
    }

    /// Returns the power of two below the scaled size of a page.
    pub(super) fn page_bytes(&self) -> u32 {
        let scaled = PAGE_BYTES * self.scale.min(1.0);
        (1 << (scaled.max(1.0) as u32).ilog2()).max(PAGE_BYTES_MIN)
    }

    pub(super) fn random(&self, salt: u64) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::seed_from_u64(self.seed ^ (salt << 32))
    }
}

/// Distinct keys, in the order of their insertion and in ascending order.
pub(super) struct KeySet {
    pub(super) inserted: Vec<u32>,
    pub(super) sorted: Vec<u32>,
}

impl KeySet {
    /// Draws `count` distinct keys of 32 bits from a distribution over all of them.
    pub(super) fn new(sizes: &CompactionSizes, distribution: Distribution, count: usize) -> Self {
        let mut random = sizes.random(1);
        // Ranks are not scattered over the key space: skewed keys are neighbours, as in the paper (O13).
        let zipf = match distribution {
            Distribution::Zipf { theta } => Some(terrane_workload::zipf::Zipf::new(1 << 32, theta)),
            _ => None,
        };
        let mut chooser = IndexChooser::new(distribution, 1 << 32, 0);
        let mut seen = std::collections::HashSet::with_capacity(count);
        let mut inserted = Vec::with_capacity(count);
        while inserted.len() < count {
            let draw = match &zipf {
                Some(zipf) => zipf.draw(&mut random),
                None => chooser.choose(&mut random),
            };
            let key = u32::try_from(draw).unwrap_or(u32::MAX);
            if seen.insert(key) {
                inserted.push(key);
            }
        }
        let mut sorted = inserted.clone();
        sorted.sort_unstable();
        Self { inserted, sorted }
    }

    /// Returns a key outside the set.
    pub(super) fn missing(&self, random: &mut Xoshiro256PlusPlus) -> u32 {
        loop {
            let key = (random.next_u64() >> 32) as u32;
            if self.sorted.binary_search(&key).is_err() {
                return key;
            }
        }
    }
}

/// Returns a random number below `count`.
pub(super) fn below(random: &mut Xoshiro256PlusPlus, count: usize) -> usize {
    ((u128::from(random.next_u64()) * count as u128) >> 64) as usize
}

/// Runs every job and returns the outcomes in the order of the jobs, several at a time.
pub(super) fn in_parallel<Job: Send, Outcome: Send>(
    workers: usize,
    jobs: Vec<Job>,
    run: impl Fn(Job) -> Result<Outcome> + Sync,
) -> Result<Vec<Outcome>> {
    let queue = std::sync::Mutex::new(jobs.into_iter().enumerate());
    let next = || queue.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
    let work = || {
        let mut done = Vec::new();
        while let Some((number, job)) = next() {
            done.push((number, run(job)?));
        }
        Ok(done)
    };
    let outcomes: Result<Vec<_>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| match worker.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        joined.collect()
    });
    let mut outcomes: Vec<(usize, Outcome)> = outcomes?.into_iter().flatten().collect();
    outcomes.sort_by_key(|(number, _)| *number);
    Ok(outcomes.into_iter().map(|(_, outcome)| outcome).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(scale: f64) -> CompactionSizes {
        CompactionSizes { scale, rounds: 1, seed: 1 }
    }

    #[test]
    fn scale_1_is_the_paper() {
        let paper = sizes(1.0);
        assert_eq!(paper.entries(), 10_000_000);
        assert_eq!(paper.buffer_bytes(), 8 << 20);
        assert_eq!(paper.buffer_bytes() / u64::from(paper.page_bytes()), 512);
        let quarter = sizes(0.25);
        assert_eq!(quarter.entries(), 2_500_000);
        assert_eq!(quarter.buffer_bytes() / u64::from(quarter.page_bytes()), 512);
        assert_eq!(sizes(0.01).page_bytes(), 4096);
    }

    #[test]
    fn trees_are_bounded_at_any_scale() {
        assert!(!sizes(1.0).can_hold(f64::from(1 << 24)));
        assert!(sizes(0.1).can_hold(f64::from(1 << 26)));
        assert_eq!(CompactionSizes::workers(ENTRIES_MAX), 1);
    }

    #[test]
    fn outcomes_keep_the_order_of_the_jobs() {
        let doubled = in_parallel(3, (0..100).collect(), |number: u32| Ok(2 * number)).unwrap();
        assert_eq!(doubled, (0..100).map(|number| 2 * number).collect::<Vec<_>>());
        let failed = in_parallel(3, vec![1, 2, 3], |number| match number {
            2 => anyhow::bail!("no"),
            _ => Ok(number),
        });
        assert_eq!(failed.unwrap_err().to_string(), "no");
    }
}
