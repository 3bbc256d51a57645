//! Flushes, compactions and the threads that run them.

pub(crate) mod compact;
pub(crate) mod delete_age;
pub(crate) mod drain;
pub(crate) mod drop_covered;
pub(crate) mod flush;
pub(crate) mod gate;
pub(crate) mod merge_group;
pub(crate) mod picking;
pub(crate) mod progress;
pub(crate) mod subcompactions;
pub(crate) mod unreadable;
pub(crate) mod workers;
