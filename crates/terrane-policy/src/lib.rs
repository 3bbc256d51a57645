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
//! | [`soundness`] | the check that a compaction never turns recency round |
//! | [`admission`] | when writers are delayed or stopped |
//! | [`units`] | byte sizes as text |
#![forbid(unsafe_code)]

pub mod admission;
pub mod catalogue;
pub mod compaction;
pub mod design;
pub mod error;
pub mod key_range;
pub mod pick;
pub mod shape;
pub mod soundness;
pub mod strategy;
pub mod units;

pub use admission::{Admission, Constraint, Pressure, StallCause, admit};
pub use compaction::{Compaction, Output, Placement, Reason};
pub use design::{Compression, Design, MemtableKind, flodb};
pub use error::ParseError;
pub use key_range::KeyRange;
pub use pick::{Cursors, PickInput, manual, pick};
pub use shape::{AddedTable, Level, Run, RunId, SeqNo, ShapeEdit, TableId, TableInfo, TreeShape};
pub use strategy::{Eagerness, Granularity, Movement, Strategy, Trigger};
