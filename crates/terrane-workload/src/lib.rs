//! Key-value workloads: operations for storage engines, and reports on how an engine performed.
//!
//! The `terrane bench` command and the comparison with other engines both use this crate, so every
//! engine runs the same code. An engine implements [`Store`]; a [`Workload`] has its name from
//! db_bench or YCSB; [`run`] executes it with client threads in a closed loop and returns a
//! [`Report`].
//!
//! ```
//! use terrane_workload::{MemStore, RunOptions, Silent, Workload, run};
//!
//! let store = MemStore::new();
//! let options = RunOptions { num: 1_000, ..RunOptions::default() };
//! run(&store, Workload::FillRandom, &options, &Silent)?;
//! let report = run(&store, "readrandom".parse()?, &options, &Silent)?;
//! assert_eq!(report.found, 1_000);
//! assert_eq!(report.failures(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Invariants
//!
//! 1. Every key, value and choice depends only on the options and the seed: the share of a thread
//!    does not depend on scheduling.
//! 2. Distinct indexes have distinct keys, and a missing key is never the key of an index
//!    ([`KeySpace`]).
//! 3. The first bytes of a value are derived from its key, and every value read is checked, which
//!    detects an engine that returns the value of another key ([`value`]).
//! 4. An operation allocates nothing and reads one clock once.
//!
//! # Modules
//!
//! | module | one line |
//! |---|---|
//! | [`store`] | the engine under test, and its optional counters |
//! | [`mem_store`] | an ordered map as an engine: measures the overhead of machine and harness |
//! | `terrane_store` | a Terrane database as an engine; with the feature `terrane` |
//! | `indexed_store` | the same with secondary indexes; with the feature `terrane` |
//! | [`mix`] | bijections that scatter integers |
//! | [`key`] | keys from indexes |
//! | [`value`] | values that identify their key and have a given compressibility |
//! | [`zipf`], [`ycsb_zipf`] | the exact Zipf distribution, and YCSB's approximation |
//! | [`distribution`] | the choice of indexes |
//! | [`workload`] | the workloads by name |
//! | [`operation_mix`] | operations of several kinds in proportions |
//! | [`options`] | sizes, counts, threads, seed |
//! | [`driver`] | runs a workload |
//! | [`stability`] | the two-phase evaluation of write stalls, with an open-loop driver |
//! | [`recording`] | a store that writes the operations of a run to a trace |
//! | [`progress`] | progress of a run |
//! | [`latency`], [`report`] | results |
//! | [`error`] | errors |
//!
#![forbid(unsafe_code)]

mod answers;
pub mod distribution;
pub mod driver;
pub mod error;
#[cfg(feature = "terrane")]
pub mod indexed_store;
pub mod key;
pub mod latency;
pub mod mem_store;
pub mod mix;
mod mixed;
pub mod operation_mix;
pub mod options;
pub mod progress;
mod random;
pub mod recording;
pub mod report;
mod shape;
pub mod stability;
pub mod store;
#[cfg(feature = "terrane")]
pub mod terrane_store;
pub mod value;
pub mod workload;
pub mod ycsb_zipf;
pub mod zipf;

pub use distribution::Distribution;
pub use driver::run;
pub use error::{OptionsError, ParseError, RunError, StoreError};
#[cfg(feature = "terrane")]
pub use indexed_store::{IndexedStore, Indexes, Maintenance};
pub use key::{KeyOrder, KeySpace, Placement};
pub use latency::{Latency, LatencyMicros};
pub use mem_store::MemStore;
pub use operation_mix::{MixOrder, MixPart, OperationKind, OperationMix};
pub use options::RunOptions;
pub use progress::{Progress, Silent};
pub use recording::RecordingStore;
pub use report::{KindReport, Report, WriterReport};
pub use store::{Direction, Glance, RunLimit, STALL_CAUSES_MAX, Store, StoreCounters};
#[cfg(feature = "terrane")]
pub use terrane_store::{TerraneStore, testing_design};
pub use value::ValueSize;
pub use workload::{Workload, YcsbMix};
