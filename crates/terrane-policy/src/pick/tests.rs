//! Tests picks as text, and properties of random trees.

mod flushes;
mod properties;
mod random;
mod reasons;
mod rules;
mod running;
mod simulate;
mod values;

use std::fmt::Write;

use terrane_testkit::datadriven::{self, Case};

use super::*;
use crate::access::{TableAccess, TableAccesses};
use crate::catalogue;
use crate::design::Design;
use crate::shape::{TableId, TableInfo, TreeShape, ValueFileId};
use crate::units::parse_micros;
use simulate::TestTree;

#[test]
fn picks_match_testdata() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/pick.txt");
    datadriven::run(path, answer);
}

#[test]
fn reasons_of_the_catalogue_match_testdata() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/reasons.txt");
    datadriven::run(path, |_| reasons::of_catalogue());
}

#[test]
fn collections_match_testdata() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/collect.txt");
    datadriven::run(path, answer);
}

/// In addition to the design, a case may state the time `now`, delete `persistence`, the oldest
/// `snapshot`, the `reads` of tables, `running` jobs, and a `cursor`: `1@d` starts a turn of level
/// 1 at key `d`.
fn answer(case: &Case) -> String {
    let design: Design = case.argument("design").unwrap_or(catalogue::DEFAULT).parse().unwrap();
    let mut tree = TestTree::new(case.input.parse().unwrap(), design);
    let time = |name| case.argument(name).map(|text| parse_micros(text).unwrap());
    tree.now_micros = time("now").unwrap_or(0);
    tree.delete_persistence_micros = time("persistence");
    tree.oldest_snapshot = case.argument("snapshot").map(|seq| seq.parse().unwrap());
    tree.accesses = case.argument("reads").map(accesses).unwrap_or_default();
    if let Some((level, key)) = case.argument("cursor").and_then(|text| text.split_once('@')) {
        tree.cursors.set(level.parse().unwrap(), Some(key.as_bytes().into()));
    }
    let shape = tree.shape.clone();
    let jobs = case.argument("running").map(|text| running::jobs(text, &shape)).unwrap_or_default();
    let job = |job: Option<Compaction>| job.map_or("nothing".into(), |job| job.to_string());
    let mut text = String::new();
    match case.directive.as_str() {
        "pick" => return job(tree.pick(&jobs)),
        "collect" => {
            let files = case.argument("files").unwrap().split(',');
            let files: Vec<ValueFileId> =
                files.map(|id| ValueFileId(id.parse().unwrap())).collect();
            return job(manual_collection(&tree.input(&jobs), &files));
        }
        "refilled" => {
            let running = running::one(case.argument("job").unwrap(), &shape);
            return format!("{:.1} %", 100.0 * refilled(&tree.input(&jobs), &running));
        }
        "due" => {
            let due = next_due_micros(&tree.input(&[]));
            return due.map_or("never".into(), |due| {
                format!("in {}", crate::units::format_micros(due - tree.now_micros))
            });
        }
        "manual" => {
            let range = case.argument("range").unwrap();
            let range: TableInfo = format!("1={range}:1").parse().unwrap();
            for level in 0.. {
                if level > tree.shape.last_level() {
                    break;
                }
                let Some(job) = manual(&tree.input(&[]), level, &range.range) else { continue };
                writeln!(text, "{job}").unwrap();
                tree.carry_out(&job);
            }
        }
        "settle" => {
            while let Some(job) = tree.pick(&[]) {
                writeln!(text, "{job}").unwrap();
                tree.cursors.advance(&job);
                tree.carry_out(&job);
            }
        }
        "parallel" => {
            let mut in_progress = jobs;
            while let Some(job) = tree.pick(&in_progress) {
                writeln!(text, "{job}").unwrap();
                in_progress.push(job);
            }
        }
        other => panic!("line {}: unknown directive {other}", case.line),
    }
    text + &tree.shape.to_string()
}

/// Parses read counts: `7=300@20s` means 300 reads of table 7, the last one at 20 s.
fn accesses(text: &str) -> TableAccesses {
    let one = |word: &str| {
        let (table, rest) = word.split_once('=').unwrap();
        let (reads, last) = rest.split_once('@').unwrap_or((rest, "0s"));
        let access =
            TableAccess { reads: reads.parse().unwrap(), last_micros: parse_micros(last).unwrap() };
        (TableId(table.parse().unwrap()), access)
    };
    text.split(',').map(one).collect()
}

#[test]
fn dents_figure_1_needs_two_merges() {
    let design: Design = "dent T=2 L0=2; buffer=1KiB".parse().unwrap();
    let shape: TreeShape = "L0 r3: 3=a..=f:1KiB\nL0 r2: 2=a..=f:1KiB".parse().unwrap();
    let mut tree = TestTree::new(shape, design);
    let job = tree.pick(&[]).unwrap();
    tree.carry_out(&job);
    assert_eq!(job.tables().map(|table| table.id).collect::<Vec<_>>(), [TableId(3), TableId(2)]);
    assert_eq!((tree.shape.level(0).runs.len(), tree.shape.level(1).runs.len()), (0, 1));
}

/// The former contents of level 1, run 2, are being merged into level 2 while the level is full
/// again. Under a global limit, flushed data continues into run 3; under a local limit it waits for
/// run 2.
#[test]
fn a_merge_into_a_level_at_its_local_limit_waits() {
    let tree = |bytes: u64, limit: &str| {
        let design = format!("leveling T=10; granularity=level; base=100B; limit={limit}");
        let runs = "L1 r2: 2=a..=z:100B\nL2 r1: 1=a..=z:500B";
        let shape = format!("L0 r9: 9=a..=z:10B\nL1 r3: 3=a..=z:{bytes}B\n{runs}");
        TestTree::new(shape.parse().unwrap(), design.parse().unwrap())
    };
    let down = |tree: &TestTree| {
        let run = |level: usize, at: usize| &tree.shape.level(level).runs[at];
        let input = |level, at| crate::compaction::Input {
            level,
            run: run(level, at).id,
            tables: run(level, at).tables.clone(),
        };
        Compaction {
            inputs: vec![input(1, 1), input(2, 0)],
            output: crate::Output { level: 2, placement: crate::Placement::Join(run(2, 0).id) },
            relocated: Vec::new(),
            reason: Reason::Manual { level: 1, rewrites: false },
        }
    };
    let picked = |bytes: u64, limit: &str, is_running: bool| {
        let tree = tree(bytes, limit);
        let running = if is_running { vec![down(&tree)] } else { Vec::new() };
        tree.pick(&running).map(|job| (job.from_level(), job.output.level))
    };
    assert_eq!(picked(100, "global(9)", true), Some((0, 1)));
    assert_eq!(picked(99, "local(2)", true), Some((0, 1)));
    assert_eq!(picked(100, "local(2)", true), None);
    assert_eq!(picked(100, "local(3)", true), Some((0, 1)));
    assert_eq!(picked(100, "local(2); violation=none", true), Some((0, 1)));
    // If nothing moves run 2 down, level 1 becomes one run first.
    assert_eq!(picked(100, "local(2)", false), Some((1, 1)));
}

/// Level 1 gathers three runs and may hold six. A seventh run waits until some of them have moved
/// on.
#[test]
fn a_merge_that_adds_a_run_beyond_the_local_limit_waits() {
    let picked = |runs: u64, limit: &str| {
        let design = format!("tiering T=3; granularity=run; intake=exact; limit={limit}");
        let level0: String = (0..3).map(|at| format!("L0 r{0}: {0}=a..=z:1B\n", 90 - at)).collect();
        let level1: String =
            (0..runs).map(|at| format!("L1 r{0}: {0}=a..=z:9B\n", 50 - at)).collect();
        let shape = format!("{level0}{level1}").parse().unwrap();
        let tree = TestTree::new(shape, design.parse().unwrap());
        let first = tree.pick(&[]).unwrap();
        // The level with more runs goes first; the other may also act.
        assert_eq!(first.from_level(), usize::from(runs > 3));
        tree.pick(&[first]).map(|job| job.from_level())
    };
    assert_eq!(picked(5, "local(2x)"), Some(0));
    assert_eq!(picked(6, "local(2x)"), None);
    assert_eq!(picked(6, "global(2x)"), Some(0));
}

/// No trigger would ever merge level 1, and level 0 is closer to its limit, so waiting would not
/// help.
#[test]
fn a_merge_does_not_wait_for_a_level_in_which_nothing_is_due() {
    let picked = |design: &str, level1: usize| {
        let design = format!("tiering T=3; granularity=run; intake=exact; {design}");
        let runs = |level: usize, first: usize, count: usize| -> String {
            (0..count).map(|at| format!("L{level} r{0}: {0}=a..=z:1B\n", first - at)).collect()
        };
        let shape = format!("{}{}", runs(0, 90, 9), runs(1, 50, level1));
        let tree = TestTree::new(shape.parse().unwrap(), design.parse().unwrap());
        tree.pick(&[]).map(|job| (job.from_level(), job.output.level))
    };
    let unmerged = "trigger=run-count,tombstone-ttl(1h)";
    assert_eq!(picked(&format!("{unmerged}; limit=local(9)"), 9), Some((0, 1)));
    // Level 0 is fuller, but level 1 is at its limit and goes first.
    assert_eq!(picked("limit=local(2x)", 5), Some((0, 1)));
    assert_eq!(picked("limit=local(2x)", 6), Some((1, 2)));
}
