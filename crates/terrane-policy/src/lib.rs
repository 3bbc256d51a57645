//! The decisions of a log-structured merge tree, without its data.
//!
//! A [`TreeShape`] describes levels, runs and tables without their data. A [`Design`] names every
//! choice of the LSM design space: memtable, compaction [`Strategy`], filters. From these two,
//! [`pick()`] decides which compaction to run next, and [`admit`] whether writers may proceed.
//!
//! Every function here is pure: it takes plain data and returns a decision. There is no I/O, no
//! thread, no clock and no randomness without a seed, so the same code decides in the engine, in the
//! simulator, and in tests whose trees and expected decisions are text.
//!
//! | module | one line |
//! |---|---|
//! | [`key_range`] | half-open ranges of keys |
//! | [`shape`] | levels, runs, tables; edits of them; their text form |
//! | [`strategy`] | trigger × eagerness × granularity × data movement |
//! | [`design`] | a strategy plus memtable, filters, compression and limits; its text form |
//! | [`catalogue`] | named designs |
//! | [`compaction`] | a compaction: inputs, output, reason |
//! | [`pick`](mod@pick) | picks a compaction for a shape and a design |
//! | [`expiring`] | which tables can be dropped once all of their values have expired |
//! | [`flush`] | where a flush puts the entries of a memtable |
//! | [`ingest`] | where an ingest puts its tables |
//! | [`forecast`](mod@forecast) | what a design will do to a tree, simulated on shapes |
//! | [`soundness`] | checks that a compaction never inverts recency |
//! | [`recorded`] | decisions of other systems, compared with those of a design |
//! | [`space`] | enumerates all valid strategies |
//! | [`admission`] | when writers are delayed or stopped |
//! | [`scheduler`] | how merges share the bandwidth |
//! | [`allocation`] | how filter memory and time are shared among levels |
//! | [`advice`] | which designs suit a workload |
//! | [`memtable_choice`] | which memtable suits a mix of operations |
//! | [`cost`](mod@cost) | what a design costs, by formulas |
//! | [`random`] | pseudo-random numbers from a seed |
//! | [`units`] | byte sizes and times as text |
#![forbid(unsafe_code)]

pub mod access;
pub mod admission;
pub mod advice;
pub mod allocation;
pub mod catalogue;
pub mod compaction;
pub mod cost;
pub mod design;
pub mod error;
pub mod expiring;
pub mod flush;
pub mod forecast;
pub mod ingest;
pub mod key_range;
pub mod memtable_choice;
pub mod pick;
pub mod random;
mod recency;
pub mod recorded;
pub mod scheduler;
#[cfg(feature = "serde")]
mod serialize;
pub mod shape;
pub mod soundness;
pub mod space;
pub mod strategy;
pub mod suggest;
mod text;
pub mod units;

pub use access::{TableAccess, TableAccesses};
pub use admission::{Admission, Pressure, StallCause, admit, admit_with, share_of_limit};
pub use compaction::{CollectionCause, Compaction, Output, Placement, Reason};
pub use design::{
    Bound, Compression, Constraint, Design, FlushMode, Limit, MemtableKind, OrderedView, Stall,
    ValueSeparation, Values, VectorQuery, Violation, flodb,
};
pub use error::{ParseError, ParseErrorKind};
pub use expiring::{ExpiringTable, expiring_tables};
pub use flush::{FlushPlan, NewRunReason};
pub use forecast::{Amplification, Forecast, forecast};
pub use key_range::KeyRange;
pub use pick::{
    Cursors, PickContext, manual, manual_collection, manual_join, next_due_micros, pick, refilled,
};
pub use scheduler::{ScheduledMerge, Scheduler, Turns, allocate};
pub use shape::{
    AddedTable, Expiry, Level, Run, RunId, SeqNo, SettledValues, ShapeEdit, TableId, TableInfo,
    TreeShape, ValueFileId, ValueFileInfo, ValueFileState, ValueFileUsage, ValueRef,
};
pub use strategy::{
    Eagerness, Expansion, Granularity, Growth, Intake, Movement, Runs, Strategy, Trigger,
    TriggerKind,
};
