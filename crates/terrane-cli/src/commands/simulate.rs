//! `terrane simulate`: runs a design in virtual time, at any size.
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags |
//! | [`calibrate`] | measures the simulator's constants with the engine |
//! | [`show`] | prints the results |
//! | [`validate`] | compares the simulator with the engine: `docs/simulator.md` |
//! | [`map`] | which share of the maximum holds, for many designs |
//! | [`claims`] | the claims of the stability paper, at its scale |

mod arguments;
mod calibrate;
mod claims;
mod map;
mod show;
mod validate;

use std::io::Write;

use anyhow::Result;
use terrane_sim::{Arrival, Simulation, SimulationSetup, initial_tree, two_phases};

use crate::exit::Exit;
use crate::output;
pub(crate) use arguments::SimulateArgs;
use arguments::SimulateCommand;
use terrane_lab::quantity::check_data;
use terrane_lab::simulation::report::SimulatedDesign;

impl SimulateArgs {
    /// Simulates, or runs a subcommand.
    pub(crate) fn run(&self) -> Result<Exit> {
        match &self.command {
            Some(SimulateCommand::Claims(args)) => return args.run(),
            Some(SimulateCommand::Calibrate(args)) => return args.run(),
            Some(SimulateCommand::Validate(args)) => return args.run(),
            Some(SimulateCommand::Map(args)) => return args.run(),
            None => {}
        }
        check_data(self.records as f64, self.record_size as f64)?;
        let seconds = self.hours.unwrap_or(2.0) * 3600.0;
        let machine = self.machine()?;
        let mut out = output::stdout();
        for (number, design) in self.designs()?.into_iter().enumerate() {
            let mut setup = SimulationSetup::new(design, self.workload()?, machine);
            setup.window_seconds = (seconds / 240.0).clamp(0.001, 30.0);
            setup.tables_max = self.tables_max;
            let tree = initial_tree(&setup, self.start, self.seed);
            let simulated = SimulatedDesign { setup: &setup, tree: &tree, start: self.start };
            if number > 0 && !self.json {
                writeln!(out)?;
            }
            if self.two_phase {
                let warm_up = self.warm_up_seconds(seconds);
                let phases = two_phases(&setup, &tree, (seconds, warm_up), self.utilization);
                show::two_phases(&mut out, &simulated, &phases, self.json)?;
            } else {
                let outcome = Simulation::new(&setup, tree.clone()).run(seconds).0;
                let is_closed = setup.workload.arrival == Arrival::Closed;
                let rate_from = if is_closed { self.warm_up_seconds(seconds) } else { 0.0 };
                show::one(&mut out, &simulated, &outcome, rate_from, self.json)?;
            }
        }
        Ok(Exit::Done)
    }

    fn warm_up_seconds(&self, seconds: f64) -> f64 {
        self.warm_up.map_or(seconds / 6.0, |minutes| minutes * 60.0)
    }
}
