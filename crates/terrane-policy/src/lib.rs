//! The decisions of a log-structured merge tree, without the tree.
//!
//! A [`TreeShape`] describes levels, runs and tables without their data. A [`Design`] names every
//! choice of the LSM design space: memory buffer, compaction [`Strategy`], filters. From the two,
//! [`pick()`] answers which compaction to do next and [`admit`] whether writers may go on.
//!
//! Everything here is pure: plain data in, a decision out. No I/O, no threads, no clock, no
//! randomness. That is why the same code decides in the engine, in a simulator and in tests that
//! state a tree as text and expect a decision as text.
//!
//! | module | one line |
//! |---|---|
//! | [`key_range`] | half-open ranges of keys |
//! | [`shape`] | levels, runs, tables; edits of them; their text form |
//! | [`strategy`] | trigger × eagerness × granularity × data movement |
//! | [`design`] | a strategy plus memtable, filters, compression; its text form |
//! | [`catalogue`] | designs with names |
//! | [`compaction`] | what a strategy answers: inputs, output place, reason |
//! | [`pick`](mod@pick) | from shape and strategy to a compaction |
//! | [`flush`] | where the entries of a memtable go |
//! | [`forecast`](mod@forecast) | what a design will do to a tree, played on shapes |
//! | [`soundness`] | the check that a compaction never turns recency round |
//! | [`space`] | all strategies that make sense |
//! | [`admission`] | when writers are delayed or stopped |
//! | [`scheduler`] | how merges share the bandwidth |
//! | [`allocation`] | how filter memory and time are shared among levels |
//! | [`advice`] | which designs suit a workload |
//! | [`memtable_choice`] | which memtable suits a mix of operations |
//! | [`cost`](mod@cost) | what a design costs, by formulas |
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
pub mod flush;
pub mod forecast;
pub mod key_range;
pub mod memtable_choice;
pub mod pick;
mod recency;
pub mod scheduler;
pub mod shape;
pub mod soundness;
pub mod space;
pub mod strategy;
mod text;
pub mod units;

pub use access::{Access, Accesses};
pub use admission::{Admission, Pressure, StallCause, admit};
pub use compaction::{Compaction, Output, Placement, Reason};
pub use design::{
    Bound, Compression, Constraint, Design, FlushMode, Limit, MemtableKind, OrderedView, Stall,
    VectorQuery, Violation, flodb,
};
pub use error::ParseError;
pub use flush::{FlushPlan, NewRunReason};
pub use forecast::{Amplification, Forecast, forecast};
pub use key_range::KeyRange;
pub use pick::{Cursors, PickInput, manual, next_due_micros, pick, refilled};
pub use scheduler::{Merge, Scheduler, allocate};
pub use shape::{AddedTable, Level, Run, RunId, SeqNo, ShapeEdit, TableId, TableInfo, TreeShape};
pub use strategy::{
    Eagerness, Granularity, Growth, Intake, Movement, Runs, Strategy, Trigger, TriggerKind,
};
