//! A log-structured merge tree in virtual time: no data, no files, no threads.
//!
//! What to merge, how merges share the bandwidth, and whether writers may go on is decided by
//! `terrane-policy`, the code that decides in the engine. What the engine does with the answers is
//! arithmetic here: a run is the number of keys that it is expected to hold, a merge takes the time
//! that its bytes and entries take on a [`Machine`], and writers are a fluid between two events. So
//! a tree of a hundred terabytes is played for hours in seconds.
//!
//! | module | one line |
//! |---|---|
//! | [`keys`] | which keys are written, and how many different ones runs hold |
//! | [`machine`] | what bytes and entries cost |
//! | [`workload`] | records, and when writes come |
//! | [`tree`] | a tree of expected contents: flushes and compactions |
//! | [`start`] | trees to begin with |
//! | [`simulation`] | the events |
//! | [`latency`] | how long writes take, from curves of arrival and departure |
//! | [`outcome`] | what is told |
//! | [`phases`] | the greatest rate, and what latencies are like just below it |
//!
//! Not modelled: deletes, reads that change decisions, snapshots, compression, several trees.
#![forbid(unsafe_code)]

pub mod keys;
pub mod latency;
pub mod machine;
pub mod outcome;
pub mod phases;
pub mod simulation;
pub mod start;
pub mod tree;
pub mod workload;

pub use keys::{Content, Population, Skew};
pub use latency::Latencies;
pub use machine::{Costs, Device, Machine};
pub use outcome::{Outcome, StallPeriod, Totals, Window};
pub use phases::{TwoPhases, Verdict, two_phases};
pub use simulation::{Setup, Simulation};
pub use start::{Start, begin};
pub use tree::Tree;
pub use workload::{Arrival, Workload};
