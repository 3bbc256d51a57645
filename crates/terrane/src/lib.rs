//! Terrane: a persistent, ordered key-value storage engine on the log-structured merge tree.
//!
//! ```
//! # fn main() -> terrane::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! use terrane::{Db, Durability, WriteBatch, WriteOptions};
//!
//! let db = Db::open(dir.path())?;
//! db.put("apple", "red")?;
//! assert_eq!(db.get("apple")?.unwrap(), "red");
//!
//! // A batch is atomic; a synced one survives a power failure.
//! let mut batch = WriteBatch::new();
//! batch.put("banana", "yellow").delete("apple");
//! db.write_with(&batch, WriteOptions::new().durability(Durability::Sync))?;
//!
//! // Iterate in reverse order.
//! let keys = db.iter()?.rev().map(|entry| entry.map(|(key, _)| key));
//! assert_eq!(keys.collect::<Result<Vec<_>, _>>()?, ["banana"]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Durability`] says which failures a write survives. A [`Design`] decides how the tree is
//! organized; it is a value with a text form and can be changed while the database is in use.
//! [`Db::stats`] and [`Db::tree`] report activity and state.
//!
//! | to | use |
//! |---|---|
//! | open, with options or read-only | [`Db::open`], [`Options`], [`Db::open_read_only`] |
//! | write | [`Db::put`], [`Db::delete`], [`Db::delete_range`], [`Db::clear`], [`WriteBatch`] |
//! | load sorted data | [`Db::ingest`], [`Ingest`] |
//! | read | [`Db::get`], [`Db::multi_get`], [`Db::range`], [`Db::prefix`], [`Db::first`], [`Db::last`], [`Iter`] |
//! | count and measure | [`Db::approximate_len`], [`Keyspace::approximate_size`], [`Db::keys`] |
//! | read a consistent snapshot | [`Db::snapshot`] |
//! | read, modify, write | [`Db::transaction`], [`Db::update`], [`Db::compare_and_swap`], [`Db::put_if_absent`] |
//! | create independent trees | [`Db::keyspace`] |
//! | shape trees | [`Db::set_design`], [`Db::compact_range`], [`policy::catalogue`] |
//! | follow the writes, for another database | [`Db::changes`], [`Options::keep_changes`] |
//! | follow background activity | [`Options::on_event`], [`Db::events`] |
//! | copy, inspect, verify, repair | [`Db::checkpoint`], [`inspect`] |
//! | cancel long operations, see running jobs | [`Maintenance`], [`JobView`] |
//! | remove | [`Options::destroy`] |
//! | test with crashes and faults | [`storage::MemoryStorage`], [`storage::FaultStorage`] |
//!
//! | feature | adds |
//! |---|---|
//! | `async` | `AsyncDb`: lookups, scans, writes and transactions as futures, on any executor |
//! | `serde` | `Serialize` for [`Stats`], events, [`TreeView`] and metrics; `Deserialize` as well for designs, forecasts, values of options, [`Latencies`], [`Times`] and counts |
//! | `tracing` | events through the crate `tracing`, with the target `terrane`, and a span for each flush and compaction |
//! | `zstd` | writes blocks with the compression `zstd`; needs a C compiler |
//!
//! Handles, snapshots and iterators have no lifetimes and may be used from any thread. An error
//! names the file and the problem, and its [`ErrorKind`] says what the caller can do.
#![deny(unsafe_code)]

mod api;
mod base;
mod engine;
mod files;
#[cfg(any(test, fuzzing))]
pub mod fuzz;
pub mod inspect;
#[cfg(feature = "micro")]
#[doc(hidden)]
pub mod micro;
mod options;

#[cfg(feature = "async")]
pub use api::asynchronous::{AsyncDb, AsyncIter, AsyncKeyspace, AsyncLimits, AsyncSnapshot};
pub use api::changes::{Change, ChangeBatch, ChangedKeyspace, Changes};
pub use api::db::Db;
pub use api::deferred_delays::DeferredDelays;
pub use api::ingest::Ingest;
pub use api::iterator::Iter;
pub use api::keys::Keys;
pub use api::keyspace::{Keyspace, KeyspaceOptions};
pub use api::maintenance::Maintenance;
pub use api::memtable;
pub use api::snapshot::Snapshot;
pub use api::transaction::{Isolation, Transaction, TransactionIter, TransactionOptions};
pub use api::tree_view::{CompactionFilterView, TreeView};
pub use api::write_batch::WriteBatch;
pub use api::write_options::WriteOptions;
pub use base::clock::{Clock, JobTime, ManualClock, SystemClock};
pub use base::compaction_filter::{CompactionFilter, FilterDecision};
pub use base::durability::Durability;
pub use base::error::{
    ChangesGone, Corruption, Error, ErrorKind, Invalid, IoFailure, OtherDesign, Result,
    WrongFileType,
};
pub use base::event::{
    BackgroundWork, Event, FlushReason, LoggedEvent, PredictedChange, StallEffect, WriteStall,
};
pub use base::io_budget::IoBudget;
pub use base::job_view::{JobState, JobType, JobView};
pub use base::lookup_path::{LookupAnswer, LookupPath, LookupPlace, LookupStep};
pub use base::merge_operator::MergeOperator;
pub use base::range::KeyBounds;
pub use base::stats::{
    CacheStats, CurrentStall, Failure, FailureCause, Latencies, LatencyMetric, LevelStats,
    MembufferStats, MemoryStats, Metric, MetricKind, MetricUnit, OperationCounts, StallStats,
    Stats, Times,
};
pub use base::types::{MAX_KEY_LEN, MAX_VALUE_LEN};
pub use files::storage;
pub use files::table::CacheWarming;
pub use files::value::{Key, Value};
pub use options::{
    Background, KeepChanges, LogMode, OpenMode, OptionInfo, Options, ReadMode, WriteMode,
    WritePath, memory_limit,
};
pub use terrane_policy::Design;

/// Designs, and the types in which the engine reports their trees and decisions.
///
/// Only the items listed here are covered by this crate's semantic versioning. Other items of
/// `terrane-policy`, such as picking and cost models, may change in any release.
///
/// Enums without `#[non_exhaustive]` here, such as [`MemtableKind`](policy::MemtableKind), may gain
/// values in a compatible release. The compiler thus shows every place in the engine that must handle a
/// new value, but a `match` in a program needs a `_` arm for them.
pub mod policy {
    pub use terrane_policy::admission::{Admission, Pressure, StallCause};
    pub use terrane_policy::catalogue;
    pub use terrane_policy::design::{
        Bound, Compression, Constraint, Design, FilterAllocation, FlushMode, Limit, MemtableKind,
        OrderedView, PerLevel, Stall, VectorQuery, Violation, flodb,
    };
    pub use terrane_policy::error::{ParseError, ParseErrorKind};
    pub use terrane_policy::forecast::{Amplification, Forecast};
    pub use terrane_policy::key_range::KeyRange;
    pub use terrane_policy::memtable_choice::MemtableSelection;
    pub use terrane_policy::scheduler::{Scheduler, SchedulerInfo};
    pub use terrane_policy::shape::{
        AddedTable, Expiry, Level, Run, RunId, SeqNo, ShapeEdit, ShapeError, TableId, TableInfo,
        TablePosition, TreeShape,
    };
    pub use terrane_policy::strategy::{
        Eagerness, Granularity, Growth, Intake, MergeCause, Movement, MovementInfo, RunLimit, Runs,
        SizeRatio, SizeTiered, SizedMerge, SizedRun, Strategy, trigger,
    };
}

/// Compiles the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
