//! Tests decisions at a bound, or while another job runs.

use super::simulate::TestTree;
use super::*;
use crate::compaction::{Compaction, Input, Output, Placement};

fn tree(design: &str, shape: &str) -> TestTree {
    TestTree::new(shape.parse().unwrap(), design.parse().unwrap())
}

fn picked(tree: &TestTree, in_progress: &[Compaction]) -> String {
    tree.pick(in_progress).map_or("nothing".into(), |job| job.to_string())
}

/// A level of 30 MiB with room for three runs takes 2 MiB into a run of 8 MiB.
#[test]
fn a_run_is_filled_up_to_its_share_of_the_level() {
    let design = "hybrid T=10 L0=2 base=30MiB; runs=3,last:1; trigger=run-count; buffer=1MiB";
    let at = |bytes: u64| {
        let shape = format!(
            "L0 r6: 6=a..=z:1MiB\nL0 r5: 5=a..=z:1MiB\nL1 r2: 2=a..=z:{bytes}\nL2 r1: 1=a..=z:200MiB"
        );
        picked(&tree(design, &shape), &[])
    };
    let full = at(8 << 20);
    assert!(full.starts_with("L0 r6: 6 + L0 r5: 5 + L1 r2: 2 -> L1 r2"), "{full}");
    let over = at((8 << 20) + 1);
    assert!(over.starts_with("L0 r6: 6 + L0 r5: 5 -> L1 new run"), "{over}");
}

/// Data that arrives while a level of one run moves down as a whole forms the level's next run. If
/// only part of the level moves, or it is rewritten in place, the data waits.
#[test]
fn data_joins_no_run_that_is_leaving() {
    let design = "leveling base=4MiB; granularity=level; movement=none; buffer=1MiB";
    let shape = "L0 r9: 9=a..=z:1MiB\nL1 r2: 2=a..=m:4MiB 3=n..=z:4MiB\nL2 r1: 1=a..=z:20MiB";
    let tree = tree(design, shape);
    let leaving = tree.pick(&[]).unwrap();
    assert!(leaving.to_string().starts_with("L1 r2: 2 3 + L2 r1: 1 -> L2 r1"), "{leaving}");
    let next = picked(&tree, std::slice::from_ref(&leaving));
    assert!(next.starts_with("L0 r9: 9 -> L1 new run"), "{next}");
    let run = &tree.shape.level(1).runs[0];
    let of = |tables: &[usize], level: usize| {
        let tables = tables.iter().map(|at| run.tables[*at].clone()).collect();
        let output = Output { level, placement: Placement::Join(run.id) };
        let inputs = vec![Input { level: 1, run: run.id, tables }];
        Compaction { inputs, output, ..leaving.clone() }
    };
    assert_eq!(picked(&tree, &[of(&[0, 1], 1)]), "nothing");
    assert_eq!(picked(&tree, &[of(&[0], 2)]), "nothing");
    assert!(picked(&tree, &[of(&[0], 2), of(&[1], 2)]).starts_with("L0 r9: 9 -> L1 new run"));
}

#[test]
fn a_level_that_gathers_runs_gives_up_tables_of_its_oldest_run() {
    let design = "tiering T=3 L0=3 base=9MiB; granularity=file; movement=least-overlap";
    let shape =
        "L1 r5: 5=a..=b:4MiB\nL1 r4: 4=c..=d:4MiB\nL1 r3: 3=e..=f:4MiB\nL2 r1: 1=x..=z:9MiB";
    let job = picked(&tree(design, shape), &[]);
    assert!(job.starts_with("L1 r3: 3 -> L2"), "{job}");
}

#[test]
fn a_compaction_is_due_by_shape_regardless_of_time() {
    let due = |design: &str, shape: &str| {
        let mut tree = tree(design, shape);
        tree.now_micros = 1_000_000_000_000;
        due_by_shape(&tree.input(&[]))
    };
    let old = "L1 r2: 2=a..=z:1MiB,tombstones=1,oldest-tombstone=1\nL2 r1: 1=a..=z:9MiB";
    assert_eq!(due("leveling; trigger=tombstone-ttl(1s)+level-saturation", old), None);
    assert_eq!(due("leveling base=512KiB; trigger=level-saturation", old), Some(1));
    let runs = "L0 r5: 5=a..=z:90MiB\nL1 r4: 4=a..=z:90MiB\nL1 r3: 3=a..=z:80MiB";
    assert_eq!(due("tiering; trigger=space-amplification(200)+run-count", runs), Some(1));
    assert_eq!(due("tiering; trigger=space-amplification(900)+run-count", runs), None);
    let list = "L0 r5: 5=a..=z:9MiB\nL0 r4: 4=a..=z:9MiB\nL0 r3: 3=a..=z:9MiB";
    assert_eq!(due("asterixdb-concurrent", list), Some(0));
    // A merge of size-tiered runs belongs to the level of its oldest run.
    let deeper = "L0 r5: 5=a..=z:9MiB\nL0 r4: 4=a..=z:9MiB\nL1 r3: 3=a..=z:9MiB";
    assert_eq!(due("asterixdb-concurrent", deeper), Some(1));
    // No pick while a running job claims the tables.
    let tree = tree("leveling base=512KiB; trigger=level-saturation", old);
    let job = tree.pick(&[]).unwrap();
    assert_eq!(due_by_shape(&tree.input(&[job])), None);
}

/// Level 0 gathers runs, so everything moves down even if there is no other level.
#[test]
fn a_manual_compaction_moves_the_only_level_down() {
    let tree = tree("balanced", "L0 r6: 6=a..=m:1MiB\nL0 r5: 5=a..=z:1MiB");
    let job = manual(&tree.input(&[]), 0, &KeyRange::all()).unwrap();
    assert!(job.to_string().starts_with("L0 r6: 6 + L0 r5: 5 -> L1 new run"), "{job}");
}

/// The next turn of a level begins after the last key of the tables that it gave up, in any of its
/// runs. Tables of the next level do not count.
#[test]
fn a_turn_continues_after_the_tables_that_moved() {
    let turns = |design: &str, shape: &str| {
        let tree = tree(design, shape);
        let mut cursors = Cursors::default();
        cursors.advance(&tree.pick(&[]).unwrap());
        let key = |level| cursors.get(level).map(|key| String::from_utf8_lossy(key).into_owned());
        [key(0), key(1), key(2)].map(Option::unwrap_or_default)
    };
    let two = "leveling base=1MiB; granularity=files(2); movement=round-robin";
    let shape = "L1 r2: 1=a..b:1MiB 2=c..d:1MiB 3=e..f:1MiB\nL2 r1: 9=a..z:1MiB";
    assert_eq!(turns(two, shape), ["", "d", ""]);
    let column = "tiering T=3 L0=3 base=9MiB; granularity=file; movement=round-robin";
    let shape = "L1 r5: 5=b..e:4MiB\nL1 r4: 4=a..c:4MiB\nL1 r3: 3=a..b:4MiB\nL2 r1: 9=x..z:1MiB";
    assert_eq!(turns(column, shape), ["", "e", ""]);
    // A level that moves as a whole has no turns.
    let whole = "leveling-full base=1MiB";
    assert_eq!(turns(whole, "L1 r2: 1=a..b:9MiB\nL2 r1: 9=a..z:1MiB"), ["", "", ""]);
}
