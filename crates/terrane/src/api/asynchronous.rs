//! Lookups, scans and writes as futures, for any executor.
//!
//! The engine's calls block their thread: a lookup while it reads a block, a write while writers are
//! stalled or while its sync runs. [`AsyncDb`] runs them on threads of its own, and its futures only
//! queue an operation and look for its result. A lookup that needs only memory runs in the poll.
//!
//! | module | one line |
//! |---|---|
//! | `limits` | how many operations run concurrently |
//! | `lane` | a bounded group of threads and their queue |
//! | `operation` | the future of an operation |
//! | `shared` | the parts that all handles share |
//! | `iter` | scans as streams |
//! | `keyspace`, `snapshot` | handles of a keyspace and of a snapshot |
//! | `db` | the handle of a database |
//!
//! The threads are not those of a crate such as `blocking`: its pool belongs to the process, queues any
//! number of operations, and leaves them waiting if no thread can start.

mod db;
mod iter;
mod keyspace;
mod lane;
mod limits;
mod operation;
mod shared;
mod snapshot;

use crate::base::range::{KeyBounds, bounds_of};

pub use db::AsyncDb;
pub use iter::AsyncIter;
pub use keyspace::AsyncKeyspace;
pub use limits::AsyncLimits;
pub use snapshot::AsyncSnapshot;

/// A range of keys that a thread can own.
type OwnedRange = (std::ops::Bound<Vec<u8>>, std::ops::Bound<Vec<u8>>);

fn owned(range: &impl KeyBounds) -> OwnedRange {
    use std::ops::Bound::{Excluded, Included, Unbounded};
    let (start, end) = bounds_of(range);
    (Included(start.into_owned()), end.map_or(Unbounded, |end| Excluded(end.into_owned())))
}

fn copied<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Vec<Vec<u8>> {
    keys.into_iter().map(|key| key.as_ref().to_vec()).collect()
}
