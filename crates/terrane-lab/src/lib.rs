//! Experiments on LSM trees: measures databases, simulates them, predicts their costs, and writes reports.
//!
//! The command `terrane` parses arguments and prints; every measurement it offers is a function
//! of this crate that takes plain option structs and returns values that serialise to JSON.
//!
//! | module | one line |
//! |---|---|
//! | [`mod@bench`] | workloads on designs, compared |
//! | [`stability`] | the two-phase evaluation: the rate of writes that a design sustains |
//! | [`sweep`] | many experiments from a plan, resumable |
//! | [`simulation`] | the simulator's constants, results, and comparison with the engine |
//! | [`advice`] | which design suits a workload |
//! | [`memtable`] | operations on one memtable, timed |
//! | [`replay`] | files of operations, replayed |
//! | [`recorded`] | decisions of other systems, compared with those of designs |
//! | [`cs265`] | the command language of CS 265 |
//! | [`report`] | pages, plots and data of measurements |
//! | [`input`] | what users write: numbers, designs, workloads, files |
//! | [`host`] | the machine, this program, its progress and its temporary files |
//! | [`output`] | numbers, tables and curves |
//! | [`error`] | errors of callers |
#![forbid(unsafe_code)]

pub mod advice;
pub mod bench;
pub mod cs265;
pub mod error;
pub mod host;
pub mod input;
pub mod memtable;
pub mod output;
pub mod recorded;
pub mod replay;
pub mod report;
pub mod simulation;
pub mod stability;
pub mod sweep;
