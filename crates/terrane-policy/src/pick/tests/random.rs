//! Random trees, and random designs from the whole space.

use std::sync::Arc;

use terrane_testkit::Rng;

use super::simulate::TestTree;
use crate::access::TableAccess;
use crate::catalogue;
use crate::design::{Design, FlushMode, PerLevel, Values};
use crate::key_range::KeyRange;
use crate::scheduler::Scheduler;
use crate::shape::{AddedTable, Expiry, RunId, ShapeEdit, TableId, TableInfo, TreeShape};
use crate::strategy::trigger::{LevelSaturation, RunCount};
use crate::strategy::{Movement, Scope, Trigger, TriggerKind};

/// The current time of random trees, in microseconds.
pub(super) const NOW: u64 = 1_000_000;

/// Returns a random tree that satisfies the invariants of [`TreeShape`] but no others.
pub(super) fn shape(rng: &mut Rng) -> TreeShape {
    let mut edit = ShapeEdit::default();
    let (mut id, mut run) = (500, 100);
    for level in 0..rng.index(6) {
        for _ in 0..rng.index(5) {
            run -= 1;
            let mut at = rng.below(20);
            while at < 200 && rng.percent(85) {
                id -= 1;
                let end = at + 1 + rng.below(30);
                let table = Arc::new(table(rng, id, (at, end)));
                edit.added.push(AddedTable { level, run: RunId(run), table });
                at = end + rng.below(10);
            }
        }
    }
    TreeShape::default().apply(&edit).unwrap()
}

fn table(rng: &mut Rng, id: u64, (from, to): (u64, u64)) -> TableInfo {
    let key = |at: u64| format!("{at:04}").into_bytes();
    let range = KeyRange::new(&key(from), Some(&key(to)));
    let mut table = TableInfo::new(id, range, 1 + rng.below(1 << 16));
    table.entries = 1 + rng.below(100);
    table.tombstones = rng.below(2) * rng.below(table.entries + 1);
    table.created_micros = rng.below(NOW);
    table.smallest_seq = 1 + rng.below(500);
    table.largest_seq = table.smallest_seq + rng.below(500);
    if table.tombstones > 0 {
        table.oldest_tombstone_micros = Some(rng.below(NOW));
    }
    let values = table.entries - table.tombstones;
    if rng.below(4) == 0 && values > 0 {
        let (a, b) = (rng.below(2 * NOW), rng.below(2 * NOW));
        let (first_micros, last_micros) = (a.min(b), a.max(b));
        let entries = 1 + rng.below(values);
        table.expiry = Some(Expiry { entries, first_micros, last_micros });
    }
    table
}

/// Returns a catalogue design with small sizes, often with random primitives that are valid
/// together.
pub(super) fn design(rng: &mut Rng) -> Design {
    loop {
        let mut design = (rng.pick(catalogue::ALL).design)();
        small(rng, &mut design);
        interaction(rng, &mut design);
        if rng.percent(15) {
            size_tiered(rng, &mut design);
        } else if rng.percent(70) {
            primitives(rng, &mut design);
        }
        if design.validate().is_ok() {
            return design;
        }
    }
}

/// Sets sizes so small that random trees exceed them.
pub(super) fn small(rng: &mut Rng, design: &mut Design) {
    design.buffer_bytes = 1 << rng.between(10, 16);
    design.table_bytes = 1 << rng.between(10, 16);
    let strategy = &mut design.strategy;
    if !matches!(strategy.growth, crate::strategy::Growth::Capacities(_)) {
        strategy.base_bytes = rng.percent(50).then(|| 1 << rng.between(10, 18));
    }
    strategy.size_ratio = u32::try_from(rng.between(2, 10)).unwrap();
    strategy.level0_runs = u32::try_from(rng.between(1, 5)).unwrap();
}

/// Sets a random scheduler, random limits on writers and a random flush mode.
fn interaction(rng: &mut Rng, design: &mut Design) {
    design.scheduler =
        if rng.percent(20) { Scheduler::Greedy { merges: 2 } } else { *rng.pick(Scheduler::ALL) };
    let limits = &mut design.constraint;
    limits.limit = rng
        .pick(&["level0", "local(2x)", "local(2)", "global(3x)", "global(3)", "global(50)"])
        .parse()
        .unwrap();
    limits.violation = rng.pick(&["slow-down", "stop", "spread", "none"]).parse().unwrap();
    limits.max_rate = rng.percent(20).then_some(4000);
    if rng.percent(30) {
        design.flush = FlushMode::Merge;
    }
    if rng.percent(40) {
        design.values = Values::Separate(super::values::separation(rng));
    }
}

/// Sets a size-tiered policy, with random triggers that may be combined with it.
fn size_tiered(rng: &mut Rng, design: &mut Design) {
    let policies = small_triggers(|scope| scope == Scope::SizeTiered);
    let mut chosen: Vec<Trigger> = triggers(rng);
    chosen.retain(|trigger| !trigger.kind().is_load());
    chosen.insert(rng.index(chosen.len() + 1), rng.pick(&policies).clone());
    let strategy = &mut design.strategy;
    strategy.eagerness = crate::strategy::Eagerness::Tiering;
    strategy.triggers = chosen.into();
    strategy.granularity = crate::strategy::Granularity::Run.into();
    strategy.movement = Vec::new().into();
}

fn primitives(rng: &mut Rng, design: &mut Design) {
    let strategy = &mut design.strategy;
    let eagerness =
        ["leveling", "1-leveling", "tiering", "lazy-leveling", "4,T-1,2,last:1", "2", "3,last:2"];
    let eagerness = *rng.pick(&eagerness);
    strategy.eagerness = eagerness
        .parse()
        .unwrap_or_else(|_| crate::strategy::Eagerness::Hybrid(eagerness.parse().unwrap()));
    strategy.growth = rng
        .pick(&["fixed", "fixed", "dynamic", "2,5,3", "bush(2)", "4KiB,64KiB,1MiB"])
        .parse()
        .unwrap();
    if matches!(strategy.growth, crate::strategy::Growth::Capacities(_)) {
        strategy.base_bytes = None;
    }
    strategy.granularity = per_level(rng, |rng| {
        let texts = [
            "level",
            "run",
            "file",
            "files(2)",
            "files(3)",
            "file(expand=3)",
            "file(expand=9,move=3)",
        ];
        rng.pick(&texts).parse().unwrap()
    });
    strategy.tombstone_weight = if rng.percent(25) { 2 } else { 0 };
    strategy.intake = rng.pick(&["all", "exact"]).parse().unwrap();
    strategy.triggers = per_level(rng, triggers);
    strategy.movement = per_level(rng, movement);
}

fn per_level<T>(rng: &mut Rng, mut make: impl FnMut(&mut Rng) -> T) -> PerLevel<T> {
    let count = if rng.percent(60) { 0 } else { rng.index(4) };
    let first = make(rng);
    let rest: Vec<T> = (0..count).map(|_| make(rng)).collect();
    PerLevel::new(first, rest)
}

fn triggers(rng: &mut Rng) -> Vec<Trigger> {
    let often = [Trigger::from(LevelSaturation), Trigger::from(RunCount)];
    let mut triggers: Vec<Trigger> = Vec::new();
    for trigger in small_triggers(|scope| !matches!(scope, Scope::SizeTiered | Scope::Nothing)) {
        if !often.contains(&trigger) && rng.percent(20) {
            triggers.push(trigger);
        }
    }
    for trigger in often {
        if rng.percent(70) {
            triggers.insert(rng.index(triggers.len() + 1), trigger);
        }
    }
    let mut seen = Vec::new();
    triggers.retain(|trigger| {
        let is_new = !seen.contains(&trigger.kind());
        seen.push(trigger.kind());
        is_new
    });
    if triggers.is_empty() { vec![LevelSaturation.into()] } else { triggers }
}

/// Returns every registered trigger of these scopes, with settings that fire on small trees.
fn small_triggers(has: impl Fn(Scope) -> bool) -> Vec<Trigger> {
    let infos = TriggerKind::ALL.iter().map(|kind| kind.info()).filter(|info| has(info.scope));
    infos.flat_map(|info| info.small).map(|text| text.parse().unwrap()).collect()
}

fn movement(rng: &mut Rng) -> Vec<Movement> {
    let mut rules = Vec::new();
    for rule in Movement::ALL.iter().copied().filter(|rule| !rule.ranks_all()) {
        if rng.percent(20) {
            rules.push(rule);
        }
    }
    let always: Vec<Movement> =
        Movement::ALL.iter().copied().filter(|rule| rule.ranks_all()).collect();
    if rules.is_empty() || rng.percent(70) {
        rules.push(*rng.pick(&always));
    }
    rules
}

/// Returns a random tree with a random design and a random context.
pub(super) fn simulation(rng: &mut Rng) -> TestTree {
    let mut tree = TestTree::new(shape(rng), design(rng));
    set_context(rng, &mut tree);
    if rng.percent(40) {
        super::values::add(rng, &mut tree);
    }
    tree
}

/// Sets a random time, snapshot, delete persistence and read counts.
pub(super) fn set_context(rng: &mut Rng, tree: &mut TestTree) {
    tree.now_micros = NOW;
    tree.oldest_snapshot = rng.percent(30).then(|| rng.below(1000));
    tree.delete_persistence_micros = rng.percent(30).then(|| 1 + rng.below(NOW));
    let ids: Vec<TableId> = tree.shape.tables().map(|table| table.id).collect();
    tree.accesses = ids
        .into_iter()
        .map(|id| (id, TableAccess { reads: rng.below(1000), last_micros: rng.below(NOW) }))
        .collect();
}
