//! The trees of a database, its manifest and its files.

pub(crate) mod files;
pub(crate) mod history;
pub(crate) mod install;
pub(crate) mod keyspaces;
pub(crate) mod log_retention;
pub(crate) mod stall_events;
