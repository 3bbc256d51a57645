//! Tests expiring values: tables dropped unread, expired values in merges, and deadlines.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use terrane_sim::{
    Arrival, InitialTree, MachineModel, ReadLoad, SimulatedTree, Simulation, SimulationOutcome,
    SimulationSetup, Skew, WriteLoad, WriteMix, initial_tree,
};

const RATE: f64 = 1000.0;
const RECORD_BYTES: f64 = 1000.0;

/// Runs writes of a mix on an initially empty tree.
fn run(design: &str, mix: WriteMix, seconds: f64) -> (SimulationOutcome, SimulatedTree) {
    let mut machine = MachineModel::default();
    machine.device.bytes_per_second = 1e12;
    let workload = WriteLoad {
        records: 20_000.0,
        key_bytes: 16.0,
        record_bytes: RECORD_BYTES,
        skew: Skew::Uniform,
        arrival: Arrival::Constant(RATE),
        writers: 1,
        mix,
        reads: ReadLoad::default(),
    };
    let design = format!("{design}; buffer=1MiB; table=1MiB").parse().unwrap();
    let mut setup = SimulationSetup::new(design, workload, machine);
    (setup.window_seconds, setup.check) = (1.0, true);
    let tree = initial_tree(&setup, InitialTree::Empty, 1);
    let (outcome, tree) = Simulation::new(&setup, tree).run(seconds);
    assert_eq!(outcome.stuck, None);
    (outcome, tree)
}

fn inserts(ttl_seconds: f64) -> WriteMix {
    WriteMix { inserts: 1.0, expiring: 1.0, ttl_seconds, ..WriteMix::default() }
}

/// Returns the maximum size of the tree in the second half of a run.
fn most_bytes(outcome: &SimulationOutcome) -> f64 {
    let half = &outcome.windows[outcome.windows.len() / 2..];
    half.iter().map(|window| window.level_bytes.iter().sum::<u64>()).max().unwrap() as f64
}

#[test]
fn a_tree_of_values_that_expire_holds_about_the_writes_of_a_lifetime() {
    let ttl = 100.0;
    for design in ["tiering T=4", "balanced", "leveling T=4"] {
        let (outcome, _) = run(design, inserts(ttl), 1000.0);
        let bytes = most_bytes(&outcome) / (ttl * RATE * RECORD_BYTES);
        assert!((1.0..2.5).contains(&bytes), "{design}: {bytes}");
        let (without, _) = run(design, WriteMix { expiring: 0.0, ..inserts(ttl) }, 1000.0);
        assert!(most_bytes(&without) > 4.0 * most_bytes(&outcome), "{design}");
        assert_eq!(without.totals.drops, 0);
    }
}

/// Without merges, every table is dropped once its last value has expired, so that only flushes
/// write.
#[test]
fn tables_are_dropped_unread_once_their_last_value_has_expired() {
    let (outcome, tree) = run("tiering T=16", inserts(10.0), 300.0);
    assert_eq!(outcome.totals.merges, 0);
    assert!(outcome.totals.drops > 200, "{:?}", outcome.totals);
    let held = outcome.totals.flushes - outcome.totals.drops;
    assert_eq!(tree.shape().run_count() as u64, held);
    // Ten seconds of writes cause ten flushes.
    assert!((9..=12).contains(&held), "{held}");
}

#[test]
fn one_lasting_value_keeps_its_table() {
    let mixed = WriteMix { expiring: 0.99, ..inserts(10.0) };
    let (outcome, _) = run("tiering T=16", mixed, 60.0);
    assert_eq!(outcome.totals.drops, 0);
}

/// Only a merge drops an expired value in a lower level, and the deadline triggers it.
#[test]
fn a_deadline_of_deletes_rewrites_tables_with_expired_values() {
    let half = WriteMix { expiring: 0.5, ..inserts(20.0) };
    let bytes = |design: &str| {
        let (outcome, tree) = run(design, half, 400.0);
        let expired = tree.shape().tables().filter_map(|table| table.dead_since(None)).min();
        (outcome.totals.merge_bytes, 400.0 - expired.map_or(400.0, |since| since as f64 / 1e6))
    };
    let (lazy, late) = bytes("tiering T=8");
    let (prompt, in_time) = bytes("tiering T=8; trigger=tombstone-ttl(30s)+run-count");
    assert!(late > 100.0, "{late}");
    assert!(in_time < 75.0, "{in_time}");
    assert!(prompt > lazy, "{prompt} {lazy}");
}
