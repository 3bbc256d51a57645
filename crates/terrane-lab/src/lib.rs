//! Experiments on LSM trees: measuring databases, playing them in the simulator, comparing the
//! numbers with the papers' claims, and writing reports.
//!
//! The command `terrane` parses arguments and prints; every measurement it offers is a function
//! of this crate that takes plain option structs and returns values that serialise to JSON.
//!
//! | module | one line |
//! |---|---|
//! | [`claims`] | the claims of papers, measured |
//! | [`document`] | claims and tables as Markdown |
//! | [`memtable`] | operations on one memtable, timed |
//! | [`passing_storage`] | files that need not survive a crash |
//! | [`plot`], [`sparkline`] | curves: as SVG, in a line of text |
//! | [`human`] | numbers as people read them |
//! | [`machine`], [`process`] | the machine, and what this process used of it |
//! | [`progress`] | progress of long work, on standard error |
//! | [`interrupt`], [`scratch`] | Ctrl-C, and directories that are removed |
//! | [`error`] | errors of callers |
#![forbid(unsafe_code)]

pub mod claims;
pub mod document;
pub mod error;
pub mod human;
pub mod interrupt;
pub mod machine;
pub mod memtable;
pub mod passing_storage;
pub mod plot;
pub mod process;
pub mod progress;
pub mod scratch;
pub mod sparkline;
