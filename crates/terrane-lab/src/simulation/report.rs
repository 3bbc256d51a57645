//! The result of a simulation as JSON.

use serde::Serialize;
use terrane_policy::StallCause;
use terrane_sim::{
    Arrival, InitialTree, Latencies, RateVerdict, SimulatedTree, SimulationOutcome,
    SimulationSetup, SimulationWindow, TwoPhases, unplayed,
};

use crate::output::json::SCHEMA;

/// The reported quantiles of latencies, with their names.
pub const QUANTILES: [(&str, f64); 7] = [
    ("p50", 0.5),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99.9", 0.999),
    ("p99.99", 0.9999),
    ("max", 1.0),
];

/// A design and the tree it starts with.
pub struct SimulatedDesign<'a> {
    /// The design, the workload and the machine.
    pub setup: &'a SimulationSetup,
    /// The trees at the start; a single one unless the setup has more.
    pub trees: &'a [SimulatedTree],
    /// The names of several trees, in the same order.
    pub names: &'a [String],
    /// How the tree at the start was built.
    pub start: InitialTree,
}

#[derive(Serialize)]
struct JsonPhase {
    phase: &'static str,
    arrival: String,
    seconds: f64,
    writes: f64,
    writes_per_second: f64,
    write_amplification: Option<f64>,
    flushes: u64,
    merges: u64,
    moves: u64,
    tables_dropped: u64,
    flush_bytes: f64,
    merge_bytes_read: f64,
    merge_bytes_written: f64,
    collections: u64,
    collected_bytes: f64,
    mean_runs: f64,
    most_runs: usize,
    queued_writes: f64,
    stalled_seconds: f64,
    delayed_seconds: f64,
    longest_stall_seconds: f64,
    stalled_seconds_by_cause: Vec<(String, f64)>,
    latency_micros: Vec<(&'static str, Option<f64>)>,
    processing_micros: Vec<(&'static str, Option<f64>)>,
    stuck: Option<String>,
    windows: Vec<JsonWindow>,
}

#[derive(Serialize)]
struct JsonWindow {
    writes_per_second: f64,
    stalled_seconds: f64,
    mean_runs: f64,
    most_runs: usize,
    level_bytes: Vec<u64>,
    level_runs: Vec<usize>,
    value_bytes: u64,
    live_value_bytes: u64,
    /// `None` if no write was completed.
    write_amplification: Option<f64>,
    /// Bytes of keys and values in the completed writes.
    user_bytes: f64,
    /// Bytes written to tables and value files.
    written_bytes: f64,
}

/// One of several trees.
#[derive(Serialize)]
struct JsonTree {
    name: String,
    design: String,
    share: f64,
    flushes: u64,
    merges: u64,
    written_bytes: f64,
    mean_runs: f64,
    most_runs: usize,
    stalled_seconds: f64,
}

/// A simulation as a line of JSON.
#[derive(Serialize)]
pub struct JsonSimulation {
    schema: u32,
    design: String,
    records: f64,
    record_bytes: f64,
    keys: String,
    budget_bytes_per_second: Option<f64>,
    start: String,
    window_seconds: f64,
    greatest_writes_per_second: Option<f64>,
    arrival_writes_per_second: Option<f64>,
    is_sustainable: Option<bool>,
    phases: Vec<JsonPhase>,
    /// The trees, if there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    trees: Vec<JsonTree>,
    /// Parts of the design and the workload that the simulation leaves out.
    not_simulated: Vec<String>,
}

fn json_window(window: &SimulationWindow) -> JsonWindow {
    JsonWindow {
        writes_per_second: window.rate,
        stalled_seconds: window.stalled_seconds,
        mean_runs: window.runs,
        most_runs: window.most_runs,
        level_bytes: window.level_bytes.clone(),
        level_runs: window.level_runs.clone(),
        value_bytes: window.value_bytes,
        live_value_bytes: window.live_value_bytes,
        write_amplification: window.write_amplification(),
        user_bytes: window.user_bytes,
        written_bytes: window.written_bytes,
    }
}

fn json_phase(phase: &'static str, arrival: Arrival, outcome: &SimulationOutcome) -> JsonPhase {
    let totals = &outcome.totals;
    let micros = |latencies: &Latencies| {
        let quantile = |part| latencies.quantile(part).map(|seconds| seconds * 1e6);
        QUANTILES.iter().map(|(name, part)| (*name, quantile(*part))).collect()
    };
    JsonPhase {
        phase,
        arrival: arrival.to_string(),
        seconds: outcome.seconds,
        writes: totals.writes,
        writes_per_second: totals.writes / outcome.seconds.max(1e-9),
        write_amplification: totals.write_amplification(),
        flushes: totals.flushes,
        merges: totals.merges,
        moves: totals.moves,
        tables_dropped: totals.drops,
        flush_bytes: totals.flush_bytes,
        merge_bytes_read: totals.read_bytes,
        merge_bytes_written: totals.merge_bytes,
        collections: totals.collections,
        collected_bytes: totals.collected_bytes,
        mean_runs: outcome.mean_runs(),
        most_runs: totals.most_runs,
        queued_writes: outcome.queued,
        stalled_seconds: outcome.stalled_seconds(None),
        delayed_seconds: totals.delayed_seconds,
        longest_stall_seconds: outcome.longest_stall(),
        stalled_seconds_by_cause: causes(outcome)
            .map(|(cause, seconds)| (cause.to_string(), seconds))
            .collect(),
        latency_micros: micros(&outcome.latencies),
        processing_micros: micros(&outcome.processing),
        stuck: outcome.stuck.clone(),
        windows: outcome.windows.iter().map(json_window).collect(),
    }
}

fn json_trees(simulated: &SimulatedDesign<'_>, outcome: &SimulationOutcome) -> Vec<JsonTree> {
    let SimulatedDesign { setup, names, .. } = simulated;
    let shares = setup.shares();
    let trees = names.iter().zip(setup.alone()).zip(shares).zip(&outcome.trees).enumerate();
    trees
        .map(|(number, (((name, setup), share), totals))| JsonTree {
            name: name.clone(),
            design: setup.design.to_string(),
            share,
            flushes: totals.flushes,
            merges: totals.merges,
            written_bytes: totals.written_bytes,
            mean_runs: totals.run_seconds / outcome.seconds.max(1e-9),
            most_runs: totals.most_runs,
            stalled_seconds: outcome.seconds_stalled_by(number),
        })
        .collect()
}

impl JsonSimulation {
    /// Returns the result of a single phase.
    pub fn one(simulated: &SimulatedDesign<'_>, outcome: &SimulationOutcome) -> Self {
        let arrival = simulated.setup.workload.arrival;
        let trees = json_trees(simulated, outcome);
        Self { trees, ..Self::of(simulated, vec![json_phase("only", arrival, outcome)]) }
    }

    /// Returns the result of both phases.
    pub fn two_phases(simulated: &SimulatedDesign<'_>, phases: &TwoPhases) -> Self {
        let running = Arrival::Constant(phases.arrival_rate);
        let both = vec![
            json_phase("testing", Arrival::Closed, &phases.testing),
            json_phase("running", running, &phases.running),
        ];
        Self {
            greatest_writes_per_second: Some(phases.greatest_rate),
            arrival_writes_per_second: Some(phases.arrival_rate),
            is_sustainable: Some(phases.verdict == RateVerdict::Sustainable),
            ..Self::of(simulated, both)
        }
    }

    fn of(simulated: &SimulatedDesign<'_>, phases: Vec<JsonPhase>) -> Self {
        let SimulationSetup { design, workload, machine, window_seconds, .. } = simulated.setup;
        Self {
            schema: SCHEMA,
            design: design.to_string(),
            records: workload.records,
            record_bytes: workload.record_bytes,
            keys: workload.skew.to_string(),
            budget_bytes_per_second: machine.budget,
            start: simulated.start.to_string(),
            window_seconds: *window_seconds,
            greatest_writes_per_second: None,
            arrival_writes_per_second: None,
            is_sustainable: None,
            phases,
            trees: Vec::new(),
            not_simulated: unplayed(simulated.setup),
        }
    }
}

/// Returns the causes that stopped writers, with their seconds.
pub fn causes(outcome: &SimulationOutcome) -> impl Iterator<Item = (StallCause, f64)> {
    let all = StallCause::ALL.into_iter();
    all.map(|cause| (cause, outcome.stalled_seconds(Some(cause)))).filter(|(_, time)| *time > 0.0)
}

#[cfg(test)]
mod tests {
    use crate::output::sentinels::sentinels;
    use serde_json::Value;
    use terrane_sim::{
        MachineModel, ReadLoad, Simulation, Skew, WriteLoad, WriteMix, initial_tree, two_phases,
    };

    use super::*;
    use crate::simulation::figures::of_simulations;

    const DESIGNS: [&str; 6] = [
        "leveling T=4",
        "leveling; granularity=level; violation=stop",
        "tiering T=3; scheduler=greedy",
        "1-leveling T=4; limit=global(2x)",
        "lazy-leveling T=4; flush=merge",
        "leveling T=4; values=separate(512,file=1MiB)",
    ];

    fn setup(design: &str, arrival: Arrival, budget: f64) -> SimulationSetup {
        let design = format!("{design}; buffer=1MiB; table=1MiB").parse().unwrap();
        let workload = WriteLoad {
            records: 1e5,
            key_bytes: 16.0,
            record_bytes: 1024.0,
            skew: Skew::Uniform,
            arrival,
            writers: 1,
            mix: WriteMix::default(),
            reads: ReadLoad::default(),
        };
        let machine = MachineModel { budget: Some(budget), ..MachineModel::default() };
        SimulationSetup { window_seconds: 0.25, ..SimulationSetup::new(design, workload, machine) }
    }

    /// Returns the lines of simulations of every design at loads from none to far too much.
    fn lines() -> Vec<Value> {
        let mut lines = Vec::new();
        for design in DESIGNS {
            for (arrival, budget) in [
                (Arrival::Closed, 3e6),
                (Arrival::Constant(1e6), 20e6),
                (Arrival::Constant(0.001), 20e6),
            ] {
                let setup = setup(design, arrival, budget);
                let start = InitialTree::Settled;
                let tree = initial_tree(&setup, start, 1);
                let trees = std::slice::from_ref(&tree);
                let simulated = SimulatedDesign { setup: &setup, trees, names: &[], start };
                let outcome = Simulation::new(&setup, tree.clone()).run(20.0).0;
                let one = JsonSimulation::one(&simulated, &outcome);
                let phases = two_phases(&setup, &tree, (10.0, 2.0), 0.95);
                let two = JsonSimulation::two_phases(&simulated, &phases);
                lines.extend([one, two].map(|line| serde_json::to_value(line).unwrap()));
            }
        }
        lines
    }

    #[test]
    fn no_export_of_a_simulation_has_a_sentinel() {
        let lines = lines();
        let windows = || {
            let phases = lines.iter().flat_map(|line| line["phases"].as_array().unwrap());
            phases.flat_map(|phase| phase["windows"].as_array().unwrap())
        };
        let missing = windows().filter(|window| window["write_amplification"].is_null()).count();
        let count = windows().count();
        assert!(missing > 100 && count - missing > 100, "{missing} of {count} without writes");
        for line in &lines {
            assert_eq!(sentinels(line), [""; 0], "{}", line["design"]);
        }
        let dir = tempfile::tempdir().unwrap();
        let environment = crate::host::Environment::of_run(dir.path(), 1);
        of_simulations(&[], lines).write(dir.path(), &environment, "<body></body>").unwrap();
        let csv = std::fs::read_to_string(dir.path().join("report.csv")).unwrap();
        let values = csv.lines().skip(1).filter(|line| line.contains(",phases.windows.write_amp"));
        assert_eq!(values.count(), count - missing, "a missing number has no row");
    }
}
