//! What the other modules share: errors, limits, patterns and event classes.
//!
//! | module | one line |
//! |---|---|
//! | `error` | errors of the server |
//! | `file_limit` | the files that the process may open |
//! | `glob` | patterns of keys and channels |
//! | `keyspace_events` | which changes of keys are announced |
//! | `log` | events of the database in the log |

pub(crate) mod error;
pub(crate) mod file_limit;
pub(crate) mod glob;
pub(crate) mod keyspace_events;
pub(crate) mod log;
