//! Predicts what a design will do to a tree, by simulating compactions on shapes alone.
//!
//! [`forecast`] simulates compactions until the tree satisfies a design, and adds up their I/O. It
//! assumes that merged tables keep all input bytes; a real merge drops overwritten and deleted
//! entries and writes less. Where tables are cut and which tables move are only estimates.
//! `terrane-tests/tests/api/forecasts.rs` compares forecasts with the engine.

mod tree;
mod values;

use crate::design::Design;
use crate::pick::{PickContext, pick};
use crate::shape::TreeShape;
pub use tree::{CompactionCost, SimulatedTree};

/// The maximum number of compactions to simulate; a longer forecast is reported as incomplete.
const JOBS_MAX: u64 = 100_000;

/// The work that remains until a tree satisfies a design.
#[derive(Debug, Clone, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Forecast {
    /// The number of compactions.
    pub jobs: u64,
    /// Tables that are merged into others.
    pub tables_rewritten: u64,
    /// Tables that move to another level without being rewritten.
    pub tables_moved: u64,
    /// Bytes that compactions read, which is also the maximum that they write.
    pub bytes_rewritten: u64,
    /// The maximum number of bytes that exist twice at any time, in outputs and in inputs not yet
    /// removed, for the given number of concurrent compactions.
    pub peak_extra_bytes: u64,
    /// The tree before the compactions.
    pub before: Amplification,
    /// The tree after the compactions.
    pub after: Amplification,
    /// True if the simulated tree satisfied the design before the maximum number of compactions was
    /// reached.
    pub is_complete: bool,
}

/// The cost of a tree's shape in reads and space.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Amplification {
    /// The number of sorted runs; a short scan reads every run.
    pub runs: u64,
    /// Data blocks that a lookup of a missing key reads on average, given the filters of the
    /// design.
    pub blocks_per_missing_key: f64,
    /// The bytes of all runs but the oldest divided by the bytes of the oldest run: an upper bound
    /// on obsolete data.
    pub space: f64,
}

impl Forecast {
    /// Returns the duration of the compactions in seconds, at a rate of `bytes_per_second` read and
    /// rewritten.
    pub fn seconds_at(&self, bytes_per_second: f64) -> f64 {
        self.bytes_rewritten as f64 / bytes_per_second.max(1.0)
    }
}

impl Amplification {
    /// Returns the costs of a shape if its tables have the filters of `design`.
    pub fn of(shape: &TreeShape, design: &Design) -> Self {
        let last = shape.last_level();
        let rates = shape.levels.iter().enumerate().map(|(level, content)| {
            let bits = design.filter_bits_at(level, last);
            content.runs.len() as f64 * crate::allocation::false_positive_rate(bits)
        });
        let oldest = shape.level(last).runs.last().map_or(0, crate::shape::Run::size_bytes);
        Self {
            runs: shape.run_count() as u64,
            blocks_per_missing_key: rates.sum(),
            space: (shape.size_bytes() - oldest) as f64 / oldest.max(1) as f64,
        }
    }
}

/// Forecasts what `input.design` will do to `input.shape`, which has followed the design `now` so
/// far, with `at_once` concurrent compactions.
pub fn forecast(input: &PickContext<'_>, now: &Design, at_once: usize) -> Forecast {
    let mut tree = SimulatedTree::of(input.shape.clone(), input.design);
    tree.now_micros = input.now_micros;
    tree.oldest_snapshot = input.oldest_snapshot;
    let mut cursors = input.cursors.clone();
    // The largest compactions, in descending order of size.
    let mut largest = vec![0; at_once.max(1)];
    let mut forecast = Forecast {
        jobs: 0,
        tables_rewritten: 0,
        tables_moved: 0,
        bytes_rewritten: 0,
        peak_extra_bytes: 0,
        before: Amplification::of(input.shape, now),
        after: Amplification::of(input.shape, input.design),
        is_complete: false,
    };
    while forecast.jobs < JOBS_MAX {
        let next =
            PickContext { shape: &tree.shape, in_progress: &[], cursors: &cursors, ..*input };
        let Some(job) = pick(&next) else {
            forecast.is_complete = true;
            break;
        };
        cursors.advance(&job);
        let Ok(cost) = tree.carry_out(&job) else { break };
        forecast.jobs += 1;
        forecast.tables_rewritten += cost.tables_rewritten;
        forecast.tables_moved += cost.tables_moved;
        forecast.bytes_rewritten += cost.bytes_rewritten;
        if let Some(least) = largest.last_mut().filter(|least| **least < cost.bytes_rewritten) {
            *least = cost.bytes_rewritten;
            largest.sort_unstable_by(|a, b| b.cmp(a));
        }
    }
    forecast.peak_extra_bytes = largest.iter().sum();
    forecast.after = Amplification::of(&tree.shape, input.design);
    forecast
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_to_leveling_is_predicted() {
        let shape: TreeShape =
            "L1 r3: 3=a..=z:30MiB\nL1 r2: 2=a..=z:30MiB\nL2 r1: 1=a..=z:600MiB".parse().unwrap();
        let tiering: Design = "tiering".parse().unwrap();
        let leveling: Design = "leveling; base=100MiB".parse().unwrap();
        let told = forecast(&PickContext::new(&shape, &leveling), &tiering, 1);
        assert_eq!((told.jobs, told.tables_rewritten, told.tables_moved), (1, 2, 0));
        assert_eq!(told.bytes_rewritten, 60 << 20);
        assert_eq!(told.peak_extra_bytes, 60 << 20);
        assert_eq!((told.before.runs, told.after.runs), (3, 2));
        assert!(told.after.blocks_per_missing_key < told.before.blocks_per_missing_key);
        assert!((told.after.space - 0.1).abs() < 1e-9 && told.is_complete);
        let nothing = forecast(&PickContext::new(&shape, &tiering), &tiering, 1);
        assert_eq!((nothing.jobs, nothing.bytes_rewritten), (0, 0));
    }

    #[test]
    fn concurrent_compactions_add_up_their_space() {
        let shape: TreeShape = "L1 r2: 2=a..=b:30MiB 3=c..=d:20MiB 4=e..=f:10MiB\n\
                                L2 r1: 5=a..=b:60MiB 6=c..=d:50MiB 7=e..=f:90MiB"
            .parse()
            .unwrap();
        let design: Design = "leveling; base=1MiB; granularity=file".parse().unwrap();
        let peak = |at_once| {
            let told = forecast(&PickContext::new(&shape, &design), &design, at_once);
            assert!(told.jobs >= 3, "{told:?}");
            told.peak_extra_bytes
        };
        assert!(peak(1) >= 90 << 20, "{}", peak(1));
        assert!(peak(2) > peak(1) && peak(2) <= 2 * peak(1) && peak(3) > peak(2));
    }

    /// An earlier version placed all cuts among the first keys, so the last table spanned all other
    /// keys and overlapped tables that it should not.
    #[test]
    fn tables_of_a_large_merge_share_its_keys_evenly() {
        // Each table of one run overlaps two of the other.
        let run = |id: usize, from: char, to: char| {
            let keys = ('b'..='j').zip('c'..='k').enumerate();
            let tables = keys.map(|(at, (key, next))| {
                let end = if from == 'a' { key } else { next };
                format!(" {}={key}{from}..={end}{to}:10MiB", id + at)
            });
            format!("L0 r{id}:{}", tables.collect::<String>())
        };
        let runs = format!("{}\n{}", run(40, 'm', 'l'), run(20, 'a', 'z'));
        let shape: TreeShape = runs.parse().unwrap();
        let design: Design = "leveling; base=1GiB; table=60MiB; granularity=level".parse().unwrap();
        let mut played = SimulatedTree::of(shape.clone(), &design);
        let job = pick(&PickContext::new(&shape, &design)).unwrap();
        played.carry_out(&job).unwrap();
        let made: Vec<_> = played.shape.tables().map(|table| table.range.clone()).collect();
        assert_eq!(made.len(), 4, "{made:?}");
        assert!(made.last().unwrap().start[..] > b"g"[..], "{made:?}");
    }
}
