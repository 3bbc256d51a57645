//! Simulates a log-structured merge tree in virtual time, without data, files or threads.
//!
//! As in the engine, `terrane-policy` decides on compactions, on the bandwidth shares of merges,
//! and on the admission of writers. Arithmetic replaces the mechanism: a run is its expected number
//! of keys, a merge takes the time of its bytes and entries on a [`MachineModel`], and writes are a
//! fluid between two events. Simulating hours of a hundred-terabyte tree takes seconds.
//!
//! | module | one line |
//! |---|---|
//! | [`keys`] | popularity of keys, and the number of distinct keys in runs |
//! | [`machine`] | costs of bytes and entries |
//! | [`mix`] | kinds of writes |
//! | [`workload`] | records and arrival times |
//! | [`tree`] | flushes and compactions of a tree of expected contents |
//! | [`start`] | initial trees |
//! | [`simulation`] | the event loop |
//! | [`latency`] | latencies, from curves of arrivals and departures |
//! | [`outcome`] | results |
//! | [`trace`] | what happened, event by event |
//! | `unplayed` | the parts of a setup that a simulation leaves out |
//! | [`phases`] | the two-phase test: the maximum rate, and latencies just below it |
//!
//! [`unplayed()`] lists the parts of a setup that a simulation leaves out.
#![forbid(unsafe_code)]

pub mod keys;
pub mod latency;
pub mod machine;
pub mod mix;
pub mod outcome;
pub mod phases;
pub mod simulation;
pub mod start;
pub mod trace;
pub mod tree;
pub mod unplayed;
pub mod workload;

pub use keys::{Content, Population, Skew};
pub use latency::Latencies;
pub use machine::{Device, MachineCosts, MachineModel};
pub use mix::WriteMix;
pub use outcome::{
    SimulationOutcome, SimulationWindow, StallPeriod, Totals, TreeTotals, WindowLatencies,
};
pub use phases::{RateVerdict, TwoPhases, two_phases};
pub use simulation::{OtherTree, Simulation, SimulationSetup};
pub use start::{InitialTree, initial_tree, initial_trees, tree_like, tree_of_runs};
pub use trace::{TableChange, TraceEvent, TraceKind, TracedMerge, TracedTable};
pub use tree::SimulatedTree;
pub use unplayed::unplayed;
pub use workload::{Arrival, ReadLoad, WriteLoad};
