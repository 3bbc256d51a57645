//! Key-value workloads: what a storage engine is asked to do, and how well it did.
//!
//! Called by the `terrane bench` command and by the comparison with other engines, so that every
//! engine runs literally the same code. An engine is anything that implements [`Store`]; a
//! [`Workload`] goes by the name that db_bench or YCSB gave it; [`run`] carries it out with client
//! threads in a closed loop and answers with a [`Report`].
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
//! 1. Every key, value and choice follows from the options and the seed. Threads take parts that
//!    do not depend on how they are scheduled.
//! 2. Distinct indexes have distinct keys, and a missing key is never the key of an index
//!    ([`KeySpace`]).
//! 3. The first bytes of a value follow from its key, and every value read is checked against
//!    that: an engine that answers with another key's value is found out ([`value`]).
//! 4. Nothing is allocated, and one clock is read, per operation.
//!
//! # Modules
//!
//! | module | one line |
//! |---|---|
//! | [`store`] | the engine under test, and the counters that it may keep |
//! | [`mem_store`] | an ordered map as an engine: what the machine and the harness cost |
//! | `terrane_store` | a Terrane database as an engine; with the feature `terrane` |
//! | `indexed_store` | the same with secondary indexes; with the feature `terrane` |
//! | [`mix`] | bijections that scatter integers |
//! | [`key`] | keys from indexes |
//! | [`value`] | values that name their key and compress as asked |
//! | [`zipf`], [`ycsb_zipf`] | the exact Zipf distribution, and the one that YCSB draws |
//! | [`distribution`] | which index is chosen next |
//! | [`workload`] | the workloads by name |
//! | [`operation_mix`] | operations of several kinds in proportions |
//! | [`options`] | sizes, counts, threads, seed |
//! | [`driver`] | runs a workload |
//! | [`stability`] | the two-phase evaluation of write stalls: arrivals that do not wait |
//! | [`progress`] | says how far a run is |
//! | [`latency`], [`report`] | what came out |
//! | [`error`] | what goes wrong |
//!
//! Left out on purpose: traces and workload files.
#![forbid(unsafe_code)]

pub mod distribution;
pub mod driver;
pub mod error;
#[cfg(feature = "terrane")]
pub mod indexed_store;
pub mod key;
pub mod latency;
pub mod mem_store;
pub mod mix;
pub mod operation_mix;
pub mod options;
pub mod progress;
mod random;
pub mod report;
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
pub use operation_mix::{MixOrder, OperationKind, OperationMix};
pub use options::RunOptions;
pub use progress::{Progress, Silent};
pub use report::{KindReport, Report, WriterReport};
pub use store::{Direction, Glance, Store, StoreCounters};
#[cfg(feature = "terrane")]
pub use terrane_store::{TerraneStore, testing_design};
pub use value::ValueSize;
pub use workload::{Workload, YcsbMix};
