//! Transactions: their reads and conflicts, and that their histories are serializable.
//!
//! | module | one line |
//! |---|---|
//! | `model` | one transaction after the other, against a map |
//! | `hermitage` | the anomalies of Hermitage, one by one |
//! | `histories` | random histories of threads, checked for cycles of dependencies |
//! | `bank` | transfers between accounts, with crashes |
//! | `single` | changes of one key |
//! | `fairness` | a long transaction among short ones |
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(unreachable_pub, reason = "a test crate has no users")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]

mod bank;
mod fairness;
mod hermitage;
mod histories;
mod model;
mod single;

use std::sync::Arc;

use terrane::storage::MemoryStorage;
use terrane::{Db, Design, Options};

/// The memtables of the tests: those that keep versions, and those that overwrite in place.
const MEMTABLES: [&str; 5] = [
    "btree",
    "skiplist",
    "hash-skiplist(prefix=4,buckets=64)",
    "flodb(membuffer=25%,partition-bits=4,drain-threads=1)",
    "flodb(membuffer=90%,partition-bits=1,drain-threads=1,scan=restart)",
];

/// Options of a small database in memory, whose memtables are flushed and merged all the time.
fn small(storage: &MemoryStorage, memtable: &str) -> Options {
    let design =
        format!("leveling T=3; memtable={memtable}; buffer=64KiB; table=32KiB; block=1KiB");
    Options::new()
        .storage(Arc::new(storage.clone()))
        .design(design.parse::<Design>().unwrap())
        .memory_budget(4 << 20)
}

fn open(memtable: &str) -> Db {
    small(&MemoryStorage::new(1), memtable).open("db").unwrap()
}
