//! Cursors over everything that holds entries, and their merge.
//!
//! All of them walk entries in the same order: by key, and within a key from new to old.
//!
//! | module | one line |
//! |---|---|
//! | `run` | a sorted run, table after table |
//! | `source` | a memtable or a run |
//! | `merge` | many sources as one |
//! | `visible` | what of that a reader at a sequence number sees |
//! | `dead_ranges` | where walks have found nothing |

mod dead_ranges;
mod merge;
mod run;
mod source;
#[cfg(test)]
mod tests;
mod visible;

pub(crate) use dead_ranges::DeadRanges;
pub(crate) use merge::{Direction, MergeCursor};
pub(crate) use run::RunCursor;
pub(crate) use source::Source;
pub(crate) use visible::{DeletedRanges, VisibleCursor};
