//! Tests properties of all strategies on random trees.

use terrane_testkit::{Rng, seed_from_env};

use super::random;
use super::simulate::TestTree;
use crate::catalogue;
use crate::compaction::Compaction;
use crate::key_range::KeyRange;
use crate::pick::{manual, next_due_micros};
use crate::soundness;
use crate::strategy::trigger::{LevelSaturation, RunCount};
use crate::strategy::{Granularity, Intake, Trigger, TriggerKind};

/// More compactions than any tree of this size needs.
const STEPS_MAX: usize = 4000;

fn settle(tree: &mut TestTree, story: &str) {
    for _ in 0..STEPS_MAX {
        let Some(job) = tree.pick(&[]) else { return };
        assert_eq!(soundness::check(&tree.shape, &job), Ok(()), "{job}\nin {story}");
        tree.cursors.advance(&job);
        tree.carry_out(&job);
    }
    let next = tree.pick(&[]).map(|job| job.to_string());
    panic!("does not settle: {story}\nnow\n{}\nnext {next:?}", tree.shape);
}

fn story(seed: u64, tree: &TestTree) -> String {
    format!(
        "seed {seed}, snapshot {:?}, persistence {:?}\n{}\n{}",
        tree.oldest_snapshot, tree.delete_persistence_micros, tree.design, tree.shape
    )
}

#[test]
fn picks_on_random_trees_are_sound_and_settle() {
    let first = seed_from_env(1);
    for seed in first..first + 600 {
        let mut rng = Rng::new(seed);
        let mut tree = random::simulation(&mut rng);
        let story = story(seed, &tree);
        settle(&mut tree, &story);
        assert_settled(&tree, &story);
    }
}

#[test]
fn every_design_of_the_catalogue_settles_from_any_shape() {
    let first = seed_from_env(5000);
    for entry in catalogue::ALL {
        for seed in first..first + 25 {
            let mut rng = Rng::new(seed);
            let mut design = (entry.design)();
            random::small(&mut rng, &mut design);
            let mut tree = TestTree::new(random::shape(&mut rng), design);
            random::set_context(&mut rng, &mut tree);
            let story = format!("{}: {}", entry.name, story(seed, &tree));
            settle(&mut tree, &story);
            assert_settled(&tree, &story);
        }
    }
}

/// With slow merges and a steady stream of flushes, only adjacent runs are merged, and their number
/// stays small while flushes are of similar size.
#[test]
fn size_tiered_policies_merge_neighbours_while_flushes_come() {
    let registered = TriggerKind::ALL.iter().filter(|kind| kind.is_size_tiered());
    let mut policies: Vec<&str> = registered.flat_map(|kind| kind.info().small).copied().collect();
    policies.extend(["prefix(256KiB,4)", "concurrent(3,10)", "concurrent(2,4,2)", "universal"]);
    let first = seed_from_env(300);
    for seed in first..first + 200 {
        let mut rng = Rng::new(seed);
        let policy = *rng.pick(&policies);
        let text = format!(
            "tiering T=3 L0=3; granularity=run; movement=none; trigger={policy}; buffer=8KiB"
        );
        let mut tree = TestTree::new(crate::TreeShape::default(), text.parse().unwrap());
        let mut in_progress: Vec<Compaction> = Vec::new();
        let (mut flushed, mut most) = (0, 0);
        for _ in 0..400 {
            if rng.percent(50) {
                tree.flush(KeyRange::new(b"0000", Some(b"0100")), 4096 + rng.below(512));
                flushed += 1;
            }
            while let Some(job) = tree.pick(&in_progress) {
                let runs = job.inputs.len();
                assert!(runs > 1 && job.inputs.iter().all(|input| input.level == 0), "{job}");
                assert!(!policy.starts_with("prefix") || in_progress.is_empty(), "{job}");
                assert!(policy != "concurrent(3,10)" || (3..=10).contains(&runs), "{job}");
                in_progress.push(job);
            }
            if !in_progress.is_empty() && rng.percent(60) {
                let job = in_progress.swap_remove(rng.index(in_progress.len()));
                assert_eq!(soundness::check(&tree.shape, &job), Ok(()), "{job}");
                tree.carry_out(&job);
            }
            most = most.max(tree.shape.run_count());
        }
        // Without merges, each of the roughly two hundred flushes would leave a run.
        assert!(flushed > 100 && most < 40, "{policy}, seed {seed}: {most} runs of {flushed}");
    }
}

/// Asserts that the tree satisfies its design.
fn assert_settled(tree: &TestTree, story: &str) {
    super::values::assert_collected(tree, story);
    let (shape, design) = (&tree.shape, &tree.design);
    let admission = crate::admit(shape, 0, design);
    let waits = matches!(admission, crate::Admission::Stop(_)) && !design.strategy.is_manual();
    assert!(!waits, "writers stay stopped, {admission:?}: {shape} from {story}");
    let strategy = &design.strategy;
    let last = shape.last_level();
    for (index, level) in shape.levels.iter().enumerate() {
        let triggers = strategy.triggers.at(index);
        let allowed = strategy.runs_allowed(index, last) as usize;
        let by_size = strategy.size_tiered().is_some();
        let single_run = !by_size && strategy.is_single_run(index, last);
        if triggers.contains(&Trigger::from(RunCount)) || single_run {
            let runs = level.runs.len();
            assert!(
                runs <= allowed.max(usize::from(index > 0)),
                "level {index} of {shape} from {story}"
            );
        }
        if single_run && triggers.contains(&Trigger::from(LevelSaturation)) {
            let capacity = design.with_scaled_capacities(shape).capacity_bytes(index, last);
            assert!(level.size_bytes() <= capacity, "level {index} of {shape} from {story}");
        }
        let is_ttl = |trigger: &&Trigger| trigger.kind() == TriggerKind::TombstoneTtl;
        if tree.oldest_snapshot.is_none()
            && let Some(Trigger::TombstoneTtl(times)) = triggers.iter().find(is_ttl)
        {
            let deadline = strategy.tombstone_deadlines(&times.0, last).get(index);
            for table in level.runs.iter().flat_map(|run| &run.tables) {
                let since = table.dead_since(None).unwrap_or(tree.now_micros);
                assert!(
                    tree.now_micros.saturating_sub(since) < deadline,
                    "table {} of {shape} from {story}",
                    table.id
                );
            }
        }
    }
}

#[test]
fn deletes_are_persistent_in_time_under_any_design() {
    let first = seed_from_env(900);
    for seed in first..first + 150 {
        let mut rng = Rng::new(seed);
        let mut tree = random::simulation(&mut rng);
        tree.oldest_snapshot = None;
        let threshold = 1 + rng.below(random::NOW);
        tree.delete_persistence_micros = Some(threshold);
        let story = story(seed, &tree);
        // Time jumps to the next deadline whenever the tree has settled.
        for _ in 0..200 {
            settle(&mut tree, &story);
            for table in tree.shape.tables() {
                let since = table.dead_since(None).unwrap_or(tree.now_micros);
                let age = tree.now_micros.saturating_sub(since);
                assert!(
                    age < threshold,
                    "table {} is {age} old in {}from {story}",
                    table.id,
                    tree.shape
                );
            }
            for usage in tree.shape.value_usage() {
                let since = usage.file.oldest_dead_micros.unwrap_or(tree.now_micros);
                let can_go = usage.file.state == crate::ValueFileState::Settled && !usage.is_dead();
                let age = tree.now_micros.saturating_sub(since);
                assert!(!can_go || age < threshold, "{} {age}: {story}", usage.file.id);
            }
            match next_due_micros(&tree.input(&[])) {
                Some(due) => {
                    assert!(due > tree.now_micros, "{story}");
                    tree.now_micros = due;
                }
                None => break,
            }
        }
        let left = tree.shape.tables().filter(|table| table.has_tombstones()).count();
        assert_eq!(left, 0, "{}from {story}", tree.shape);
    }
}

#[test]
fn parallel_picks_are_sound_if_they_finish_in_any_order() {
    let first = seed_from_env(7);
    for seed in first..first + 300 {
        let mut rng = Rng::new(seed);
        let mut tree = random::simulation(&mut rng);
        let story = story(seed, &tree);
        let mut in_progress: Vec<Compaction> = Vec::new();
        for _ in 0..60 {
            match tree.pick(&in_progress).filter(|_| in_progress.len() < 4) {
                Some(job) => {
                    tree.cursors.advance(&job);
                    in_progress.push(job);
                }
                None if in_progress.is_empty() => break,
                None => {
                    let job = in_progress.swap_remove(rng.index(in_progress.len()));
                    assert_eq!(soundness::check(&tree.shape, &job), Ok(()), "{job}\nin {story}");
                    tree.carry_out(&job);
                }
            }
            if rng.percent(30) {
                tree.flush(KeyRange::new(b"0000", Some(b"0100")), 1 << 12);
            }
        }
    }
}

#[test]
fn manual_compaction_of_all_levels_leaves_one_run() {
    let first = seed_from_env(3);
    for seed in first..first + 200 {
        let mut rng = Rng::new(seed);
        let mut tree = random::simulation(&mut rng);
        let mut level = 0;
        while level <= tree.shape.last_level() {
            if let Some(job) = manual(&tree.input(&[]), level, &KeyRange::all()) {
                assert_eq!(soundness::check(&tree.shape, &job), Ok(()), "{job}\nin {}", tree.shape);
                let last = tree.shape.last_level();
                tree.carry_out(&job);
                if level == last && level > 0 {
                    break;
                }
            }
            level += 1;
        }
        assert!(tree.shape.run_count() <= 1, "seed {seed}: {}", tree.shape);
    }
}

#[test]
fn random_movement_depends_on_its_seed_alone() {
    let shape = "L1 r2: 1=a..=b:9MiB 2=c..=d:9MiB 3=e..=f:9MiB 4=g..=h:9MiB\nL2 r1: 9=a..=z:1MiB";
    let pick = |seed: u64| {
        let text = format!("leveling; base=20MiB; movement=random({seed})");
        let tree = TestTree::new(shape.parse().unwrap(), text.parse().unwrap());
        tree.pick(&[]).unwrap().inputs[0].tables[0].id.0
    };
    assert_eq!(pick(7), pick(7));
    let chosen: std::collections::BTreeSet<u64> = (1..40).map(pick).collect();
    assert_eq!(chosen.len(), 4, "every table is chosen by some seed");
}

#[test]
fn whole_levels_move_with_granularity_level() {
    let mut rng = Rng::new(seed_from_env(77));
    for _ in 0..100 {
        let mut tree = random::simulation(&mut rng);
        tree.design.strategy.intake = Intake::All;
        if tree.design.strategy.granularity.values() != [Granularity::Level] {
            continue;
        }
        let Some(job) = tree.pick(&[]) else { continue };
        if let crate::Reason::Triggered { trigger, level, .. } = job.reason
            && trigger.is_load()
        {
            let taken: usize =
                job.inputs.iter().filter(|i| i.level == level).map(|i| i.tables.len()).sum();
            assert_eq!(taken, tree.shape.level(level).table_count(), "{job} in {}", tree.shape);
        }
        tree.carry_out(&job);
    }
}

#[test]
fn any_design_prints_as_it_parses() {
    let first = seed_from_env(40);
    for seed in first..first + 2000 {
        let design = random::design(&mut Rng::new(seed));
        let text = design.to_string();
        assert_eq!(text.parse(), Ok(design.clone()), "seed {seed}: {text}");
        let settings = design.settings();
        let settings = settings.iter().map(|(key, value)| (*key, value.as_str()));
        let name = design.strategy.eagerness.to_string();
        assert_eq!(
            crate::Design::from_settings(&name, settings),
            Ok(design),
            "seed {seed}: {text}"
        );
    }
}
