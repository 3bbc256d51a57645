//! Compares separated values in the simulator with the cost model.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use terrane_policy::ValueSeparation;
use terrane_policy::cost::{DataProfile, ValueFileCosts, costs};
use terrane_sim::{
    Arrival, InitialTree, MachineModel, ReadLoad, Simulation, SimulationSetup, SimulationWindow,
    Skew, WriteLoad, WriteMix, initial_tree,
};

const RECORD_BYTES: f64 = 16_400.0;
const RECORDS: f64 = 60_000.0;

/// Writes per second, few enough that all due work is done before the next memtable is full.
const RATE: f64 = 1000.0;

fn setup(values: &str, skew: Skew) -> SimulationSetup {
    let design = format!("1-leveling T=10 L0=4; buffer=8MiB; table=1MiB; values={values}");
    let workload = WriteLoad {
        records: RECORDS,
        key_bytes: 16.0,
        record_bytes: RECORD_BYTES,
        skew,
        arrival: Arrival::Constant(RATE),
        writers: 1,
        mix: WriteMix::default(),
        reads: ReadLoad::default(),
    };
    let mut machine = MachineModel::default();
    machine.device.bytes_per_second = 1e12;
    machine.device.request_seconds = 0.0;
    let mut setup = SimulationSetup::new(design.parse().unwrap(), workload, machine);
    setup.window_seconds = 10.0;
    setup.check = true;
    setup
}

/// Returns the windows of the second half of `rounds` updates of each record.
fn late(values: &str, skew: Skew, rounds: f64) -> Vec<SimulationWindow> {
    let setup = setup(values, skew);
    let tree = initial_tree(&setup, InitialTree::Loaded, 1);
    let (outcome, _) = Simulation::new(&setup, tree).run(rounds * RECORDS / RATE);
    assert_eq!(outcome.stuck, None, "{values}");
    let half = outcome.windows.len() / 2;
    outcome.windows[half..].to_vec()
}

fn mean(windows: &[SimulationWindow], of: impl Fn(&SimulationWindow) -> f64) -> f64 {
    windows.iter().map(of).sum::<f64>() / windows.len() as f64
}

fn space(window: &SimulationWindow) -> f64 {
    window.value_bytes as f64 / window.live_value_bytes as f64
}

#[test]
fn values_of_a_load_are_written_once() {
    let loaded = |values: &str| {
        let mut setup = setup(values, Skew::Uniform);
        setup.workload.arrival = Arrival::Closed;
        let empty = initial_tree(&setup, InitialTree::Empty, 1);
        let (outcome, tree) = Simulation::new(&setup, empty).load();
        let model = costs(&setup.design, &DataProfile::new(RECORDS, RECORD_BYTES));
        (outcome.totals.write_amplification().unwrap(), tree.shape().value_bytes() as f64, model)
    };
    let (written, bytes, model) = loaded("separate(1KiB)");
    let off = written / model.write_amplification - 1.0;
    assert!(off.abs() < 0.05, "{written} {}", model.write_amplification);
    assert!((bytes / model.value_bytes - 1.0).abs() < 1e-3, "{bytes} {}", model.value_bytes);
    let (inline, ..) = loaded("inline");
    assert!(inline > 4.0 * written, "{inline} {written}");
}

/// Under uniform overwrites, the value files of every setting cost as many writes as the model
/// predicts for their size.
#[test]
fn uniform_overwrites_cost_what_the_model_says() {
    for values in [
        "separate(1KiB,file=8MiB)",
        "separate(1KiB,file=8MiB,garbage=100%)",
        "separate(1KiB,file=8MiB,garbage=100%,space=1.6)",
        "separate(1KiB,file=8MiB,garbage=100%,space=2)",
        "separate(1KiB,file=8MiB,garbage=40%,space=10)",
    ] {
        let windows = late(values, Skew::Uniform, 12.0);
        let (taken, written) =
            (mean(&windows, space), SimulationWindow::write_amplification_of(&windows).unwrap());
        let separation = *setup(values, Skew::Uniform).design.values.separation().unwrap();
        let model = ValueFileCosts::of(&separation);
        let off = taken / model.space - 1.0;
        assert!(off.abs() < 0.1, "{values}: space {taken}, model {model:?}");
        // Tables and the uneven spread of garbage over files add a little.
        let at_this_space = ValueFileCosts::at_space(taken).written;
        let off = written / at_this_space - 1.0;
        assert!((-0.2..0.25).contains(&off), "{values}: written {written}, model {at_this_space}");
    }
}

/// The space bound holds for value files at any skew, and a tighter bound costs more writes.
#[test]
fn the_space_bound_holds_and_costs_writes() {
    for skew in [Skew::Uniform, Skew::Zipf(0.99)] {
        let mut before = f64::INFINITY;
        for percent in [115, 130, 160, 200] {
            let bound = f64::from(percent) / 100.0;
            let values = format!("separate(1KiB,file=8MiB,space={bound})");
            assert_eq!(ValueSeparation::at(1024).file_bytes, 64 << 20);
            let windows = late(&values, skew, 6.0);
            let most = windows.iter().map(space).fold(0.0, f64::max);
            assert!(most <= bound * 1.03, "{values} {skew}: {most}");
            let written = SimulationWindow::write_amplification_of(&windows).unwrap();
            assert!(written < before * 1.02, "{values} {skew}: {written}, before {before}");
            before = written;
        }
    }
}
