//! The input of a simulation.

use terrane_policy::Design;

use crate::machine::MachineModel;
use crate::workload::WriteLoad;

/// The input of a simulation.
#[derive(Debug, Clone)]
pub struct SimulationSetup {
    /// The design of the tree, or of the first tree if there are several.
    pub design: Design,
    /// The share of the writes that goes to the first tree, relative to the shares of the other
    /// trees.
    pub share: f64,
    /// Other trees, each with the workload's number of records.
    pub others: Vec<OtherTree>,
    /// The number of trees that flush concurrently: the engine's `flush_threads`.
    pub flush_threads: usize,
    /// The writes.
    pub workload: WriteLoad,
    /// The costs.
    pub machine: MachineModel,
    /// The length of a window, in seconds.
    pub window_seconds: f64,
    /// The maximum number of tables; larger trees get larger tables instead.
    pub tables_max: usize,
    /// External rate limits: pairs of a start time, in seconds, and the maximum writes per second
    /// from then on.
    pub rate_limits: Vec<(f64, f64)>,
    /// The most tables and events of a trace; 0 records none. A trace that becomes full ends there, and
    /// the simulation continues.
    pub trace_max: usize,
    /// Checks the soundness of every compaction and the invariants of every tree, and records the
    /// completion times of writes. Only for tests, because it takes most of the time.
    pub check: bool,
}

/// A tree that shares the writers, the gate and the machine with the first one.
#[derive(Debug, Clone)]
pub struct OtherTree {
    /// The design.
    pub design: Design,
    /// Its share of the writes, relative to the shares of the other trees.
    pub share: f64,
}

impl SimulationSetup {
    /// Returns a setup with windows of half a minute and without checks.
    pub fn new(design: Design, workload: WriteLoad, machine: MachineModel) -> Self {
        Self {
            design,
            share: 1.0,
            others: Vec::new(),
            flush_threads: 2,
            workload,
            machine,
            window_seconds: 30.0,
            tables_max: 20_000,
            rate_limits: Vec::new(),
            trace_max: 0,
            check: false,
        }
    }

    /// Returns the share of the writes of each tree; the shares add up to 1.
    pub fn shares(&self) -> Vec<f64> {
        let given = self.others.iter().map(|other| other.share);
        let given: Vec<f64> = std::iter::once(self.share).chain(given).collect();
        let all: f64 = given.iter().sum();
        // A single tree gets exactly 1.
        given.iter().map(|share| share / all).collect()
    }

    /// Returns a separate setup for each tree, as if it were alone.
    pub fn alone(&self) -> Vec<Self> {
        let alone = |design: &Design| Self {
            design: design.clone(),
            share: 1.0,
            others: Vec::new(),
            ..self.clone()
        };
        let others = self.others.iter().map(|other| &other.design);
        std::iter::once(&self.design).chain(others).map(alone).collect()
    }
}
