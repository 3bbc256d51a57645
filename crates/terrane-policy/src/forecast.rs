//! Predicts what a design will do to a tree, by simulating compactions on shapes alone.
//!
//! [`forecast`] simulates compactions until the tree satisfies a design, and adds up their I/O. It
//! assumes that merged tables keep all input bytes; a real merge drops overwritten and deleted
//! entries and writes less. It only estimates where tables are cut, and which tables move.
//! `terrane/tests/api/forecasts.rs` compares forecasts with the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::compaction::{Compaction, InputGroup, Placement};
use crate::design::Design;
use crate::key_range::KeyRange;
use crate::pick::{PickContext, pick};
use crate::shape::{
    AddedTable, RunId, SeqNo, ShapeEdit, ShapeError, TableInfo, TreeShape, ValueFileId, ValueRef,
};

/// The maximum number of compactions to simulate; a longer forecast is reported as incomplete.
const JOBS_MAX: u64 = 100_000;

/// The work that remains until a tree satisfies a design.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Forecast {
    /// Compactions.
    pub jobs: u64,
    /// Tables that are merged into others.
    pub tables_rewritten: u64,
    /// Tables that move to another level without being rewritten.
    pub tables_moved: u64,
    /// Bytes that compactions read, which is also the maximum that they write again.
    pub bytes_rewritten: u64,
    /// The maximum number of bytes that exist twice at a time, in outputs and in inputs not yet
    /// removed, for the given number of concurrent compactions.
    pub peak_extra_bytes: u64,
    /// The tree before.
    pub before: Amplification,
    /// The tree when everything is done.
    pub after: Amplification,
    /// True if the simulated tree satisfied the design before the maximum number of compactions was
    /// reached.
    pub is_complete: bool,
}

/// What the shape of a tree costs in reads and space.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Amplification {
    /// The number of sorted runs; a short scan reads every run.
    pub runs: u64,
    /// Data blocks that a lookup of a missing key reads on average, by the filters of the design.
    pub blocks_per_missing_key: f64,
    /// The bytes of all runs but the oldest divided by the bytes of the oldest run: an upper bound
    /// on obsolete data.
    pub space: f64,
}

impl Forecast {
    /// Returns the duration of the compactions in seconds, at a rate of this many bytes read and
    /// rewritten per second.
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

/// Forecasts what `input.design` will do to `input.shape`, which followed the design `now` so far,
/// with `at_once` concurrent compactions.
pub fn forecast(input: &PickContext<'_>, now: &Design, at_once: usize) -> Forecast {
    let mut tree = SimulatedTree::of(input.shape.clone(), input.design.table_bytes);
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

/// The work of one compaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CompactionCost {
    /// Tables that are merged into others.
    pub tables_rewritten: u64,
    /// Tables that move without being rewritten.
    pub tables_moved: u64,
    /// Bytes read, which is also the maximum that is written again.
    pub bytes_rewritten: u64,
}

impl CompactionCost {
    /// Returns the work of `job` on `shape`.
    pub fn of(job: &Compaction, shape: &TreeShape) -> Self {
        let mut cost = Self::default();
        for group in job.groups(shape) {
            match group {
                InputGroup::Keep(_) => {}
                InputGroup::Move(_) => cost.tables_moved += 1,
                InputGroup::Merge(tables) => {
                    cost.tables_rewritten += tables.len() as u64;
                    cost.bytes_rewritten +=
                        tables.iter().map(|table| table.size_bytes).sum::<u64>();
                }
            }
        }
        cost
    }
}

/// A tree on which compactions are simulated without data.
#[derive(Debug, Clone)]
pub struct SimulatedTree {
    /// The tree.
    pub shape: TreeShape,
    /// The creation time of new tables.
    pub now_micros: u64,
    /// Tombstones newer than this are kept.
    pub oldest_snapshot: Option<SeqNo>,
    table_bytes: u64,
    next: u64,
}

impl SimulatedTree {
    /// A tree whose merges write tables of `table_bytes`, as far as bounds of inputs allow cuts.
    pub fn of(shape: TreeShape, table_bytes: u64) -> Self {
        let tables = shape.places().map(|place| place.table.id.0.max(place.run.0));
        let next = tables.max().unwrap_or(0).max(1000);
        Self { shape, now_micros: 0, oldest_snapshot: None, table_bytes: table_bytes.max(1), next }
    }

    /// Returns a number that no table and no run has yet.
    pub fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Applies a compaction.
    ///
    /// # Errors
    /// The compaction is unsound: its result breaks an invariant of shapes.
    pub fn carry_out(&mut self, job: &Compaction) -> Result<CompactionCost, ShapeError> {
        let cost = CompactionCost::of(job, &self.shape);
        let run = match job.output.placement {
            Placement::Join(run) => run,
            Placement::NewRun => RunId(self.number()),
        };
        let mut edit = ShapeEdit::default();
        let level = job.output.level;
        for group in job.groups(&self.shape) {
            match group {
                InputGroup::Keep(_) => {}
                InputGroup::Move(table) => {
                    edit.removed.push(table.id);
                    edit.added.push(AddedTable { level, run, table });
                }
                InputGroup::Merge(tables) => {
                    edit.removed.extend(tables.iter().map(|table| table.id));
                    let made = self.merged(job, &tables);
                    edit.added.extend(made.into_iter().map(|table| AddedTable {
                        level,
                        run,
                        table,
                    }));
                }
            }
        }
        self.shape = self.shape.apply(&edit)?;
        Ok(cost)
    }

    /// Splits the hull of `tables` at their bounds. Drops tombstones that have no older data below
    /// them.
    fn merged(&mut self, job: &Compaction, tables: &[Arc<TableInfo>]) -> Vec<Arc<TableInfo>> {
        let Some(hull) = KeyRange::hull_of(tables.iter().map(|table| &table.range)) else {
            return Vec::new();
        };
        let sum = |of: fn(&TableInfo) -> u64| tables.iter().map(|table| of(table)).sum::<u64>();
        let bytes = sum(|table| table.size_bytes);
        let mut cuts: Vec<Arc<[u8]>> =
            tables.iter().map(|table| table.range.start.clone()).collect();
        cuts.sort();
        cuts.dedup();
        cuts.retain(|cut| *cut != hull.start);
        let wanted = usize::try_from(bytes / self.table_bytes).unwrap_or(usize::MAX);
        if wanted < cuts.len() {
            // The cuts are spread evenly; otherwise the last table would span most keys.
            cuts = (1..=wanted).map(|cut| cuts[cut * cuts.len() / (wanted + 1)].clone()).collect();
        }
        let pieces = cuts.len() as u64 + 1;
        let largest_seq = tables.iter().map(|table| table.largest_seq).max().unwrap_or(0);
        let smallest_seq = tables.iter().map(|table| table.smallest_seq).min().unwrap_or(0);
        let is_pinned = self.oldest_snapshot.is_some_and(|oldest| largest_seq > oldest);
        let mut start = hull.start.clone();
        let mut made = Vec::new();
        for (number, end) in cuts.into_iter().map(Some).chain([hull.end]).enumerate() {
            let range = KeyRange { start: start.clone(), end: end.clone() };
            let keeps = is_pinned || !job.is_bottom(&range, &self.shape);
            let mut table = TableInfo::new(self.number(), range, bytes / pieces);
            table.entries = sum(|table| table.entries) / pieces;
            table.created_micros = self.now_micros;
            table.value_refs = part_of_refs(tables, number as u64, pieces);
            (table.smallest_seq, table.largest_seq) = (smallest_seq, largest_seq);
            if keeps && tables.iter().any(|table| table.has_tombstones()) {
                table.tombstones = sum(|table| table.tombstones).div_ceil(pieces);
                table.range_tombstones = sum(|table| table.range_tombstones).div_ceil(pieces);
                let oldest = tables.iter().filter_map(|table| table.oldest_tombstone_micros).min();
                table.oldest_tombstone_micros = oldest;
            }
            made.push(Arc::new(table));
            start = end.unwrap_or(start);
        }
        made
    }
}

/// Returns the references of one of several equal pieces of a merge, which keeps all values.
fn part_of_refs(tables: &[Arc<TableInfo>], piece: u64, pieces: u64) -> Box<[ValueRef]> {
    let mut sums: BTreeMap<ValueFileId, (u64, u64)> = BTreeMap::new();
    for used in tables.iter().flat_map(|table| table.value_refs.iter()) {
        let sum = sums.entry(used.file).or_default();
        *sum = (sum.0 + used.bytes, sum.1 + used.values);
    }
    let part = |sum: u64| sum / pieces + u64::from(piece < sum % pieces);
    let refs = sums.into_iter().map(|(file, (bytes, values))| ValueRef {
        file,
        bytes: part(bytes),
        values: part(values),
    });
    refs.filter(|used| used.bytes > 0).collect()
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

    /// Once, cuts were taken from the first keys on: the last table then spanned all other keys and
    /// overlapped tables that it should not.
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
        let mut played = SimulatedTree::of(shape.clone(), design.table_bytes);
        let job = pick(&PickContext::new(&shape, &design)).unwrap();
        played.carry_out(&job).unwrap();
        let made: Vec<_> = played.shape.tables().map(|table| table.range.clone()).collect();
        assert_eq!(made.len(), 4, "{made:?}");
        assert!(made.last().unwrap().start[..] > b"g"[..], "{made:?}");
    }
}
