//! Tests that a trace describes the tree completely, and that recording one changes nothing.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::collections::{BTreeMap, BTreeSet};

use terrane_policy::catalogue::ALL;
use terrane_policy::{Admission, TableId};
use terrane_sim::{
    Arrival, InitialTree, MachineModel, OtherTree, ReadLoad, SimulatedTree, Simulation,
    SimulationOutcome, SimulationSetup, Skew, TableChange, TraceKind, TracedTable, WriteLoad,
    WriteMix, initial_tree, initial_trees,
};

/// A setup in which each memtable holds about a thousand writes.
fn setup(design: &str, budget: f64) -> SimulationSetup {
    let design = design.parse().unwrap();
    let workload = WriteLoad {
        records: 20_000.0,
        key_bytes: 16.0,
        record_bytes: 1000.0,
        skew: Skew::Zipf(0.9),
        arrival: Arrival::Closed,
        writers: 2,
        mix: WriteMix { inserts: 0.1, expiring: 0.2, ttl_seconds: 20.0, ..WriteMix::default() },
        reads: ReadLoad::default(),
    };
    let mut setup = SimulationSetup::new(design, workload, MachineModel::default());
    setup.machine.budget = Some(budget);
    setup.window_seconds = 1.0;
    setup
}

fn small(text: &str) -> String {
    format!("{text}; buffer=1MiB; table=512KiB")
}

fn run(setup: &SimulationSetup) -> (SimulationOutcome, SimulatedTree) {
    let is_fresh = setup.workload.mix.inserts == 1.0;
    let start = if is_fresh { InitialTree::Empty } else { InitialTree::Loaded };
    Simulation::new(setup, initial_tree(setup, start, 1)).run(30.0)
}

/// Rebuilds a tree from a trace, and checks the order of events.
#[derive(Default)]
struct Rebuilt {
    tables: BTreeMap<TableId, TracedTable>,
    /// The input tables of each running merge.
    running: BTreeMap<u64, Vec<TableId>>,
    is_flushing: bool,
    reasons: BTreeSet<String>,
}

impl Rebuilt {
    fn apply(&mut self, changes: &[TableChange]) {
        for change in changes {
            match change {
                TableChange::Added(table) => {
                    assert!(self.tables.insert(table.table, *table).is_none(), "{table:?}");
                }
                TableChange::Removed(table) => {
                    assert!(self.tables.remove(table).is_some(), "{table:?} is removed twice");
                }
            }
        }
    }

    fn play(&mut self, what: &TraceKind) {
        match what {
            TraceKind::Start(tables) => {
                self.tables.extend(tables.iter().map(|table| (table.table, *table)));
            }
            TraceKind::FlushBegan { .. } => {
                assert!(!std::mem::replace(&mut self.is_flushing, true), "a tree has one flush");
            }
            TraceKind::FlushEnded(changes) => {
                assert!(std::mem::replace(&mut self.is_flushing, false));
                self.apply(changes);
            }
            TraceKind::MergeBegan { job, merge, .. } => {
                let has = |table: &TableId| self.tables.contains_key(table);
                assert!(merge.inputs.iter().all(has), "{merge:?}");
                assert!(self.running.insert(*job, merge.inputs.clone()).is_none());
                self.reasons.insert(merge.reason.clone());
            }
            TraceKind::MergeShare { job, done, share } => {
                assert!(self.running.contains_key(job) && (0.0..=1.0).contains(done));
                assert!((0.0..=1.0).contains(share));
            }
            TraceKind::MergeEnded { job, changes } => {
                assert!(self.running.remove(job).is_some());
                self.apply(changes);
            }
            TraceKind::Moved { changes, .. } | TraceKind::Dropped(changes) => self.apply(changes),
            TraceKind::MemtableFull(_)
            | TraceKind::Admission(_)
            | TraceKind::Blocked(..)
            | TraceKind::Unblocked => {}
        }
    }

    /// Asserts that these are the tables of a tree.
    fn assert_is(&self, tree: &SimulatedTree, design: &str) {
        let levels = tree.shape().levels.iter().enumerate();
        let mut left = self.tables.clone();
        for (level, run) in
            levels.flat_map(|(at, level)| level.runs.iter().map(move |run| (at, run)))
        {
            for table in &run.tables {
                let traced =
                    left.remove(&table.id).unwrap_or_else(|| panic!("{design}: {table:?}"));
                let is = (traced.level, traced.run, traced.bytes, traced.entries);
                assert_eq!(is, (level, run.id, table.size_bytes, table.entries), "{design}");
                assert!(traced.start < traced.end && traced.end <= 1.0, "{design}: {traced:?}");
            }
        }
        assert!(left.is_empty(), "{design}: {left:?}");
    }
}

#[test]
fn a_trace_rebuilds_the_tree_of_every_design() {
    let mut kinds = [0_usize; 4];
    for (number, named) in ALL.iter().enumerate() {
        let mut setup = setup(&small(named.name), 20e6);
        if number % 3 == 0 {
            (setup.workload.mix.inserts, setup.workload.mix.expiring) = (1.0, 1.0);
            setup.workload.mix.ttl_seconds = 5.0;
        }
        let (plain, _) = run(&setup);
        setup.trace_max = 10_000_000;
        let (outcome, tree) = run(&setup);
        assert_eq!(outcome.totals, plain.totals, "{}: tracing changes nothing", named.name);
        assert_eq!((outcome.trace_ended, plain.trace.len()), (None, 0));
        let mut rebuilt = Rebuilt::default();
        let mut at = 0.0;
        for event in &outcome.trace {
            assert!(event.at >= at && event.tree == 0);
            at = event.at;
            rebuilt.play(&event.what);
            kinds[0] += usize::from(matches!(event.what, TraceKind::Moved { .. }));
            kinds[1] += usize::from(matches!(event.what, TraceKind::Dropped(_)));
            kinds[2] += usize::from(
                matches!(event.what, TraceKind::MergeShare { share, .. } if share == 0.0),
            );
            kinds[3] += usize::from(matches!(event.what, TraceKind::Admission(Admission::Stop(_))));
        }
        rebuilt.assert_is(&tree, named.name);
        let ended = |kind: fn(&TraceKind) -> bool| {
            outcome.trace.iter().filter(|event| kind(&event.what)).count() as u64
        };
        assert_eq!(ended(|kind| matches!(kind, TraceKind::FlushEnded(_))), outcome.totals.flushes);
        assert_eq!(
            ended(|kind| matches!(kind, TraceKind::MergeEnded { .. })),
            outcome.totals.merges
        );
        assert_eq!(ended(|kind| matches!(kind, TraceKind::Moved { .. })), outcome.totals.moves);
        let stops = outcome.stalls.len() as u64;
        assert_eq!(ended(|kind| matches!(kind, TraceKind::Blocked(..))), stops);
        assert_eq!(ended(|kind| matches!(kind, TraceKind::Unblocked)), stops);
        let windows = &outcome.windows;
        assert!(windows.iter().any(|window| window.latencies.is_some()), "{}", named.name);
        assert!(plain.windows.iter().all(|window| window.latencies.is_none()));
    }
    assert!(kinds.iter().all(|count| *count > 0), "{kinds:?}");
}

#[test]
fn a_trace_that_is_full_ends_and_the_simulation_continues() {
    let mut setup = setup(&small("leveling"), 20e6);
    let (plain, _) = run(&setup);
    setup.trace_max = 200;
    let (outcome, _) = run(&setup);
    assert_eq!(outcome.totals, plain.totals);
    let ended = outcome.trace_ended.unwrap();
    assert!(ended > 0.0 && ended < outcome.seconds && outcome.trace.len() < 200);
    assert!(outcome.trace.iter().all(|event| event.at <= ended));
}

/// The latencies of windows are those of the whole, cut into pieces.
#[test]
fn windows_have_the_latencies_of_their_writes() {
    let mut setup = setup(&small("tiering T=3; stop=7; delay=6; violation=stop"), 5e6);
    setup.trace_max = 1_000_000;
    let (outcome, _) = run(&setup);
    let longest = outcome.windows.iter().filter_map(|window| window.latencies);
    let longest = longest.map(|latencies| latencies.longest).reduce(f64::max).unwrap();
    assert_eq!(Some(longest), outcome.latencies.quantile(1.0));
    assert!(longest > 0.5, "writers were stopped");
    let median = outcome.latencies.quantile(0.5).unwrap();
    assert!(
        outcome.windows.iter().filter_map(|window| window.latencies).any(|one| one.p50 <= median)
    );
}

/// Writers that one tree stops, and then another one, are stopped by one of them at a time.
#[test]
fn stops_of_several_trees_follow_each_other() {
    let slow = small("leveling T=4; stop=5; delay=4; L0=1");
    let mut setup = setup(&slow, 3e6);
    let other = |share| OtherTree { design: slow.parse().unwrap(), share };
    setup.others = vec![other(1.0), other(0.7)];
    setup.trace_max = 1_000_000;
    let trees = initial_trees(&setup, InitialTree::Loaded, 1);
    let (outcome, _) = Simulation::of_trees(&setup, trees).run_trees(300.0);
    let mut stopped = None;
    let mut by = BTreeSet::new();
    for event in &outcome.trace {
        match event.what {
            TraceKind::Blocked(..) => assert_eq!(stopped.replace(event.tree), None, "{event:?}"),
            TraceKind::Unblocked => assert_eq!(stopped.take(), Some(event.tree), "{event:?}"),
            _ => continue,
        }
        by.insert(event.tree);
    }
    assert!(by.len() > 1, "{by:?}");
    let passed = outcome.stalls.windows(2).any(|two| two[0].until == two[1].from);
    assert!(passed, "no stop passed from one tree to another");
}
