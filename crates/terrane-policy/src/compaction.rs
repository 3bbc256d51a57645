//! The compaction that a strategy picks, with its inputs, its output and its reason.

mod reason;

use std::fmt;
use std::sync::Arc;

use crate::key_range::{KeyRange, escape};
use crate::recency::is_newer_throughout;
use crate::shape::{Run, RunId, SeqNo, TableId, TableInfo, TreeShape, ValueFileId};
pub use reason::{CollectionCause, Reason};

/// The table number of the memtable in a merging flush. Real table numbers count up from 1 and never
/// reach it.
pub const MEMTABLE: TableId = TableId(1 << 63);

/// The tables that a compaction takes from one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Index of the level.
    pub level: usize,
    /// The run.
    pub run: RunId,
    /// The tables, in key order.
    pub tables: Vec<Arc<TableInfo>>,
}

impl Input {
    /// Returns true if this input is the memtable of a flush.
    pub fn is_memtable(&self) -> bool {
        self.tables.iter().any(|table| table.id == MEMTABLE)
    }
}

/// Where the result of a compaction goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Index of the level.
    pub level: usize,
    /// The run of the level that takes the result.
    pub placement: Placement,
}

/// The run that takes the result of a compaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// A new run that is newer than all existing runs of the level.
    NewRun,
    /// An existing run, whose overlapping tables are among the inputs.
    Join(RunId),
}

/// A job that rewrites or moves tables.
///
/// Inputs are listed newest first. [`crate::soundness`] checks that the result may replace them.
#[derive(Debug, Clone, PartialEq)]
pub struct Compaction {
    /// The tables that the job takes.
    pub inputs: Vec<Input>,
    /// Where the result of the job goes.
    pub output: Output,
    /// Value files whose values the job copies to new value files, in ascending order; the job replaces
    /// all pointers from its inputs into these files.
    pub relocated: Vec<ValueFileId>,
    /// Why the job was picked.
    pub reason: Reason,
}

/// Inputs of a compaction that overlap, directly or through other inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputGroup {
    /// One table that overlaps no other input and is already in the output run, where it stays.
    Keep(TableId),
    /// One table that overlaps no other input; the table moves to the output run without being
    /// read.
    Move(Arc<TableInfo>),
    /// Tables to merge, in no particular order.
    Merge(Vec<Arc<TableInfo>>),
}

impl Compaction {
    /// Returns all input tables.
    pub fn tables(&self) -> impl Iterator<Item = &Arc<TableInfo>> {
        self.inputs.iter().flat_map(|input| &input.tables)
    }

    /// Returns the smallest range that covers all inputs.
    pub fn range(&self) -> KeyRange {
        KeyRange::hull_of(self.tables().map(|table| &table.range)).unwrap_or_else(KeyRange::all)
    }

    /// Returns the bytes of all inputs.
    pub fn input_bytes(&self) -> u64 {
        self.tables().map(|table| table.size_bytes).sum()
    }

    /// Returns the shallowest level with an input.
    pub fn from_level(&self) -> usize {
        self.inputs.iter().map(|input| input.level).min().unwrap_or(self.output.level)
    }

    /// Returns true if the two compactions must not run concurrently.
    ///
    /// Two jobs are independent if they share no key, or if all inputs and the output of one are
    /// newer than those of the other. Thus a merge into a level may run concurrently with a merge
    /// out of that level that claimed its runs earlier.
    pub fn conflicts_with(&self, other: &Compaction) -> bool {
        self.range().overlaps(&other.range())
            && !is_newer_throughout(self, other)
            && !is_newer_throughout(other, self)
    }

    /// Splits the inputs into groups that share no keys; each can be processed on its own.
    ///
    /// A group of a single table moves unchanged, unless it holds tombstones and no older table can hold
    /// keys that they delete: then it is rewritten to drop them. A table with pointers to relocated
    /// values is also rewritten. If the compaction must pass every value to a filter, even tables that
    /// would stay in their run are rewritten. A join of small tables is one group.
    pub fn groups(&self, shape: &TreeShape) -> Vec<InputGroup> {
        let mut tables: Vec<(&Arc<TableInfo>, bool)> = Vec::new();
        for input in &self.inputs {
            let in_place = input.level == self.output.level
                && self.output.placement == Placement::Join(input.run);
            tables.extend(input.tables.iter().map(|table| (table, in_place)));
        }
        if self.reason.joins() {
            return vec![InputGroup::Merge(self.tables().cloned().collect())];
        }
        tables.sort_by(|a, b| a.0.range.start.cmp(&b.0.range.start));
        let mut groups = Vec::new();
        let mut rest = &tables[..];
        while let Some((first, _)) = rest.first() {
            let mut hull = first.range.clone();
            let mut count = 1;
            while let Some((next, _)) = rest.get(count) {
                if !next.range.starts_before_end_of(&hull) {
                    break;
                }
                hull = hull.hull(&next.range);
                count += 1;
            }
            groups.push(self.group(&rest[..count], shape));
            rest = &rest[count..];
        }
        groups
    }

    fn group(&self, tables: &[(&Arc<TableInfo>, bool)], shape: &TreeShape) -> InputGroup {
        if let [(table, in_place)] = tables
            && !table.refers_to(&self.relocated)
        {
            let purges = table.has_tombstones() && self.is_bottom(&table.range, shape);
            // A job with a purging reason drops expired entries at any depth.
            let is_rewritten = purges || table.expiry.is_some();
            let is_rewritten = is_rewritten && self.reason.purges() || self.reason.rewrites();
            if *in_place && !is_rewritten {
                return InputGroup::Keep(table.id);
            }
            if !purges && !*in_place && !self.reason.rewrites() {
                return InputGroup::Move(Arc::clone(table));
            }
        }
        InputGroup::Merge(tables.iter().map(|(table, _)| Arc::clone(table)).collect())
    }

    /// Returns true if no table older than the output can hold keys of `range`, so that tombstones
    /// in it have nothing left to delete.
    pub fn is_bottom(&self, range: &KeyRange, shape: &TreeShape) -> bool {
        self.runs_below(shape)
            .all(|run| run.overlapping(range).iter().all(|table| self.takes(table.id)))
    }

    /// Returns the tables that are older than the output and not inputs, run by run in key order: the
    /// tables with keys that tombstones in the output may still have to delete.
    pub fn older_tables(&self, shape: &TreeShape) -> Vec<Vec<Arc<TableInfo>>> {
        let range = self.range();
        self.runs_below(shape)
            .map(|run| {
                let older = run.overlapping(&range).iter().filter(|table| !self.takes(table.id));
                older.cloned().collect::<Vec<_>>()
            })
            .filter(|tables| !tables.is_empty())
            .collect()
    }

    /// Returns the runs that hold older data than the output, including the run that the output
    /// joins.
    fn runs_below<'a>(&self, shape: &'a TreeShape) -> impl Iterator<Item = &'a Run> {
        let Output { level: output, placement } = self.output;
        shape.levels.iter().enumerate().skip(output).flat_map(move |(index, level)| {
            level.runs.iter().filter(move |run| {
                index > output
                    || match placement {
                        Placement::NewRun => true,
                        Placement::Join(id) => run.id <= id,
                    }
            })
        })
    }

    /// Returns true if `table` is an input.
    pub fn takes(&self, table: TableId) -> bool {
        self.tables().any(|input| input.id == table)
    }

    /// Returns the largest sequence number of any input.
    pub fn largest_seq(&self) -> SeqNo {
        self.tables().map(|table| table.largest_seq).max().unwrap_or(0)
    }
}

impl fmt::Display for Compaction {
    /// For example `L1 r4: 7 + L2 r2: 3 5 -> L2 r2, from a (run-count: …)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, input) in self.inputs.iter().enumerate() {
            let separator = if index == 0 { "" } else { " + " };
            if input.is_memtable() {
                write!(f, "{separator}memtable")?;
                continue;
            }
            write!(f, "{separator}L{} r{}:", input.level, input.run)?;
            for table in &input.tables {
                write!(f, " {}", table.id)?;
            }
        }
        match self.output.placement {
            Placement::NewRun => write!(f, " -> L{} new run", self.output.level)?,
            Placement::Join(run) => write!(f, " -> L{} r{run}", self.output.level)?,
        }
        let range = self.range();
        write!(f, ", from {} ({})", escape(&range.start), self.reason)?;
        if self.relocated.is_empty() {
            return Ok(());
        }
        f.write_str(", relocating values of")?;
        self.relocated.iter().try_for_each(|file| write!(f, " {file}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compaction(shape: &TreeShape, ids: &[u64], output: Output) -> Compaction {
        let mut inputs: Vec<Input> = Vec::new();
        for place in shape.places().filter(|place| ids.contains(&place.table.id.0)) {
            match inputs.last_mut() {
                Some(input) if input.run == place.run => input.tables.push(place.table.clone()),
                _ => inputs.push(Input {
                    level: place.level,
                    run: place.run,
                    tables: vec![place.table.clone()],
                }),
            }
        }
        Compaction {
            inputs,
            output,
            relocated: Vec::new(),
            reason: Reason::Repair { level: 0, runs: 2, allowed: 1 },
        }
    }

    #[test]
    fn inputs_without_shared_keys_form_separate_groups() {
        let shape: TreeShape = "L0 r3: 1=a..=c:1 2=p..=q:1\n\
                                L0 r2: 3=c..=e:1\n\
                                L1 r1: 4=e..=f:1 5=g..=h:1 6=x..=z:1"
            .parse()
            .unwrap();
        let output = Output { level: 1, placement: Placement::Join(RunId(1)) };
        let groups = compaction(&shape, &[1, 2, 3, 4, 5], output).groups(&shape);
        let text: Vec<String> = groups
            .iter()
            .map(|group| match group {
                InputGroup::Keep(id) => format!("keep {id}"),
                InputGroup::Move(table) => format!("move {}", table.id),
                InputGroup::Merge(tables) => {
                    tables.iter().fold("merge".into(), |text, table| format!("{text} {}", table.id))
                }
            })
            .collect();
        assert_eq!(text, ["merge 1 3 4", "keep 5", "move 2"]);
    }

    #[test]
    fn lone_tables_with_tombstones_are_rewritten_at_the_bottom_only() {
        let shape: TreeShape =
            "L0 r3: 1=a..=c:1,tombstones=1 2=p..=q:1,tombstones=1\nL2 r1: 3=b..=d:1"
                .parse()
                .unwrap();
        let output = Output { level: 1, placement: Placement::NewRun };
        let job = compaction(&shape, &[1, 2], output);
        let groups = job.groups(&shape);
        assert!(matches!(&groups[0], InputGroup::Move(table) if table.id.0 == 1));
        assert!(matches!(&groups[1], InputGroup::Merge(tables) if tables[0].id.0 == 2));
    }

    /// A table that stays in its run is rewritten only to drop tombstones, and only if the reason asks
    /// for it.
    #[test]
    fn tables_in_their_output_run_stay_unless_the_reason_drops_their_tombstones() {
        let shape: TreeShape = "L1 r1: 1=a..=c:1 2=p..=q:1,tombstones=1".parse().unwrap();
        let output = Output { level: 1, placement: Placement::Join(RunId(1)) };
        let kept = |ids: &[u64], reason: Reason| {
            let groups = Compaction { reason, ..compaction(&shape, ids, output) }.groups(&shape);
            matches!(groups[..], [InputGroup::Keep(_)])
        };
        let repair = Reason::Repair { level: 1, runs: 2, allowed: 1 };
        assert!(kept(&[1], repair) && kept(&[2], repair));
        let manual = Reason::Manual { level: 1, rewrites: false };
        assert!(kept(&[1], manual) && !kept(&[2], manual));
        assert!(!kept(&[1], Reason::Manual { level: 1, rewrites: true }));
    }

    /// A rewrite of the last level includes tables that overlap no other input.
    #[test]
    fn tables_that_change_their_run_move_unless_they_are_to_be_rewritten() {
        let shape: TreeShape = "L1 r2: 2=p..=q:1\nL1 r1: 1=a..=c:1".parse().unwrap();
        let output = Output { level: 1, placement: Placement::Join(RunId(1)) };
        let groups = |rewrites| {
            let reason = Reason::Manual { level: 1, rewrites };
            Compaction { reason, ..compaction(&shape, &[1, 2], output) }.groups(&shape)
        };
        assert!(matches!(groups(false)[..], [InputGroup::Keep(_), InputGroup::Move(_)]));
        assert!(matches!(groups(true)[..], [InputGroup::Merge(_), InputGroup::Merge(_)]));
    }

    /// The rest of the joined run, older runs of that level, and deeper levels are older than the output,
    /// whatever their run numbers. If tombstones were dropped above such a table, the entries that they
    /// delete would come back.
    #[test]
    fn tombstones_have_nothing_left_to_delete_if_all_older_tables_are_inputs() {
        let shape: TreeShape = "L0 r9: 9=d..=z:1,seq=4-9\n\
                                L1 r6: 6=a..=c:1\n\
                                L1 r5: 5=d..=f:1,seq=1-3 55=g..=h:1\n\
                                L1 r4: 4=k..=l:1\n\
                                L2 r8: 3=p..=q:1 33=u..=v:1\n\
                                L2 r7: 7=a..=b:1"
            .parse()
            .unwrap();
        let job = |placement| compaction(&shape, &[9, 5], Output { level: 1, placement });
        let at_bottom = |placement, first: &[u8], last: &[u8]| {
            job(placement).is_bottom(&KeyRange::inclusive(first, last), &shape)
        };
        let joined = Placement::Join(RunId(5));
        assert!(at_bottom(joined, b"c", b"f"), "a newer run and an input");
        assert!(!at_bottom(joined, b"g", b"h"), "the rest of the joined run");
        assert!(!at_bottom(joined, b"k", b"l"), "an older run");
        assert!(!at_bottom(joined, b"p", b"q"), "a deeper level");
        assert!(at_bottom(joined, b"r", b"t"), "a gap");
        assert!(!at_bottom(Placement::NewRun, b"c", b"c"), "all runs are older than a new one");
        let older = job(joined).older_tables(&shape);
        let ids = |tables: &Vec<Arc<TableInfo>>| tables.iter().map(|one| one.id.0).collect();
        let older: Vec<Vec<u64>> = older.iter().map(ids).collect();
        assert_eq!(older, [vec![55], vec![4], vec![3, 33]]);
        assert_eq!(job(joined).largest_seq(), 9);
    }

    #[test]
    fn jobs_conflict_if_they_share_levels_and_keys() {
        let shape: TreeShape =
            "L1 r3: 1=a..=c:1 2=p..=q:1\nL2 r2: 3=a..=d:1 4=p..=z:1\nL3 r1: 5=a..=b:1"
                .parse()
                .unwrap();
        let to = |level| Output { level, placement: Placement::NewRun };
        let left = compaction(&shape, &[1, 3], to(2));
        let right = compaction(&shape, &[2, 4], to(2));
        let below = compaction(&shape, &[5], to(4));
        assert!(!left.conflicts_with(&right));
        assert!(!left.conflicts_with(&below));
        assert!(left.conflicts_with(&left));
    }

    #[test]
    fn a_merge_into_a_level_may_run_beside_one_that_took_its_runs() {
        let shape: TreeShape =
            "L0 r4: 1=a..=z:1\nL1 r3: 2=a..=z:1\nL2 r2: 3=a..=z:1".parse().unwrap();
        let to = |level, placement| Output { level, placement };
        let down = compaction(&shape, &[2, 3], to(2, Placement::Join(RunId(2))));
        let behind = compaction(&shape, &[1], to(1, Placement::NewRun));
        assert!(!behind.conflicts_with(&down) && !down.conflicts_with(&behind));
        let into = compaction(&shape, &[1], to(1, Placement::Join(RunId(3))));
        assert!(into.conflicts_with(&down), "the run that it joins may be gone when it ends");
        let both_new = compaction(&shape, &[2], to(2, Placement::NewRun));
        let other = compaction(&shape, &[1], to(2, Placement::NewRun));
        assert!(
            both_new.conflicts_with(&other),
            "the order of the two new runs would be undefined"
        );
    }
}
