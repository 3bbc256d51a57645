//! What simulations found, and simulations whose outcome is worth a look when it changes.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::fmt::Write as _;

use terrane_sim::{Arrival, Machine, Setup, Skew, Start, Workload, begin, two_phases};
use terrane_testkit::datadriven::Case;

fn answer(case: &Case) -> String {
    let given = |name: &str| case.argument(name);
    let number =
        |name: &str, default: f64| given(name).map_or(default, |text| text.parse::<f64>().unwrap());
    let mut machine = Machine { budget: Some(100e6), places: 16, ..Machine::default() };
    machine.device.bytes_per_second = 2e9;
    let workload = Workload {
        records: number("records", 1e8),
        record_bytes: 1024.0,
        skew: given("keys").map_or(Skew::Uniform, |text| text.parse().unwrap()),
        arrival: Arrival::Closed,
        writers: 1,
    };
    let mut text = String::new();
    for line in case.input.lines() {
        let design = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        let setup = Setup::new(design, workload.clone(), machine);
        let tree = begin(&setup, Start::Auto, 1);
        let hours = number("hours", 2.0);
        let phases = two_phases(&setup, &tree, (hours * 3600.0, hours * 600.0), number("at", 0.95));
        let running = &phases.running;
        let _ = writeln!(
            text,
            "{:.0} writes/s, amplification {:.1}; at {:.0}: {:?}, runs {:.1} (most {}), stalls {:.0} s, p99 {:.2} s",
            phases.greatest_rate,
            phases.testing.totals.write_amplification(),
            phases.arrival_rate,
            phases.verdict,
            running.mean_runs(),
            running.totals.most_runs,
            running.stalled_seconds(None),
            running.latencies.quantile(0.99),
        );
    }
    text
}

#[test]
fn two_phases_of_designs_are_as_told() {
    terrane_testkit::datadriven::run("testdata/two-phases.txt", answer);
}
