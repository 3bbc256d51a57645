//! Experiments on LSM trees: measures databases, simulates them, predicts their costs, and writes reports.
//!
//! The command `terrane` parses arguments and prints; every measurement it offers is a function
//! of this crate that takes plain option structs and returns values that serialise to JSON.
//!
//! | module | one line |
//! |---|---|
//! | `bench` | workloads on designs, compared |
//! | [`report`] | pages, plots and data of measurements |
//! | [`memtable`] | operations on one memtable, timed |
//! | [`stability`] | the two-phase evaluation: the rate of writes that a design sustains |
//! | [`sweep`] | many experiments from a plan, resumable |
//! | [`advice`] | which design suits a workload |
//! | [`simulation`] | the simulator's constants, results, and comparison with the engine |
//! | [`replay`] | files of operations, replayed |
//! | [`recorded`] | decisions of other systems, compared with those of designs |
//! | [`cs265`] | the command language of CS 265 |
//! | [`entries`], [`literal`] | keys and values: file formats, literals |
//! | [`document`] | tables in Markdown |
//! | [`spec`], [`named_design`] | designs as users write them, with a name for results |
//! | [`quantity`], [`human`] | numbers, sizes and times: parsed, formatted |
//! | [`json`] | conventions of all JSON output |
//! | [`workload_spec`] | workloads in TOML files |
//! | [`lines`], [`toml_file`] | input files |
//! | [`plot`], [`sparkline`] | curves: SVG plots and sparklines |
//! | [`machine`], [`process`], [`program`] | the machine, the resource usage of processes, and the identity of this program |
//! | [`passing_storage`] | files that need not survive a crash |
//! | [`progress`] | progress of long work, on standard error |
//! | [`interrupt`], [`scratch`] | Ctrl-C, and temporary directories |
//! | [`error`] | errors of callers |
#![forbid(unsafe_code)]

pub mod advice;
pub mod bench;
pub mod cs265;
pub mod document;
pub mod entries;
pub mod error;
pub mod human;
pub mod interrupt;
pub mod json;
pub mod lines;
pub mod literal;
pub mod machine;
pub mod memtable;
pub mod named_design;
pub mod passing_storage;
pub mod plot;
pub mod process;
pub mod program;
pub mod progress;
pub mod quantity;
pub mod recorded;
pub mod replay;
pub mod report;
pub mod scratch;
pub mod simulation;
pub mod sparkline;
pub mod spec;
pub mod stability;
pub mod sweep;
pub mod toml_file;
pub mod workload_spec;
