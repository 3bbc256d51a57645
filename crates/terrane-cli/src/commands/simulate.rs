//! `terrane simulate`: runs a design in virtual time, at any size.
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags |
//! | [`calibrate`] | measures the simulator's constants with the engine |
//! | [`show`] | prints the results |
//! | [`validate`] | compares the simulator with the engine: `docs/simulator.md` |
//! | [`map`] | the sustainable share of the maximum rate, for many designs |

mod arguments;
mod calibrate;
mod map;
mod show;
mod validate;

use std::io::{self, Write};

use anyhow::Result;
use terrane::Design;
use terrane_sim::{Arrival, Simulation, SimulationSetup, initial_tree, initial_trees, two_phases};

use crate::exit::{Exit, usage};
use crate::output;
use crate::web::explorer_page;
pub(crate) use arguments::SimulateArgs;
use arguments::SimulateCommand;
use terrane_lab::host::Environment;
use terrane_lab::input::quantity::check_data;
use terrane_lab::report::figures::FigureReport;
use terrane_lab::simulation::figures::{SimulatedCurves, of_simulations};
use terrane_lab::simulation::report::{JsonSimulation, SimulatedDesign};
use terrane_lab::simulation::trees::NamedTree;

/// The most windows of a phase: each is kept in memory.
const WINDOWS_MAX: f64 = 100_000.0;

impl SimulateArgs {
    /// Simulates, or runs a subcommand.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            Some(SimulateCommand::Calibrate(args)) => return args.run(),
            Some(SimulateCommand::Validate(args)) => return args.run(),
            Some(SimulateCommand::Map(args)) => return args.run(),
            None => {}
        }
        check_data(self.records as f64, self.record_size as f64)?;
        if let Some(dir) = &self.out {
            FigureReport::prepare(dir)?;
        }
        let (mut curves, mut lines) = (Vec::new(), Vec::new());
        let seconds = self.hours.unwrap_or(2.0) * 3600.0;
        let mut out = output::text_or_json(self.json);
        if !self.tree.is_empty() {
            let (curve, line) = self.simulate_trees(&mut out, seconds)?;
            drop(out);
            self.report(&[curve], vec![line])?;
            return Ok(Exit::Done);
        }
        for (number, design) in self.designs()?.into_iter().enumerate() {
            let setup = self.setup(design, seconds)?;
            let tree = initial_tree(&setup, self.start, self.seed);
            let trees = std::slice::from_ref(&tree);
            let simulated = SimulatedDesign { setup: &setup, trees, names: &[], start: self.start };
            if number > 0 && !self.json {
                writeln!(out)?;
            }
            if self.two_phase {
                let warm_up = self.warm_up_seconds(seconds);
                let phases = two_phases(&setup, &tree, (seconds, warm_up), self.utilization);
                show::two_phases(&mut out, &simulated, &phases, self.json)?;
                let window = setup.window_seconds;
                curves.push(SimulatedCurves::of(self.name(number), window, &phases.running));
                lines.push(serde_json::to_value(JsonSimulation::two_phases(&simulated, &phases))?);
            } else {
                let outcome = Simulation::new(&setup, tree.clone()).run(seconds).0;
                let rate_from = self.rate_from(&setup, seconds);
                show::one(&mut out, &simulated, &outcome, rate_from, self.json)?;
                let window = setup.window_seconds;
                curves.push(SimulatedCurves::of(self.name(number), window, &outcome));
                lines.push(serde_json::to_value(JsonSimulation::one(&simulated, &outcome))?);
            }
        }
        drop(out);
        self.report(&curves, lines)?;
        Ok(Exit::Done)
    }

    /// Returns the name of a design in plots.
    fn name(&self, number: usize) -> String {
        let default = || terrane_policy::catalogue::DEFAULT.to_owned();
        self.design.get(number).cloned().unwrap_or_else(default)
    }

    /// Writes the report of `--out`.
    fn report(&self, curves: &[SimulatedCurves], lines: Vec<serde_json::Value>) -> Result<()> {
        let Some(dir) = &self.out else { return Ok(()) };
        let environment = Environment::of_run(dir, self.seed);
        let page = of_simulations(curves, lines).write(dir, &environment, explorer_page())?;
        let _ = writeln!(io::stderr(), "report: {}", page.display());
        Ok(())
    }

    fn setup(&self, design: Design, seconds: f64) -> Result<SimulationSetup> {
        let mut setup = SimulationSetup::new(design, self.workload()?, self.machine()?);
        setup.window_seconds = (seconds / 240.0).clamp(0.001, 30.0).max(seconds / WINDOWS_MAX);
        setup.tables_max = self.tables_max;
        Ok(setup)
    }

    /// Simulates several trees together.
    fn simulate_trees(
        &self,
        out: &mut dyn Write,
        seconds: f64,
    ) -> Result<(SimulatedCurves, serde_json::Value)> {
        let trees = self.tree.iter().map(|text| NamedTree::parse(text));
        let trees: Vec<NamedTree> = trees.collect::<Result<_>>()?;
        let names: Vec<String> = trees.iter().map(|tree| tree.name.clone()).collect();
        let first = trees.first().ok_or_else(|| usage("--tree names no tree"))?;
        let setup = NamedTree::setup_of(&trees, self.setup(first.design.clone(), seconds)?);
        let start = self.start;
        let trees = initial_trees(&setup, start, self.seed);
        let simulated = SimulatedDesign { setup: &setup, trees: &trees, names: &names, start };
        let outcome = Simulation::of_trees(&setup, trees.clone()).run_trees(seconds).0;
        show::one(out, &simulated, &outcome, self.rate_from(&setup, seconds), self.json)?;
        let line = serde_json::to_value(JsonSimulation::one(&simulated, &outcome))?;
        Ok((SimulatedCurves::of(names.join(" + "), setup.window_seconds, &outcome), line))
    }

    /// Returns the time from which the rate is measured: for a closed loop, after the warm-up.
    fn rate_from(&self, setup: &SimulationSetup, seconds: f64) -> f64 {
        let is_closed = setup.workload.arrival == Arrival::Closed;
        if is_closed { self.warm_up_seconds(seconds) } else { 0.0 }
    }

    fn warm_up_seconds(&self, seconds: f64) -> f64 {
        self.warm_up.map_or(seconds / 6.0, |minutes| minutes * 60.0)
    }
}
