//! Tests for classes of bugs that lost data in other storage engines, where no other test looks for
//! them. The table in docs/TESTING.md names a test for each class.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]

mod document;
mod files;
mod log;
mod tables;
mod versions;

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Crash, MemoryStorage, Storage, Survival};
use terrane::{Background, Db, Design, Iter, KeyspaceOptions, Options};

const DIR: &str = "db";

/// A loss of power that no unsynced byte or name survives.
const LOST: Crash = Crash::Power(Survival { percent: 0, seed: 0 });

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

fn options(storage: impl Storage + 'static) -> Options {
    Options::new()
        .storage(Arc::new(storage))
        .background(Background::Inline)
        .memory_budget(4 << 20)
        .log_segment_bytes(64 << 10)
}

/// A design that flushes and compacts after a few kilobytes.
fn small_design() -> Design {
    "leveling T=3 L0=2 base=8KiB; buffer=4KiB; table=2KiB; block=256B".parse().unwrap()
}

fn entries(iter: Iter) -> Entries {
    iter.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

fn contents(db: &Db, keyspace: &str) -> Entries {
    entries(db.keyspace(keyspace, KeyspaceOptions::new()).unwrap().iter().unwrap())
}

/// Returns the image of a crash now.
fn crash(storage: &MemoryStorage, crash: Crash) -> MemoryStorage {
    storage.crash_point().image(crash)
}

/// Returns power failures that keep different parts of the unsynced data.
fn losses() -> impl Iterator<Item = Crash> {
    let survival = |seed| Survival { percent: [0, 20, 50, 80, 95, 100][seed as usize % 6], seed };
    (0..60).map(survival).map(Crash::Power)
}

fn names(storage: &impl Storage, ending: &str) -> Vec<String> {
    let names = storage.list(Path::new(DIR)).unwrap();
    names.into_iter().filter(|name| name.ends_with(ending)).collect()
}
