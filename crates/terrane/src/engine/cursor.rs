//! Cursors over memtables and runs, and their merge.
//!
//! All cursors iterate in the same order: by key, and the versions of a key from newest to oldest.
//!
//! | module | one line |
//! |---|---|
//! | `run` | a cursor over a sorted run, table by table |
//! | `source` | a cursor over a memtable or a run |
//! | `merge` | the merge of several sources |
//! | `deleted_ranges` | the range tombstones and dead ranges that a reader must consider |
//! | `visible` | the entries that a reader at a sequence number sees |
//! | `dead_ranges` | key ranges known to contain only deleted keys |

mod dead_ranges;
mod deleted_ranges;
mod merge;
mod run;
mod source;
#[cfg(test)]
mod tests;
mod visible;

pub(crate) use dead_ranges::{DeadRanges, Sight};
pub(crate) use deleted_ranges::DeletedRanges;
pub(crate) use merge::{Direction, MergeCursor};
pub(crate) use run::RunCursor;
pub(crate) use source::Source;
pub(crate) use visible::{ValueSource, VisibleCursor};
