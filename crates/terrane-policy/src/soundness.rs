//! Checks that a compaction never inverts recency.
//!
//! A read searches from new to old and takes the first entry that it finds. Therefore, if one of
//! two tables that share keys moves, the newer of the two must stay the newer: data must never jump
//! over newer data for the same key, nor sink below older data. The check compares the ranges of
//! whole tables, which errs on the safe side.

use std::fmt;

use crate::compaction::Compaction;
use crate::key_range::KeyRange;
use crate::recency::{Recency, output_recency, recency};
use crate::shape::{TableId, TablePosition, TreeShape};

/// Why a compaction must not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unsound {
    /// The compaction has no inputs.
    Empty,
    /// An input is not at the position that the compaction gives.
    Misplaced(TableId),
    /// `moved` would change its order with `passed`, which shares keys with it.
    TurnsRecency {
        /// An input.
        moved: TableId,
        /// A table that is not an input.
        passed: TableId,
    },
    /// The result would overlap a table of the run that it joins.
    OverlapsOutputRun(TableId),
}

impl fmt::Display for Unsound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the compaction has no inputs"),
            Self::Misplaced(id) => write!(f, "input {id} is not at the place given for it"),
            Self::TurnsRecency { moved, passed } => {
                write!(f, "moving table {moved} would turn its recency round with table {passed}")
            }
            Self::OverlapsOutputRun(id) => {
                write!(f, "the result would overlap table {id} of the run it joins")
            }
        }
    }
}

impl std::error::Error for Unsound {}

/// Checks that `compaction` preserves the recency of every key of `shape`.
///
/// # Errors
/// Returns the first violation found.
pub fn check(shape: &TreeShape, compaction: &Compaction) -> Result<(), Unsound> {
    let hull = compaction.range();
    if compaction.tables().next().is_none() {
        return Err(Unsound::Empty);
    }
    check_places(shape, compaction)?;
    let output = output_recency(compaction);
    let inputs: Vec<(Recency, &KeyRange, TableId)> = compaction
        .inputs
        .iter()
        .flat_map(|input| {
            let recency = recency(input.level, input.run);
            input.tables.iter().map(move |table| (recency, &table.range, table.id))
        })
        .collect();
    for TablePosition { level, run, table } in shape.places() {
        if !table.range.overlaps(&hull) || compaction.takes(table.id) {
            continue;
        }
        let other = recency(level, run);
        if other == output {
            return Err(Unsound::OverlapsOutputRun(table.id));
        }
        for (before, range, moved) in &inputs {
            if range.overlaps(&table.range) && (*before < other) != (output < other) {
                return Err(Unsound::TurnsRecency { moved: *moved, passed: table.id });
            }
        }
    }
    Ok(())
}

fn check_places(shape: &TreeShape, compaction: &Compaction) -> Result<(), Unsound> {
    for input in &compaction.inputs {
        let run = shape.level(input.level).runs.iter().find(|run| run.id == input.run);
        for table in &input.tables {
            let is_there = run.is_some_and(|run| run.tables.iter().any(|t| t.id == table.id));
            if !is_there {
                return Err(Unsound::Misplaced(table.id));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compaction::{Input, Output, Placement, Reason};
    use crate::shape::RunId;

    /// Builds `inputs -> level` from table numbers; the result joins `join` or is a new run.
    fn verdict(shape: &str, ids: &[u64], level: usize, join: Option<u64>) -> Result<(), Unsound> {
        let shape: TreeShape = shape.parse().unwrap();
        let inputs = shape
            .places()
            .filter(|place| ids.contains(&place.table.id.0))
            .map(|place| Input {
                level: place.level,
                run: place.run,
                tables: vec![place.table.clone()],
            })
            .collect();
        let placement = join.map_or(Placement::NewRun, |run| Placement::Join(RunId(run)));
        let output = Output { level, placement };
        let reason = Reason::Manual { level: 0, rewrites: false };
        check(&shape, &Compaction { inputs, output, relocated: Vec::new(), reason })
    }

    fn turns(moved: u64, passed: u64) -> Result<(), Unsound> {
        Err(Unsound::TurnsRecency { moved: TableId(moved), passed: TableId(passed) })
    }

    const TREE: &str = "L0 r9: 1=a..=m:1\nL0 r8: 2=d..=f:1 3=x..=z:1\nL1 r5: 4=a..=e:1 5=f..=g:1";

    #[test]
    fn whole_level_into_its_next_level_is_sound() {
        assert_eq!(verdict(TREE, &[1, 2, 3, 4, 5], 1, Some(5)), Ok(()));
    }

    #[test]
    fn newer_run_alone_jumps_over_an_older_run() {
        assert_eq!(verdict(TREE, &[1, 4, 5], 1, Some(5)), turns(1, 2));
    }

    #[test]
    fn table_without_shared_keys_may_pass() {
        assert_eq!(verdict(TREE, &[3], 1, None), Ok(()));
    }

    #[test]
    fn result_must_not_overlap_the_run_it_joins() {
        let overlap = Err(Unsound::OverlapsOutputRun(TableId(5)));
        assert_eq!(verdict(TREE, &[1, 2, 3, 4], 1, Some(5)), overlap);
    }

    #[test]
    fn older_data_must_not_rise() {
        assert_eq!(verdict(TREE, &[4], 0, None), turns(4, 1));
    }

    #[test]
    fn merging_runs_around_a_run_in_between_is_unsound() {
        let tree = "L0 r3: 1=a..=c:1\nL0 r2: 2=b..=b:1\nL0 r1: 3=a..=c:1";
        assert_eq!(verdict(tree, &[1, 3], 0, Some(3)), turns(3, 2));
        assert_eq!(verdict(tree, &[1, 3], 0, Some(1)), turns(1, 2));
        assert_eq!(verdict(tree, &[1, 2, 3], 0, Some(3)), Ok(()));
    }

    /// A value file collection rewrites single tables in place to replace pointers.
    #[test]
    fn any_table_may_be_rewritten_in_place() {
        let shape: TreeShape = TREE.parse().unwrap();
        for place in shape.places() {
            let (level, run) = (place.level, place.run.0);
            assert_eq!(verdict(TREE, &[place.table.id.0], level, Some(run)), Ok(()));
        }
    }

    #[test]
    fn inputs_are_where_the_compaction_says() {
        let shape: TreeShape = TREE.parse().unwrap();
        let verdict = |level: usize, run: u64, ids: &[u64]| {
            let places = shape.places().filter(|place| ids.contains(&place.table.id.0));
            let tables = places.map(|place| place.table.clone()).collect();
            let inputs = vec![Input { level, run: RunId(run), tables }];
            let output = Output { level, placement: Placement::Join(RunId(run)) };
            let reason = Reason::Manual { level, rewrites: false };
            check(&shape, &Compaction { inputs, output, relocated: Vec::new(), reason })
        };
        let misplaced = |id| Err(Unsound::Misplaced(TableId(id)));
        assert_eq!(verdict(0, 8, &[2]), Ok(()));
        assert_eq!(verdict(0, 9, &[2]), misplaced(2), "another run");
        assert_eq!(verdict(1, 8, &[2]), misplaced(2), "another level");
        assert_eq!(verdict(0, 8, &[2, 5]), misplaced(5), "one of two");
        let message = Unsound::Misplaced(TableId(5)).to_string();
        assert_eq!(message, "input 5 is not at the place given for it");
    }

    #[test]
    fn compaction_of_nothing_is_refused() {
        assert_eq!(verdict(TREE, &[], 1, None), Err(Unsound::Empty));
    }
}
