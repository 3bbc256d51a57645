//! Results of two-phase tests as text, so that changes of the results can be reviewed.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write as _;

use terrane_sim::{
    Arrival, InitialTree, MachineModel, ReadLoad, SimulationSetup, Skew, WriteLoad, WriteMix,
    initial_tree, two_phases,
};
use terrane_testkit::datadriven::Case;

fn answer(case: &Case) -> String {
    let given = |name: &str| case.argument(name);
    let number =
        |name: &str, default: f64| given(name).map_or(default, |text| text.parse::<f64>().unwrap());
    let mut machine = MachineModel { budget: Some(100e6), slots: 16, ..MachineModel::default() };
    machine.device.bytes_per_second = 2e9;
    let workload = WriteLoad {
        records: number("records", 1e8),
        key_bytes: 16.0,
        record_bytes: 1024.0,
        skew: given("keys").map_or(Skew::Uniform, |text| text.parse().unwrap()),
        arrival: Arrival::Closed,
        writers: 1,
        mix: WriteMix::default(),
        reads: ReadLoad::default(),
    };
    let mut text = String::new();
    for line in case.input.lines() {
        let design = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        let setup = SimulationSetup::new(design, workload.clone(), machine);
        let tree = initial_tree(&setup, InitialTree::Auto, 1);
        let hours = number("hours", 2.0);
        let phases = two_phases(&setup, &tree, (hours * 3600.0, hours * 600.0), number("at", 0.95));
        let running = &phases.running;
        let _ = writeln!(
            text,
            "{:.0} writes/s, amplification {:.1}; at {:.0}: {:?}, runs {:.1} (most {}), stalls {:.0} s, p99 {:.2} s",
            phases.greatest_rate,
            phases.testing.totals.write_amplification().unwrap(),
            phases.arrival_rate,
            phases.verdict,
            running.mean_runs(),
            running.totals.most_runs,
            running.stalled_seconds(None),
            running.latencies.quantile(0.99).unwrap(),
        );
    }
    text
}

#[test]
fn two_phase_results_match_the_text() {
    terrane_testkit::datadriven::run("testdata/two-phases.txt", answer);
}
