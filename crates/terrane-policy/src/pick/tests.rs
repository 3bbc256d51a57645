//! What strategies pick, as text; and as properties on random trees.

use std::fmt::Write;
use std::sync::Arc;

use terrane_testkit::{Rng, datadriven, seed_from_env};

use super::*;
use crate::catalogue;
use crate::compaction::{Group, Placement};
use crate::shape::{AddedTable, RunId, ShapeEdit, TableId, TableInfo};
use crate::soundness;

/// Carries a compaction out without data: merged groups become tables of at most `table_bytes`.
fn carry_out(shape: &TreeShape, job: &Compaction, design: &Design, next: &mut u64) -> TreeShape {
    let run = match job.output.placement {
        Placement::Join(run) => run,
        Placement::NewRun => {
            *next += 1;
            RunId(*next)
        }
    };
    let mut edit = ShapeEdit::default();
    let level = job.output.level;
    for group in job.groups(shape) {
        match group {
            Group::Keep(_) => {}
            Group::Move(table) => {
                edit.removed.push(table.id);
                edit.added.push(AddedTable { level, run, table });
            }
            Group::Merge(tables) => {
                edit.removed.extend(tables.iter().map(|table| table.id));
                for table in merged(&tables, design, next) {
                    edit.added.push(AddedTable { level, run, table });
                }
            }
        }
    }
    shape.apply(&edit).unwrap()
}

/// Splits the hull of `tables` at their own bounds, two at a time.
fn merged(tables: &[Arc<TableInfo>], design: &Design, next: &mut u64) -> Vec<Arc<TableInfo>> {
    let hull = KeyRange::hull_of(tables.iter().map(|table| &table.range)).unwrap();
    let bytes: u64 = tables.iter().map(|table| table.size_bytes).sum();
    let mut cuts: Vec<Arc<[u8]>> = tables.iter().map(|table| table.range.start.clone()).collect();
    cuts.sort();
    cuts.dedup();
    cuts.retain(|cut| *cut != hull.start);
    let wanted = usize::try_from(bytes / design.table_bytes).unwrap();
    cuts.truncate(wanted);
    let pieces = cuts.len() as u64 + 1;
    let mut start = hull.start.clone();
    let mut made = Vec::new();
    for end in cuts.into_iter().map(Some).chain([hull.end]) {
        *next += 1;
        let range = KeyRange { start: start.clone(), end: end.clone() };
        made.push(Arc::new(TableInfo::new(*next, range, bytes / pieces)));
        start = end.unwrap_or(start);
    }
    made
}

#[test]
fn picks_are_as_written_down() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/pick.txt");
    datadriven::run(path, |case| {
        let design: Design = case.argument("design").unwrap_or(catalogue::DEFAULT).parse().unwrap();
        let mut shape: TreeShape = case.input.parse().unwrap();
        let mut cursors = Cursors::default();
        let mut next = 1000;
        let mut text = String::new();
        match case.directive.as_str() {
            "pick" => {
                let input = PickInput {
                    shape: &shape,
                    design: &design,
                    in_progress: &[],
                    cursors: &cursors,
                };
                return pick(&input).map_or("nothing".into(), |job| job.to_string());
            }
            "manual" => {
                let range: TableInfo =
                    format!("1={}:1", case.argument("range").unwrap()).parse().unwrap();
                for level in 0.. {
                    if level > shape.last_level() {
                        break;
                    }
                    let input = PickInput {
                        shape: &shape,
                        design: &design,
                        in_progress: &[],
                        cursors: &cursors,
                    };
                    let Some(job) = manual(&input, level, &range.range) else { continue };
                    writeln!(text, "{job}").unwrap();
                    shape = carry_out(&shape, &job, &design, &mut next);
                }
            }
            "settle" => loop {
                let input = PickInput {
                    shape: &shape,
                    design: &design,
                    in_progress: &[],
                    cursors: &cursors,
                };
                let Some(job) = pick(&input) else { break };
                writeln!(text, "{job}").unwrap();
                cursors.advance(&job);
                shape = carry_out(&shape, &job, &design, &mut next);
            },
            "parallel" => {
                let mut in_progress = Vec::new();
                loop {
                    let input = PickInput {
                        shape: &shape,
                        design: &design,
                        in_progress: &in_progress,
                        cursors: &cursors,
                    };
                    let Some(job) = pick(&input) else { break };
                    writeln!(text, "{job}").unwrap();
                    in_progress.push(job);
                }
            }
            other => panic!("line {}: unknown directive {other}", case.line),
        }
        text + &shape.to_string()
    });
}

/// A random tree that keeps the invariants of shapes, and nothing else.
fn random_shape(rng: &mut Rng) -> TreeShape {
    let mut edit = ShapeEdit::default();
    let (mut id, mut run) = (500, 100);
    for level in 0..rng.index(6) {
        for _ in 0..rng.index(5) {
            run -= 1;
            let mut at = rng.below(20);
            while at < 200 && rng.percent(85) {
                id -= 1;
                let end = at + 1 + rng.below(30);
                let key = |at: u64| format!("{at:04}").into_bytes();
                let range = KeyRange::new(&key(at), Some(&key(end)));
                let mut table = TableInfo::new(id, range, 1 + rng.below(1 << 16));
                table.tombstones = rng.below(2) * rng.below(5);
                edit.added.push(AddedTable { level, run: RunId(run), table: Arc::new(table) });
                at = end + rng.below(10);
            }
        }
    }
    TreeShape::default().apply(&edit).unwrap()
}

fn random_design(rng: &mut Rng) -> Design {
    let mut design = (rng.pick(catalogue::ALL).design)();
    design.buffer_bytes = 1 << rng.between(10, 16);
    design.table_bytes = 1 << rng.between(10, 16);
    design.strategy.base_bytes = rng.percent(50).then(|| 1 << rng.between(10, 18));
    design.strategy.size_ratio = u32::try_from(rng.between(2, 10)).unwrap();
    design.strategy.level0_runs = u32::try_from(rng.between(1, 5)).unwrap();
    design.strategy.granularity = *rng.pick(&[Granularity::File, Granularity::Level]);
    design.strategy.movement =
        vec![*rng.pick(&[crate::Movement::RoundRobin, crate::Movement::LeastOverlap])];
    if rng.percent(30) {
        design.strategy.triggers = vec![Trigger::LevelSaturation];
    }
    design
}

#[test]
fn picks_on_random_trees_are_sound_and_settle() {
    let seed = seed_from_env(1);
    for round in 0..400 {
        let mut rng = Rng::new(seed.wrapping_add(round));
        let (mut shape, design) = (random_shape(&mut rng), random_design(&mut rng));
        let story = format!("seed {}\n{design}\n{shape}", seed.wrapping_add(round));
        let (mut cursors, mut next) = (Cursors::default(), 1000);
        let mut steps = 0;
        loop {
            let input =
                PickInput { shape: &shape, design: &design, in_progress: &[], cursors: &cursors };
            let Some(job) = pick(&input) else { break };
            assert_eq!(soundness::check(&shape, &job), Ok(()), "{job}\nin {story}");
            cursors.advance(&job);
            shape = carry_out(&shape, &job, &design, &mut next);
            steps += 1;
            assert!(steps < 2000, "does not settle: {story}");
        }
        assert_at_rest(&shape, &design, &story);
    }
}

/// No level holds more runs than it may, nor, where it is one run, more bytes.
fn assert_at_rest(shape: &TreeShape, design: &Design, story: &str) {
    let last = shape.last_level();
    let counts = design.strategy.triggers.contains(&Trigger::RunCount);
    for (index, level) in shape.levels.iter().enumerate() {
        let allowed = design.strategy.runs_allowed(index, last) as usize;
        if counts || design.strategy.is_single_run(index, last) {
            assert!(level.runs.len() <= allowed, "level {index} of {shape} from {story}");
        }
        if design.strategy.is_single_run(index, last)
            && design.strategy.triggers.contains(&Trigger::LevelSaturation)
        {
            assert!(
                level.size_bytes() <= design.capacity_bytes(index),
                "level {index} of {shape} from {story}"
            );
        }
    }
}

#[test]
fn parallel_picks_stay_sound_in_any_order_of_finishing() {
    let seed = seed_from_env(7);
    for round in 0..200 {
        let mut rng = Rng::new(seed.wrapping_add(round));
        let (mut shape, design) = (random_shape(&mut rng), random_design(&mut rng));
        let story = format!("seed {}\n{design}\n{shape}", seed.wrapping_add(round));
        let (mut cursors, mut next) = (Cursors::default(), 1000);
        let mut in_progress: Vec<Compaction> = Vec::new();
        for _ in 0..60 {
            let input = PickInput {
                shape: &shape,
                design: &design,
                in_progress: &in_progress,
                cursors: &cursors,
            };
            match pick(&input).filter(|_| in_progress.len() < 4) {
                Some(job) => {
                    cursors.advance(&job);
                    in_progress.push(job);
                }
                None if in_progress.is_empty() => break,
                None => {
                    let job = in_progress.swap_remove(rng.index(in_progress.len()));
                    assert_eq!(soundness::check(&shape, &job), Ok(()), "{job}\nin {story}");
                    shape = carry_out(&shape, &job, &design, &mut next);
                }
            }
            if rng.percent(30) {
                next += 2;
                let range = KeyRange::new(b"0000", Some(b"0100"));
                let table = Arc::new(TableInfo::new(next, range, 1 << 12));
                let added = vec![AddedTable { level: 0, run: RunId(next + 1), table }];
                shape = shape.apply(&ShapeEdit { removed: Vec::new(), added }).unwrap();
            }
        }
    }
}

#[test]
fn manual_walk_leaves_one_run_over_its_range() {
    let seed = seed_from_env(3);
    for round in 0..200 {
        let mut rng = Rng::new(seed.wrapping_add(round));
        let (mut shape, design) = (random_shape(&mut rng), random_design(&mut rng));
        let mut next = 1000;
        let mut level = 0;
        while level <= shape.last_level() {
            let cursors = Cursors::default();
            let input =
                PickInput { shape: &shape, design: &design, in_progress: &[], cursors: &cursors };
            if let Some(job) = manual(&input, level, &KeyRange::all()) {
                assert_eq!(soundness::check(&shape, &job), Ok(()), "{job}\nin {shape}");
                let last = shape.last_level();
                shape = carry_out(&shape, &job, &design, &mut next);
                if level == last && level > 0 {
                    break;
                }
            }
            level += 1;
        }
        assert!(shape.run_count() <= 1, "seed {}: {shape}", seed.wrapping_add(round));
    }
}

#[test]
fn dents_figure_1_needs_two_merges() {
    let design: Design = "dent T=2 L0=2; buffer=1KiB".parse().unwrap();
    let shape: TreeShape = "L0 r3: 3=a..=f:1KiB\nL0 r2: 2=a..=f:1KiB".parse().unwrap();
    let cursors = Cursors::default();
    let input = PickInput { shape: &shape, design: &design, in_progress: &[], cursors: &cursors };
    let job = pick(&input).unwrap();
    let after = carry_out(&shape, &job, &design, &mut 10);
    assert_eq!(job.tables().map(|table| table.id).collect::<Vec<_>>(), [TableId(3), TableId(2)]);
    assert_eq!((after.level(0).runs.len(), after.level(1).runs.len()), (0, 1));
}
