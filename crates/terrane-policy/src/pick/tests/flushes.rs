//! Tests where flushes put memtables, as text and as properties of random trees.

use std::fmt::Write;

use terrane_testkit::datadriven::{self, Case};
use terrane_testkit::{Rng, seed_from_env};

use super::random;
use super::running;
use super::simulate::TestTree;
use crate::admission::{Admission, admit};
use crate::compaction::Compaction;
use crate::design::FlushMode;
use crate::flush::{FlushPlan, NewRunReason};
use crate::key_range::KeyRange;
use crate::shape::{Run, TableInfo, TreeShape};
use crate::soundness;

#[test]
fn flushes_match_the_expected_plans() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/flush.txt");
    datadriven::run(path, answer);
}

/// `flush` prints the plan for a memtable of these keys and bytes; `flushes` runs `count` flushes
/// and, after each, every due compaction.
fn answer(case: &Case) -> String {
    let design = case.argument("design").unwrap().parse().unwrap();
    let mut tree = TestTree::new(case.input.parse().unwrap(), design);
    let memtable = case.argument("memtable").unwrap();
    let memtable: TableInfo = format!("1={memtable}").parse().unwrap();
    let (range, bytes) = (memtable.range, memtable.size_bytes);
    let mut in_progress = Vec::new();
    match case.directive.as_str() {
        "flush" => {
            if case.argument("while").is_some_and(|word| word == "compacting") {
                in_progress.extend(tree.pick(&[]));
            }
            match tree.plan_flush(&in_progress, &range, bytes) {
                FlushPlan::NewRun(reason) => format!("a new run because {reason}"),
                FlushPlan::Merge(merge) => {
                    tree.carry_out_flush(&merge).unwrap();
                    format!("{merge}\n{}", tree.shape)
                }
            }
        }
        "flushes" => {
            let mut text = String::new();
            for _ in 0..case.argument("count").unwrap().parse().unwrap() {
                match tree.plan_flush(&[], &range, bytes) {
                    FlushPlan::NewRun(reason) => {
                        writeln!(text, "a new run because {reason}").unwrap();
                        tree.flush(range.clone(), bytes);
                    }
                    FlushPlan::Merge(merge) => {
                        writeln!(text, "{merge}").unwrap();
                        tree.carry_out_flush(&merge).unwrap();
                    }
                }
                while let Some(job) = tree.pick(&[]) {
                    writeln!(text, "{job}").unwrap();
                    tree.carry_out(&job);
                }
            }
            text + &tree.shape.to_string()
        }
        other => panic!("line {}: unknown directive {other}", case.line),
    }
}

#[test]
fn a_new_run_is_a_fallback_unless_the_design_asks_for_one_or_there_is_none() {
    let reasons = [NewRunReason::Design, NewRunReason::Empty, NewRunReason::Busy];
    assert_eq!(reasons.map(|reason| reason.is_fallback()), [false, false, true]);
    assert!(NewRunReason::TooLarge { bytes: 2, limit: 1 }.is_fallback());
}

/// Only a merging flush has a memtable that is not yet in the tree.
#[test]
fn other_jobs_add_no_memtable_to_the_tree() {
    let shape: TreeShape = "L0 r2: 2=a..=c:1\nL1 r1: 1=a..=c:1".parse().unwrap();
    let job = running::one("2+1>L1", &shape);
    assert_eq!(crate::flush::with_memtable(&shape, &job), shape);
}

#[test]
fn merging_flushes_are_sound_with_compactions_that_finish_in_any_order() {
    let first = seed_from_env(40);
    let (mut merged, mut busy) = (0, 0);
    for seed in first..first + 400 {
        let mut rng = Rng::new(seed);
        let mut tree = random::simulation(&mut rng);
        let story = format!("seed {seed}, {}\n{}", tree.design, tree.shape);
        let limit = |tree: &TestTree| tree.design.capacity_bytes(0, tree.shape.last_level());
        // The running flush comes first in the list of jobs.
        let mut flush: Option<Compaction> = None;
        let mut in_progress: Vec<Compaction> = Vec::new();
        for _ in 0..80 {
            let all: Vec<Compaction> = flush.iter().chain(&in_progress).cloned().collect();
            match tree.pick(&all).filter(|_| in_progress.len() < 4) {
                Some(job) => {
                    assert!(
                        !all.iter().any(|other| other.conflicts_with(&job)),
                        "{job} in {story}"
                    );
                    tree.cursors.advance(&job);
                    in_progress.push(job);
                }
                None if in_progress.is_empty() => {}
                None => {
                    let job = in_progress.swap_remove(rng.index(in_progress.len()));
                    assert_eq!(soundness::check(&tree.shape, &job), Ok(()), "{job}\nin {story}");
                    tree.carry_out(&job);
                }
            }
            if rng.percent(50) {
                continue;
            }
            if let Some(merge) = flush.take() {
                assert_eq!(tree.carry_out_flush(&merge), Ok(()), "{merge}\nin {story}");
                assert_eq!(tree.shape.check(), Ok(()), "{story}");
                continue;
            }
            let from = rng.below(90);
            let to = rng.between(from + 1, 99);
            let key = |number: u64| format!("{number:04}").into_bytes();
            let range = KeyRange::new(&key(from), Some(&key(to)));
            let bytes = 1 + rng.below(tree.design.buffer_bytes);
            match tree.plan_flush(&in_progress, &range, bytes) {
                FlushPlan::Merge(merge) => {
                    assert_eq!(tree.design.flush, FlushMode::Merge, "{story}");
                    assert!(merge.input_bytes() <= limit(&tree), "{merge} in {story}");
                    let conflict = in_progress.iter().find(|other| other.conflicts_with(&merge));
                    assert_eq!(conflict, None, "{merge} in {story}");
                    flush = Some(merge);
                    merged += 1;
                }
                FlushPlan::NewRun(reason) => {
                    busy += u32::from(reason == NewRunReason::Busy);
                    tree.flush(range, bytes);
                }
            }
        }
    }
    assert!(merged > 100 && busy > 10, "{merged} flushes merged, {busy} found their tables busy");
}

/// However quickly flushes follow each other, a due compaction can begin between two of them, and
/// level 0 stays within the design's bounds.
#[test]
fn flushes_that_merge_never_keep_a_compaction_waiting() {
    let first = seed_from_env(60);
    for seed in first..first + 100 {
        let mut rng = Rng::new(seed);
        let name = *rng.pick(&["1-leveling", "tiering", "lazy-leveling", "balanced"]);
        let triggers = *rng.pick(&["level-saturation+run-count", "run-count", "level-saturation"]);
        let text = format!(
            "{name} T=3 L0={} base=auto; flush=merge; trigger={triggers}; buffer=64KiB; table=16KiB",
            rng.between(2, 5)
        );
        let mut tree = TestTree::new(TreeShape::default(), text.parse().unwrap());
        let range = KeyRange::new(b"0000", Some(b"0100"));
        for _ in 0..60 {
            let bytes = rng.between(20 << 10, 64 << 10);
            // The flush begins before any compaction, and claims its tables until it ends.
            let plan = tree.plan_flush(&[], &range, bytes);
            match plan {
                FlushPlan::NewRun(_) => tree.flush(range.clone(), bytes),
                FlushPlan::Merge(merge) => {
                    let held = [merge];
                    assert_eq!(tree.pick(&held), tree.pick(&[]), "{text}, seed {seed}");
                    tree.carry_out_flush(&held[0]).unwrap();
                }
            }
            if let Some(job) = tree.pick(&[]) {
                tree.carry_out(&job);
            }
            let level0 = tree.shape.level(0);
            let capacity = tree.design.capacity_bytes(0, tree.shape.last_level());
            assert!(level0.size_bytes() <= capacity * 2, "{text}, seed {seed}: {}", tree.shape);
            assert!(level0.runs.len() <= 3, "{text}, seed {seed}: {}", tree.shape);
        }
    }
}

/// A long compaction claims its inputs. Flushes during that time must delay and stop writers like
/// flushes that create new runs, even if they cover few keys.
#[test]
fn flushes_during_a_long_compaction_stall_writers_in_time() {
    for limit in ["level0", "local", "global"] {
        let text = format!(
            "1-leveling L0=4 base=auto; flush=merge; buffer=64KiB; table=16KiB; limit={limit}"
        );
        let mut tree = TestTree::new(TreeShape::default(), text.parse().unwrap());
        let bytes = tree.design.buffer_bytes;
        let flush = |tree: &mut TestTree, in_progress: &[Compaction], range: &KeyRange| match tree
            .plan_flush(in_progress, range, bytes)
        {
            FlushPlan::NewRun(_) => tree.flush(range.clone(), bytes),
            FlushPlan::Merge(merge) => tree.carry_out_flush(&merge).unwrap(),
        };
        let all = KeyRange::new(b"0000", Some(b"9999"));
        let job = loop {
            flush(&mut tree, &[], &all);
            if let Some(job) = tree.pick(&[]) {
                break job;
            }
        };
        let narrow = KeyRange::new(b"5000", Some(b"5100"));
        let mut flushes = 0;
        while !matches!(admit(&tree.shape, 0, &tree.design), Admission::Stop(_)) {
            flush(&mut tree, std::slice::from_ref(&job), &narrow);
            flushes += 1;
            assert!(flushes < 40, "{text}: writers never stop\n{}", tree.shape);
        }
        let capacity = tree.design.capacity_bytes(0, tree.shape.last_level());
        let largest = tree.shape.level(0).runs.iter().map(Run::size_bytes).max();
        assert!(largest.unwrap() <= capacity + bytes, "{text}\n{}", tree.shape);
    }
}
