//! Where an ingest puts its tables.
//!
//! The entries of an ingest are newer than everything in the tree when it is added. A reader searches
//! from new to old, so a table of the ingest may be placed only below runs with which it shares no key.
//! Each table goes to the deepest such level. Compactions would eventually move it there unchanged, so
//! placing it there at once saves rewriting it.
//!
//! 1. A table joins the newest run of its level if they share no key. Where a level may hold several
//!    runs, the tables that share keys with the newest one form a new run.
//! 2. No table is placed where a job in progress claims tables or may write keys of the same range.
//!    A new run in level 0 is always possible, as for a flush.
//! 3. The deepest level is the last one of the tree, or one that holds the ingest within its capacity.
//!    Under a size-tiered policy the ingest is a new run of level 0.

use std::sync::Arc;

use crate::compaction::{Compaction, Input, Output, Placement, Reason};
use crate::design::Design;
use crate::shape::{RunId, TableInfo, TreeShape};

/// The deepest level that an ingest may create.
const LEVEL_MAX: usize = 39;

/// Tables of an ingest that go to the same run.
#[derive(Debug, Clone, PartialEq)]
pub struct IngestedRun {
    /// Index of the level.
    pub level: usize,
    /// The run of the level.
    pub placement: Placement,
    /// The tables in key order.
    pub tables: Vec<Arc<TableInfo>>,
}

impl IngestedRun {
    /// Returns a job that moves the tables from above level 0 to their place. Jobs that conflict with it
    /// must not begin before the tables are in place.
    pub fn claim(&self) -> Compaction {
        claim(self.level, self.placement, &self.tables)
    }
}

fn claim(level: usize, placement: Placement, tables: &[Arc<TableInfo>]) -> Compaction {
    let inputs = vec![Input { level: 0, run: RunId(u64::MAX), tables: tables.to_vec() }];
    let output = Output { level, placement };
    Compaction { inputs, output, relocated: Vec::new(), reason: Reason::Flush }
}

/// Decides where the tables of an ingest go. They are in key order and do not overlap. `in_progress` are
/// the running jobs of the tree.
pub fn place(
    shape: &TreeShape,
    design: &Design,
    in_progress: &[Compaction],
    tables: &[Arc<TableInfo>],
) -> Vec<IngestedRun> {
    let bytes = tables.iter().map(|table| table.size_bytes).sum();
    let depth = depth(shape, design, bytes);
    let mut runs: Vec<IngestedRun> = Vec::new();
    for table in tables {
        let (level, placement) = place_of(shape, design, in_progress, depth, table);
        let table = Arc::clone(table);
        let same = |run: &&mut IngestedRun| run.level == level && run.placement == placement;
        match runs.iter_mut().find(same) {
            Some(run) => run.tables.push(table),
            None => runs.push(IngestedRun { level, placement, tables: vec![table] }),
        }
    }
    runs
}

/// Returns the deepest level for an ingest of this size.
pub fn depth(shape: &TreeShape, design: &Design, bytes: u64) -> usize {
    if design.strategy.size_tiered().is_some() {
        return 0;
    }
    let last = shape.last_level();
    let holds = |level: &usize| {
        let present = shape.level(*level).size_bytes();
        design.capacity_bytes(*level, *level) >= present.saturating_add(bytes)
    };
    let first = last.max(1);
    (first..=LEVEL_MAX).find(holds).unwrap_or(LEVEL_MAX.max(first))
}

fn place_of(
    shape: &TreeShape,
    design: &Design,
    in_progress: &[Compaction],
    depth: usize,
    table: &Arc<TableInfo>,
) -> (usize, Placement) {
    for level in (1..=depth).rev() {
        if shape
            .levels
            .iter()
            .take(level)
            .any(|above| above.runs.iter().any(|run| shares(run, table)))
        {
            continue;
        }
        let runs = &shape.level(level).runs;
        let allowed = design.strategy.runs_allowed(level, depth) as usize;
        let newest = runs.first();
        let placement = match newest.filter(|newest| !shares(newest, table)) {
            Some(newest) => Placement::Join(newest.id),
            None if runs.len() < allowed => Placement::NewRun,
            None => continue,
        };
        if runs.len() > allowed {
            continue;
        }
        let claim = claim(level, placement, std::slice::from_ref(table));
        if !in_progress.iter().any(|job| claim.conflicts_with(job)) {
            return (level, placement);
        }
    }
    (0, Placement::NewRun)
}

fn shares(run: &crate::shape::Run, table: &TableInfo) -> bool {
    !run.overlapping(&table.range).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Run;
    use crate::soundness;
    use terrane_testkit::{Rng, seed_from_env};

    const LEVELED: &str = "1-leveling T=4 L0=4 base=4MiB; buffer=1MiB";
    const TIERED: &str = "tiering T=4; buffer=1MiB";

    /// Returns the places of an ingest's tables, numbered from 100, in the form of a shape.
    fn places(design: &str, shape: &str, tables: &str, in_progress: &[Compaction]) -> String {
        let design: Design = design.parse().unwrap();
        let shape: TreeShape = shape.parse().unwrap();
        let tables: TreeShape = format!("L0 r1: {tables}").parse().unwrap();
        let tables = &tables.levels[0].runs[0].tables;
        let runs = place(&shape, &design, in_progress, tables);
        let text = |run: &IngestedRun| {
            let ids: Vec<_> = run.tables.iter().map(|table| table.id.to_string()).collect();
            let run_text = match run.placement {
                Placement::Join(id) => format!("r{id}"),
                Placement::NewRun => "new".into(),
            };
            format!("L{} {run_text}: {}", run.level, ids.join(" "))
        };
        runs.iter().map(text).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn tables_go_below_everything_with_which_they_share_no_key() {
        let shape = "L0 r9: 1=a..=c:1\nL1 r5: 2=b..=f:1\nL2 r4: 3=h..=k:1\nL3 r2: 4=a..=m:1";
        let all = "100=a..=b:1 101=d..=e:1 102=g..=g:1 103=i..=j:1 104=n..=z:1";
        let expected = "L0 new: 100 101; L2 r4: 102; L1 r5: 103; L3 r2: 104";
        assert_eq!(places(LEVELED, shape, all, &[]), expected);
    }

    #[test]
    fn an_empty_tree_gets_a_level_that_holds_the_ingest() {
        assert_eq!(places(LEVELED, "", "100=a..=b:4MiB", &[]), "L1 new: 100");
        assert_eq!(places(LEVELED, "", "100=a..=b:4MiB 101=c..=d:1MiB", &[]), "L2 new: 100 101");
        assert_eq!(places(LEVELED, "", "100=a..=b:100MiB", &[]), "L4 new: 100");
        assert_eq!(
            places("lsm-bush", "", "100=a..=b:100MiB", &[]).split(' ').next_back(),
            Some("100")
        );
        assert_eq!(places("rocksdb-tiering", "", "100=a..=b:100MiB", &[]), "L0 new: 100");
    }

    #[test]
    fn tiered_levels_take_a_new_run_or_have_no_room() {
        let two = "L1 r3: 1=a..=m:1\nL1 r2: 2=a..=z:1";
        assert_eq!(places(TIERED, two, "100=b..=c:1 101=p..=q:1", &[]), "L1 new: 100; L1 r3: 101");
        let full = "L1 r4: 4=a..=z:1\nL1 r3: 1=a..=m:1\nL1 r2: 2=a..=z:1";
        assert_eq!(places(TIERED, full, "100=b..=c:1", &[]), "L0 new: 100");
    }

    #[test]
    fn jobs_in_progress_keep_tables_out_of_their_range() {
        let text = "L1 r5: 1=a..=c:1 2=x..=z:1\nL2 r4: 3=a..=b:1";
        let shape: TreeShape = text.parse().unwrap();
        let take = |level: usize, run: u64| {
            let found = shape.levels[level].runs.iter().find(|found| found.id.0 == run).unwrap();
            Input { level, run: found.id, tables: found.tables.clone() }
        };
        let output = Output { level: 2, placement: Placement::Join(RunId(4)) };
        let (inputs, reason) =
            (vec![take(1, 5), take(2, 4)], Reason::Manual { level: 1, rewrites: false });
        let job = Compaction { inputs, output, relocated: Vec::new(), reason };
        assert_eq!(places(LEVELED, text, "100=m..=n:1", &[]), "L2 r4: 100");
        // The job may write a table that spans the gap.
        assert_eq!(places(LEVELED, text, "100=m..=n:1", &[job]), "L0 new: 100");
    }

    fn random_shape(rng: &mut Rng) -> TreeShape {
        let (mut text, mut number) = (String::new(), 40);
        for level in 0..4 {
            let runs = if level == 0 { rng.below(3) } else { rng.below(2) };
            for _ in 0..runs {
                let mut tables = Vec::new();
                let mut at = rng.below(6);
                while at < 26 {
                    let end = at + rng.below(4);
                    let key = |at: u64| char::from(b'a' + at.min(25) as u8);
                    tables.push(format!("{number}={}..={}:1", key(at), key(end)));
                    (at, number) = (end + 1 + rng.below(9), number + 1);
                }
                if !tables.is_empty() {
                    let run = 100 - number;
                    text += &format!("L{level} r{}: {}\n", run.max(1), tables.join(" "));
                }
            }
        }
        text.parse().unwrap()
    }

    #[test]
    fn places_are_sound_and_as_deep_as_possible() {
        let seed = seed_from_env(91);
        for round in 0..500 {
            let mut rng = Rng::new(seed + round);
            let shape = random_shape(&mut rng);
            let design: Design = rng.pick(&[LEVELED, TIERED]).parse().unwrap();
            let start = rng.below(20) as u8 + b'a';
            let range = crate::KeyRange::inclusive(&[start], &[start + rng.below(5) as u8]);
            let table = Arc::new(TableInfo::new(500, range, 1));
            let runs = place(&shape, &design, &[], std::slice::from_ref(&table));
            let [run] = &runs[..] else { panic!("one table goes to one run") };
            let is_sound = |level: usize, placement: Placement| {
                let mut with = shape.clone();
                if with.levels.is_empty() {
                    with.levels.push(Default::default());
                }
                let newest = Run { id: RunId(u64::MAX), tables: vec![Arc::clone(&table)] };
                with.levels[0].runs.insert(0, newest);
                soundness::check(&with, &claim(level, placement, std::slice::from_ref(&table)))
            };
            if run.level > 0 {
                assert_eq!(is_sound(run.level, run.placement), Ok(()), "seed {}", seed + round);
            }
            for deeper in run.level + 1..=shape.last_level() {
                let newest = shape.level(deeper).runs.first().map(|newest| newest.id);
                let placement = newest.map_or(Placement::NewRun, Placement::Join);
                let is_leveled = design.strategy.is_single_run(deeper, shape.last_level());
                assert!(
                    !is_leveled || is_sound(deeper, placement).is_err(),
                    "seed {}: level {deeper} is possible",
                    seed + round
                );
            }
        }
    }
}
