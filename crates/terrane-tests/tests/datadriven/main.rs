//! The engine as text: scripts write, crash, reopen and read, and the answers show trees, events,
//! logs and manifests.
//!
//! Each file of `tests/testdata` is one test. Background work is inline, files are in memory with a
//! fixed seed, and the clock stands still, so the answers are the same every time; only durations,
//! which come from the processor's clock, are masked. `TERRANE_REWRITE=1` replaces the answers by
//! those of the code.
//!
//! | directive | arguments | answer |
//! |---|---|---|
//! | `open`, `reopen` | options such as `design=`, `durability=`; `dir=` | writes replayed from the log |
//! | `close` | | |
//! | `keyspace` | `name=`, `design=` | |
//! | `drop-keyspace` | `name=` | |
//! | `write`, `batch` | `durability=`; lines of `put K V`, `delete K`, `delete-range A B`, `fill A..B SIZE VALUE` | the last sequence number, and how many jobs the writes did |
//! | `get` | `snapshot=`; lines of keys | their values |
//! | `scan` | `in=`, `snapshot=`, `from=`, `to=`, `reverse` | the entries |
//! | `count` | `in=`, `snapshot=` | how many entries there are |
//! | `snapshot`, `release` | `name=` | the sequence number |
//! | `flush`, `settle` | | the events |
//! | `compact` | `from=`, `to=` | the events |
//! | `job` | | one background job, and its events |
//! | `sync` | | |
//! | `design` | `to=`, `in=` | the events |
//! | `advance` | `seconds=` | |
//! | `tree` | `in=`, `brief` | memtables, levels, runs and tables |
//! | `stats` | names of counters | their values |
//! | `events` | | all events since the last answer that had some |
//! | `manifest` | `skip` | the edits since the last `manifest`; with `skip` they only count as seen |
//! | `log` | `brief` | the segments and their records |
//! | `files` | | how many files of each kind there are |
//! | `verify` | | the report of `inspect::verify` |
//! | `checkpoint` | `dir=` | |
//! | `record` | | records crash points until `points` |
//! | `points` | | the crash points, numbered |
//! | `crash` | `point=`, `keep=PERCENT`, `seed=`; without `keep` only the process dies | |
//! | `fault` | `operation=`, `path=`, `after=`, `permanent`, `full`; `off` | how often the last one fired |
//! | `disk` | `free=BYTES`, or `unlimited` | |
//! | `flip` | `path=`, `at=` | flips a bit of the first file whose name contains the path |
//!
//! A key may name its keyspace: `other/k1`. Some directives may fail; then the answer is the error.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "files are copied to disk to be inspected")]

mod answer;
mod crash;
mod draw;
mod session;
mod write;

use terrane_testkit::datadriven;

use session::Session;

fn testdata() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/testdata")
}

fn run(name: &str) {
    let mut session = Session::new();
    datadriven::run(testdata().join(format!("{name}.txt")), |case| {
        answer::answer(&mut session, case)
    });
}

macro_rules! scripts {
    ($($name:ident)+) => {
        const NAMES: &[&str] = &[$(stringify!($name)),+];
        $(#[test] fn $name() { run(stringify!($name)); })+
    };
}

scripts! {
    checkpoint
    crash_in_flush
    delete_range
    design_switch
    disk_full
    faults
    flodb
    flush_merge
    keyspaces
    leveling
    log_replay
    snapshots
    tiering
    trivial_moves
}

#[test]
fn every_file_is_a_test() {
    let mut files: Vec<String> = std::fs::read_dir(testdata())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert_eq!(files, NAMES);
}
