//! `terrane.simulate`: a design in virtual time.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use terrane_lab::input::quantity::check_data;
use terrane_lab::simulation::mix::MixLoad;
use terrane_lab::simulation::report::{JsonSimulation, SimulatedDesign};
use terrane_sim::{
    MachineModel, ReadLoad, Simulation, SimulationOutcome, SimulationSetup, Skew, WriteLoad,
    WriteMix, initial_tree,
};
use terrane_workload::OperationMix;

use crate::design::DesignArgument;
use crate::errors;

/// The maximum number of intervals, because all are kept in memory.
const WINDOWS_MAX: f64 = 100_000.0;

/// What is simulated, as the package passes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Load {
    records: u64,
    record_size: u64,
    key_size: u64,
    keys: String,
    arrival: String,
    writers: u32,
    mix: Option<String>,
    cold: f64,
    budget: Option<f64>,
    hours: f64,
    windows: f64,
    start: String,
    threads: usize,
    seed: u64,
}

/// Returns the error for a string that cannot be parsed.
fn bad(error: impl std::fmt::Display) -> PyErr {
    errors::invalid(error.to_string())
}

impl Load {
    fn writes(&self) -> PyResult<WriteLoad> {
        check_data(self.records as f64, self.record_size as f64).map_err(errors::from_lab)?;
        let (mut mix, mut reads) = (WriteMix::default(), ReadLoad::default());
        if let Some(text) = &self.mix {
            let operations: OperationMix = text.parse().map_err(bad)?;
            let load =
                MixLoad::of(&operations, self.records, self.cold).map_err(errors::from_lab)?;
            (mix, reads) = (load.writes, load.reads);
        }
        Ok(WriteLoad {
            records: self.records as f64,
            key_bytes: self.key_size.min(self.record_size) as f64,
            record_bytes: self.record_size as f64,
            skew: self.keys.parse::<Skew>().map_err(bad)?,
            arrival: self.arrival.parse().map_err(bad)?,
            writers: self.writers,
            mix,
            reads,
        })
    }

    fn setup(&self, design: terrane::Design) -> PyResult<SimulationSetup> {
        if !(self.hours > 0.0 && self.hours <= 1e5) {
            return Err(errors::invalid(format!(
                "hours must be above 0 and at most 100000, not {}",
                self.hours
            )));
        }
        if !(1.0..=WINDOWS_MAX).contains(&self.windows) {
            return Err(errors::invalid(format!(
                "windows must be 1 to {WINDOWS_MAX}, not {}",
                self.windows
            )));
        }
        let mut machine = MachineModel { budget: self.budget, ..MachineModel::default() };
        machine.slots = self.threads.clamp(1, 64);
        let mut setup = SimulationSetup::new(design, self.writes()?, machine);
        setup.window_seconds = self.hours * 3600.0 / self.windows;
        Ok(setup)
    }
}

/// Runs a simulation. Returns its totals as JSON, and columns of numbers, one entry for each interval.
#[pyfunction]
pub(crate) fn simulate(
    py: Python<'_>,
    design: DesignArgument,
    load: Load,
) -> PyResult<(String, Bound<'_, PyDict>)> {
    let setup = load.setup(design.0)?;
    let start = load.start.parse().map_err(bad)?;
    let (outcome, text) = py.detach(|| {
        let tree = initial_tree(&setup, start, load.seed);
        let trees = std::slice::from_ref(&tree);
        let simulated = SimulatedDesign { setup: &setup, trees, names: &[], start };
        let outcome = Simulation::new(&setup, tree.clone()).run(load.hours * 3600.0).0;
        let text = serde_json::to_string(&JsonSimulation::one(&simulated, &outcome));
        (outcome, text)
    });
    if let Some(why) = &outcome.stuck {
        return Err(errors::invalid(format!(
            "the simulation of {} ended early: {why}",
            setup.design.summary()
        )));
    }
    Ok((text.map_err(bad)?, columns(py, &outcome)?))
}

/// Returns a column for each figure of the intervals.
fn columns<'py>(py: Python<'py>, outcome: &SimulationOutcome) -> PyResult<Bound<'py, PyDict>> {
    let all = PyDict::new(py);
    let windows = &outcome.windows;
    let of = |figure: fn(&terrane_sim::SimulationWindow) -> f64| -> Vec<f64> {
        windows.iter().map(figure).collect()
    };
    let length = outcome.seconds / windows.len().max(1) as f64;
    let times: Vec<f64> = (1..=windows.len()).map(|number| number as f64 * length).collect();
    all.set_item("time", times)?;
    all.set_item("writes_per_second", of(|window| window.rate))?;
    all.set_item("stalled_seconds", of(|window| window.stalled_seconds))?;
    all.set_item("runs", of(|window| window.runs))?;
    // NaN is missing data for numpy and pandas.
    all.set_item(
        "write_amplification",
        of(|window| window.write_amplification().unwrap_or(f64::NAN)),
    )?;
    all.set_item("user_bytes", of(|window| window.user_bytes))?;
    all.set_item("written_bytes", of(|window| window.written_bytes))?;
    let deepest = windows.iter().map(|window| window.level_bytes.len()).max().unwrap_or(0);
    let levels = PyList::empty(py);
    for level in 0..deepest {
        let bytes = |window: &terrane_sim::SimulationWindow| {
            window.level_bytes.get(level).map_or(0.0, |bytes| *bytes as f64)
        };
        levels.append(windows.iter().map(bytes).collect::<Vec<f64>>())?;
    }
    all.set_item("level_bytes", levels)?;
    Ok(all)
}
