//! Tests properties of value file collection on random trees.

use std::sync::Arc;

use terrane_testkit::{Rng, seed_from_env};

use super::random::{self, NOW};
use super::simulate::TestTree;
use crate::compaction::{CollectionCause, Compaction, Reason};
use crate::design::{Design, ValueSeparation, Values};
use crate::shape::{TreeShape, ValueFileInfo, ValueFileState, ValueFileUsage, ValueRef};
use crate::soundness;

/// More jobs than any tree of this size needs.
const STEPS_MAX: usize = 4000;

/// Returns random settings, often such that many files exceed them.
pub(super) fn separation(rng: &mut Rng) -> ValueSeparation {
    ValueSeparation {
        garbage_percent: *rng.pick(&[1, 20, 30, 50, 90, 100]),
        space_percent: *rng.pick(&[105, 110, 130, 200, 10_000]),
        file_bytes: 1 << rng.between(10, 16),
        ..ValueSeparation::at(1 << rng.between(5, 12))
    }
}

/// Adds value files to a tree, and references from its tables to them.
pub(super) fn add(rng: &mut Rng, tree: &mut TestTree) {
    let files = 1 + rng.below(12);
    let mut bytes = vec![0; files as usize];
    let few = rng.percent(50);
    for run in tree.shape.levels.iter_mut().flat_map(|level| &mut level.runs) {
        for table in &mut run.tables {
            let mut refs = Vec::new();
            for file in 0..files {
                if rng.percent(if few { 15 } else { 80 }) {
                    let used = 1 + rng.below(1 << 12);
                    bytes[file as usize] += used;
                    let file = crate::ValueFileId(file);
                    refs.push(ValueRef { file, bytes: used, values: 1 + rng.below(9) });
                }
            }
            Arc::make_mut(table).value_refs = refs.into();
        }
    }
    tree.shape.value_files =
        (0..files).map(|id| Arc::new(file(rng, id, bytes[id as usize]))).collect();
    tree.shape.check().unwrap();
}

fn file(rng: &mut Rng, id: u64, live: u64) -> ValueFileInfo {
    let garbage = if rng.percent(30) { 0 } else { rng.below(2 * live.max(1 << 12)) };
    let mut file = ValueFileInfo::new(id, live + garbage);
    file.oldest_dead_micros = (garbage > 0).then(|| rng.below(NOW));
    file.created_micros = rng.below(NOW);
    file.state = match rng.below(10) {
        0 => ValueFileState::Open,
        1 => ValueFileState::Unflushed,
        _ => ValueFileState::Settled,
    };
    file
}

/// Asserts, with independent formulas, that no value file needs a collection.
pub(super) fn assert_collected(tree: &TestTree, story: &str) {
    let (shape, design) = (&tree.shape, &tree.design);
    let usage = shape.value_usage();
    let is_settled = |one: &&ValueFileUsage| one.file.state == ValueFileState::Settled;
    // The engine removes dead files without a job.
    let settled = || usage.iter().filter(is_settled).filter(|one| !one.is_dead());
    let Values::Separate(separation) = design.values else {
        assert_eq!(settled().count(), 0, "separated values in {shape}from {story}");
        return;
    };
    let bytes: u64 = settled().map(|one| one.file.bytes).sum();
    let live: u64 = settled().map(|one| one.live_bytes).sum();
    let space = bytes as f64 / live.max(1) as f64;
    assert!(
        space <= f64::from(separation.space_percent) / 100.0 + 1e-9 || bytes == 0,
        "files take {space} times the live values in {shape}from {story}"
    );
    let limit = f64::from(separation.garbage_percent) / 100.0;
    let over: Vec<&ValueFileUsage> = settled()
        .filter(|one| 1.0 - one.live_bytes as f64 / one.file.bytes as f64 >= limit + 1e-9)
        .collect();
    let garbage: u64 = over.iter().map(|one| one.garbage_bytes()).sum();
    let refers = |used: &ValueRef| over.iter().any(|one| one.file.id == used.file);
    let users = shape.tables().filter(|table| table.value_refs.iter().any(refers));
    let rewritten: u64 = users.map(|table| table.size_bytes).sum();
    assert!(
        over.is_empty() || garbage < 4 * rewritten,
        "{garbage} bytes of garbage in tables of {rewritten} bytes: {shape}from {story}"
    );
}

fn live_in(shape: &TreeShape, job: &Compaction) -> u64 {
    let usage = shape.value_usage().into_iter();
    let victims = usage.filter(|one| job.relocated.binary_search(&one.file.id).is_ok());
    victims.map(|one| one.live_bytes).sum()
}

#[test]
fn collections_are_sound_bounded_and_end_with_every_file_in_its_limits() {
    let first = seed_from_env(70_000);
    let mut collections = 0;
    for seed in first..first + 600 {
        let mut rng = Rng::new(seed);
        let mut tree = random::simulation(&mut rng);
        tree.design.values = Values::Separate(separation(&mut rng));
        add(&mut rng, &mut tree);
        let story = format!("seed {seed}\n{}\n{}", tree.design, tree.shape);
        for step in 0.. {
            assert!(step < STEPS_MAX, "does not settle: {}from {story}", tree.shape);
            let Some(job) = tree.pick(&[]) else { break };
            assert_eq!(soundness::check(&tree.shape, &job), Ok(()), "{job}\nin {story}");
            if let Reason::Collection { file, .. } = job.reason {
                collections += 1;
                assert_one_table_for_a_gain(&tree, &job, file, &story);
            }
            let before = live_in(&tree.shape, &job);
            tree.cursors.advance(&job);
            tree.carry_out(&job);
            let after = live_in(&tree.shape, &job);
            assert!(job.relocated.is_empty() || after < before, "{job} relocates nothing: {story}");
        }
        assert_collected(&tree, &story);
    }
    assert!(collections > 1000, "only {collections} collections: the test proves nothing");
}

fn assert_one_table_for_a_gain(
    tree: &TestTree,
    job: &Compaction,
    first: crate::ValueFileId,
    story: &str,
) {
    assert_eq!(job.tables().count(), 1, "{job}");
    assert!(job.relocated.contains(&first), "{job} leaves out its first file");
    let usage = tree.shape.value_usage();
    let victims = usage.iter().filter(|one| job.relocated.binary_search(&one.file.id).is_ok());
    for victim in victims {
        assert_eq!(victim.file.state, ValueFileState::Settled, "{job} in {story}");
        assert!(victim.garbage_bytes() > 0, "{job} saves nothing in {story}");
    }
    let table = job.tables().next().unwrap();
    let refs = table.value_refs.iter();
    let moved = refs.filter(|used| used.file != first && job.relocated.contains(&used.file));
    let others: u64 = moved.map(|used| used.bytes).sum();
    let separation = tree.design.values.separation().unwrap();
    assert!(others <= 4 * separation.file_bytes, "{job} relocates {others} bytes in {story}");
}

#[test]
fn one_collection_runs_at_a_time_unless_values_are_overdue() {
    let first = seed_from_env(80_000);
    for seed in first..first + 200 {
        let mut rng = Rng::new(seed);
        let mut tree = random::simulation(&mut rng);
        tree.design.values = Values::Separate(separation(&mut rng));
        add(&mut rng, &mut tree);
        let mut in_progress: Vec<Compaction> = Vec::new();
        while let Some(job) = tree.pick(&in_progress) {
            let cause = |job: &Compaction| match job.reason {
                Reason::Collection { cause, .. } => Some(cause),
                _ => None,
            };
            let others = in_progress.iter().filter_map(cause).count();
            let may_begin = others == 0 || matches!(cause(&job), None | Some(CollectionCause::Age));
            assert!(may_begin, "seed {seed}: {job}");
            assert!(in_progress.iter().all(|other| !other.conflicts_with(&job)), "{job}");
            in_progress.push(job);
        }
    }
}

#[test]
fn a_change_to_inline_values_moves_all_of_them_back() {
    let first = seed_from_env(90_000);
    for seed in first..first + 100 {
        let mut rng = Rng::new(seed);
        let mut tree = random::simulation(&mut rng);
        tree.design.values = Values::Inline;
        add(&mut rng, &mut tree);
        let files = tree.shape.value_files.iter();
        let kept: Vec<_> =
            files.filter(|file| file.state != ValueFileState::Settled).cloned().collect();
        let story = format!("seed {seed}\n{}\n{}", tree.design, tree.shape);
        let inline_before = tree.shape.size_bytes();
        let moving = tree.shape.value_usage().into_iter();
        let moving = moving.filter(|one| one.file.state == ValueFileState::Settled);
        let moving: u64 = moving.map(|one| one.live_bytes).sum();
        for step in 0.. {
            assert!(step < STEPS_MAX, "does not settle: {}from {story}", tree.shape);
            let Some(job) = tree.pick(&[]) else { break };
            tree.cursors.advance(&job);
            tree.carry_out(&job);
        }
        let mut left = tree.shape.value_usage();
        left.retain(|usage| !usage.is_dead());
        let left: Vec<_> = left.into_iter().map(|usage| usage.file).collect();
        assert_eq!(left, kept, "{}from {story}", tree.shape);
        // Simulated merges round the sizes of their tables down.
        let grown = tree.shape.size_bytes().saturating_sub(inline_before);
        assert!(grown.abs_diff(moving) < 1 << 12, "{grown} {moving} {story}");
    }
}

#[test]
fn a_design_that_is_changed_to_separated_values_needs_no_job() {
    let shape = "L1 r1: 1=a..=z:1MiB,entries=100";
    let design: Design = "balanced; values=separate(1KiB)".parse().unwrap();
    assert_eq!(TestTree::new(shape.parse().unwrap(), design).pick(&[]), None);
}
