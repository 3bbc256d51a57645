//! Tests several trees that share writers, the gate and the budget.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use terrane_policy::Scheduler;
use terrane_sim::{
    Arrival, InitialTree, MachineModel, OtherTree, ReadLoad, Simulation, SimulationOutcome,
    SimulationSetup, Skew, WriteLoad, WriteMix, initial_tree, initial_trees,
};

const SMALL: &str = "buffer=256KiB; table=256KiB; delay=12; stop=16; buffers=3";

fn setup(trees: &[(&str, f64)], arrival: Arrival) -> SimulationSetup {
    let mut machine = MachineModel { budget: Some(10e6), slots: 1, ..MachineModel::default() };
    machine.device.bytes_per_second = 1e12;
    machine.device.request_seconds = 0.0;
    machine.costs.merge_seconds = 0.0;
    machine.costs.flush_seconds = 0.0;
    let workload = WriteLoad {
        records: 20_000.0,
        key_bytes: 16.0,
        record_bytes: 1000.0,
        skew: Skew::Uniform,
        arrival,
        writers: 1,
        mix: WriteMix::default(),
        reads: ReadLoad::default(),
    };
    let design = |text: &str| format!("{text}; {SMALL}").parse().unwrap();
    let (first, others) = trees.split_first().unwrap();
    let other = |(text, share): &(&str, f64)| OtherTree { design: design(text), share: *share };
    let mut setup = SimulationSetup::new(design(first.0), workload, machine);
    (setup.share, setup.others) = (first.1, others.iter().map(other).collect());
    (setup.window_seconds, setup.check) = (1.0, true);
    setup
}

fn run(setup: &SimulationSetup, seconds: f64) -> SimulationOutcome {
    let trees = initial_trees(setup, InitialTree::Loaded, 1);
    let (outcome, trees) = Simulation::of_trees(setup, trees).run_trees(seconds);
    assert_eq!(outcome.stuck, None);
    assert_eq!(trees.len(), 1 + setup.others.len());
    outcome
}

#[test]
fn one_tree_of_a_list_is_the_same_as_one_tree() {
    let setup = setup(&[("1-leveling T=4; L0=4", 3.0)], Arrival::Closed);
    let tree = initial_tree(&setup, InitialTree::Loaded, 1);
    let alone = Simulation::new(&setup, tree).run(60.0).0;
    let listed = run(&setup, 60.0);
    assert_eq!(alone.totals, listed.totals);
    assert_eq!(listed.trees[0].merges, listed.totals.merges);
    assert_eq!(listed.trees[0].flushes, listed.totals.flushes);
}

#[test]
fn equal_trees_get_equal_work_and_together_the_rate_of_the_budget() {
    for scheduler in Scheduler::ALL {
        let design = format!("tiering T=3; scheduler={scheduler}");
        let outcome = run(&setup(&[(&design, 1.0), (&design, 1.0)], Arrival::Closed), 120.0);
        let [a, b] = &outcome.trees[..] else { panic!("two trees") };
        let ratio = a.written_bytes / b.written_bytes;
        assert!((0.9..1.1).contains(&ratio), "{scheduler}: {ratio}");
        assert!(a.merges.min(b.merges) > 50, "{scheduler}: {a:?} {b:?}");
        let written = a.written_bytes + b.written_bytes;
        assert!((0.98..1.01).contains(&(written / 120.0 / 10e6)), "{scheduler}: {written}");
        let totals = &outcome.totals;
        assert_eq!((a.merges + b.merges, a.flushes + b.flushes), (totals.merges, totals.flushes));
    }
}

/// If the trees did not take turns, the tree with 97 % of the writes would keep the slot, and the
/// runs of the other tree would grow until it stops all writers.
#[test]
fn a_tree_with_few_writes_is_not_starved_by_a_saturated_one() {
    for scheduler in Scheduler::ALL {
        let design = format!("tiering T=3; scheduler={scheduler}");
        let outcome = run(&setup(&[(&design, 97.0), (&design, 3.0)], Arrival::Closed), 300.0);
        let [busy, idle] = &outcome.trees[..] else { panic!("two trees") };
        assert!(idle.merges > 20 && idle.most_runs <= 20, "{scheduler}: {idle:?} {busy:?}");
        let stalled = [0, 1].map(|tree| outcome.seconds_stalled_by(tree));
        assert!(stalled[0] > 100.0 && stalled[1] < 0.01 * stalled[0], "{scheduler}: {stalled:?}");
    }
}

#[test]
fn a_tree_that_stops_its_writers_stops_all() {
    // The second tree can never merge as fast as its share of the writes arrives.
    let trees = [("tiering T=3", 1.0), ("leveling T=10; granularity=level; stop=4; delay=3", 1.0)];
    let both = run(&setup(&trees, Arrival::Closed), 120.0);
    let stalled = [0, 1].map(|tree| both.seconds_stalled_by(tree));
    assert!(stalled[1] > 60.0 && stalled[0] < 0.25 * stalled[1], "{stalled:?} {:?}", both.trees);
    let writes = |tree: usize| both.trees[tree].flushes as f64;
    assert!((0.9..1.1).contains(&(writes(0) / writes(1))), "{:?}", both.trees);
}
