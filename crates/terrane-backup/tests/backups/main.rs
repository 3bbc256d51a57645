//! Backups through public names only: creating, damage, pruning, restoring, and failures.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

#[cfg(feature = "object-store")]
mod buckets;
mod creating;
mod damage;
mod failing;
mod histories;
#[cfg(unix)]
mod limits;
mod pruning;
mod restoring;
mod support;
