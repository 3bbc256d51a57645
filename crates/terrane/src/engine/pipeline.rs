//! The order of writes: sequence numbers, the log, and visibility.

pub(crate) mod commit_queue;
pub(crate) mod snapshots;
