//! Joins small tables of the last level.
//!
//! Nothing below the last level makes its tables overlap or move, so small tables that reached it,
//! for example by ingests of a few keys, would stay for ever, and every edit, every pick and every
//! opening would pay for them. Adjacent ones are therefore merged, when nothing else is due.
//!
//! Tables are small if eight of them fit into one of the target size. Their sizes fall into classes
//! by powers of eight. Eight or more adjacent tables of a class or lower ones are joined if their sum
//! is of a higher class, so a byte is rewritten about once per class, and few small tables remain
//! between larger ones. A join usually leaves at most one small table. Tables may end earlier than at
//! their size, for example for lack of memory. After a join that left as many tables as before, the
//! caller halves [`PickContext::join_bytes_max`], so joins come to an end whatever the tables contain.
//!
//! Tables with expiring values are left alone, because they are dropped unread when all of their
//! values have expired.

use std::sync::Arc;

use super::context::{PickContext, is_free};
use crate::compaction::{Compaction, Input, Output, Placement, Reason};
use crate::key_range::KeyRange;
use crate::shape::{Run, TableInfo};
use crate::strategy::Trigger;
use crate::strategy::trigger::Manual;

/// The number of adjacent tables from which on they are joined without a request; also the ratio
/// between the classes of sizes, and between the target size and a small table.
const JOINED_MIN: usize = 1 << CLASS_BITS;
const CLASS_BITS: u32 = 3;

/// The maximum number of tables that are joined at once.
const JOINED_MAX: usize = 1024;

/// Returns a join that the last level needs.
pub(super) fn pick(input: &PickContext<'_>) -> Option<Compaction> {
    let triggers = input.design.strategy.triggers.at(input.last_level());
    if triggers == &[Trigger::from(Manual)] {
        return None;
    }
    let largest = class_of(target_bytes(input));
    let runs = || input.shape.level(input.last_level()).runs.iter();
    // Most trees have no small tables, which one look at each table finds.
    if runs().all(|run| smalls(input, run, largest).all(|tables| tables.len() < JOINED_MIN)) {
        return None;
    }
    let is_worthwhile = |join: &Compaction, class| {
        join.tables().count() >= JOINED_MIN && class_of(join.input_bytes()) > class
    };
    (0..=largest).find_map(|class| {
        runs().find_map(|run| {
            let joins = smalls(input, run, class).flat_map(|tables| joins(input, run, tables));
            joins.filter(|join| is_worthwhile(join, class)).find(|join| is_free(input, join))
        })
    })
}

/// Returns a join of small tables of the last level that share keys with `range`, if there are at
/// least two adjacent ones. The caller repeats this until there are none.
pub fn manual_join(input: &PickContext<'_>, range: &KeyRange) -> Option<Compaction> {
    let runs = input.shape.level(input.last_level()).runs.iter();
    let mut joins = runs.flat_map(|run| {
        let smalls = smalls(input, run, u32::MAX);
        smalls.flat_map(move |tables| {
            let begin = tables.iter().take_while(|table| !table.range.overlaps(range)).count();
            let tables = tables.get(begin..).unwrap_or_default();
            let end = tables.iter().take_while(|table| table.range.overlaps(range)).count();
            joins(input, run, tables.get(..end).unwrap_or_default())
        })
    });
    joins.find(|join| is_free(input, join))
}

/// The size of the tables that joins should leave.
fn target_bytes(input: &PickContext<'_>) -> u64 {
    input.join_bytes_max.map_or(input.design.table_bytes, |most| most.min(input.design.table_bytes))
}

/// The class of a size: the number of octal digits.
fn class_of(bytes: u64) -> u32 {
    (u64::BITS - bytes.leading_zeros()).div_ceil(CLASS_BITS)
}

/// Returns the longest sequences of adjacent small tables of at most a class. Level 0 has none,
/// because its runs move on as a whole.
fn smalls<'a>(
    input: &'a PickContext<'_>,
    run: &'a Run,
    class: u32,
) -> impl Iterator<Item = &'a [Arc<TableInfo>]> + 'a {
    let is_small = move |table: &TableInfo| {
        table.size_bytes < target_bytes(input) >> CLASS_BITS
            && class_of(table.size_bytes) <= class
            && table.expiry.is_none()
    };
    let tables = if input.last_level() > 0 { &run.tables[..] } else { &[] };
    let sequences = tables.chunk_by(move |a, b| is_small(a) && is_small(b));
    sequences.filter(move |tables| tables.len() > 1)
}

/// Cuts a sequence of adjacent tables into joins of at least two tables.
fn joins<'a>(
    input: &'a PickContext<'_>,
    run: &'a Run,
    tables: &'a [Arc<TableInfo>],
) -> impl Iterator<Item = Compaction> + 'a {
    let level = input.last_level();
    let mut rest = tables;
    let cut = std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = rest.iter().take(JOINED_MAX).take_while(|table| {
            bytes += table.size_bytes;
            bytes <= target_bytes(input)
        });
        let (joined, others) = rest.split_at_checked(fits.count())?;
        rest = others;
        (joined.len() > 1).then_some(joined)
    });
    cut.map(move |joined| Compaction {
        inputs: vec![Input { level, run: run.id, tables: joined.to_vec() }],
        output: Output { level, placement: Placement::Join(run.id) },
        relocated: Vec::new(),
        reason: Reason::Join { level, tables: joined.len() as u64 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::design::Design;
    use crate::shape::{RunId, TableId, TreeShape};

    /// A tree whose last level grows by one-entry tables, each behind the last.
    fn grow(tables: u64) -> (usize, u64) {
        let design: Design = "leveling; table=1MiB".parse().unwrap();
        let (mut run, mut rewritten) = (Run { id: RunId(1), tables: Vec::new() }, 0);
        let mut next = 0;
        let mut new = |key: u64, end: u64, bytes: u64| {
            next += 1;
            let range = KeyRange::inclusive(&key.to_be_bytes(), &end.to_be_bytes());
            Arc::new(TableInfo::new(next, range, bytes))
        };
        let mut most = 0;
        for key in 0..tables {
            run.tables.push(new(key, key, 700));
            loop {
                let mut shape = TreeShape::default();
                shape.levels.resize_with(2, Default::default);
                shape.levels[1].runs.push(run.clone());
                let Some(join) = super::super::pick(&PickContext::new(&shape, &design)) else {
                    break;
                };
                assert_eq!(crate::soundness::check(&shape, &join), Ok(()));
                let ids: Vec<TableId> = join.tables().map(|table| table.id).collect();
                let at = run.tables.iter().position(|table| table.id == ids[0]).unwrap();
                let key_of = |key: &[u8]| u64::from_be_bytes(key[..8].try_into().unwrap());
                let range = join.range();
                let (start, end) = (key_of(&range.start), key_of(range.end.as_deref().unwrap()));
                let joined = new(start, end, join.input_bytes());
                rewritten += join.input_bytes();
                run.tables.splice(at..at + ids.len(), [joined]);
            }
            most = most.max(run.tables.len());
        }
        (most, rewritten / (tables * 700))
    }

    /// Thousands of tables of one entry stayed in the last level, and each ingest cost more than the
    /// one before.
    #[test]
    fn ingests_of_single_keys_leave_few_tables_and_rewrite_each_a_few_times() {
        let (most, rewrites) = grow(5_000);
        // Three classes of small tables, and the tables of at least an eighth of the target.
        assert!(most <= 3 * 7 + 5_000 * 700 / (128 << 10) + 8, "{most} tables");
        assert!((1..=4).contains(&rewrites), "{rewrites} rewrites of each entry");
    }
}
