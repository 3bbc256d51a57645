//! The program of the power-cut rig `xtask/powercut.sh`: one process writes to databases on a file
//! system until it is killed, and others check the databases on copies of that file system.
//!
//! The rig copies the image of the mounted file system while the writer runs. The copy holds what
//! the kernel had written to the device, as after a loss of power. The writer records the promises
//! that it got in files outside of that file system. The rig saves these records before and after
//! each cut: writes in the first records must be found, and writes in the second ones may be found.
//!
//! Under `cargo test` this file checks that the checker accepts a closed database and notices lost
//! and foreign writes.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads and variables of their own")]
#![allow(
    clippy::disallowed_types,
    reason = "the records are outside of the file system under test"
)]

mod check;
mod record;
mod writer;

use std::path::PathBuf;

use terrane_testkit::{print_counts, seed_from_env};

/// The directory for the databases.
const ROOT: &str = "TERRANE_POWERCUT_ROOT";
/// The directory of the records: of the writer, or as saved before the cut.
const RECORDS: &str = "TERRANE_POWERCUT_RECORDS";
/// The directory of the records as saved after the cut.
const RECORDS_AFTER: &str = "TERRANE_POWERCUT_RECORDS_AFTER";

fn path(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).map(PathBuf::from)
}

/// Writes until it is killed. Does nothing unless the rig names the directories.
#[test]
fn write_until_killed() {
    let (Some(root), Some(records)) = (path(ROOT), path(RECORDS)) else { return };
    writer::write(&root, &records, seed_from_env(1), u64::MAX);
}

/// Checks all databases after a cut. Does nothing unless the rig names the directories.
#[test]
fn check_after_a_cut() {
    let (Some(root), Some(before), Some(after)) = (path(ROOT), path(RECORDS), path(RECORDS_AFTER))
    else {
        return;
    };
    let found = check::check(&root, &before, &after);
    print_counts(&[
        ("databases", found.databases),
        ("checkpoints", found.checkpoints),
        ("promised_writes", found.promised),
        ("found_writes", found.found),
    ]);
}

#[test]
fn the_checker_accepts_what_the_writer_left_and_notices_lost_and_foreign_writes() {
    let dir = tempfile::tempdir().unwrap();
    let (root, records) = (dir.path().join("root"), dir.path().join("records"));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(&records).unwrap();
    writer::write(&root, &records, 7, 1);
    let found = check::check(&root, &records, &records);
    assert!(found.databases == 1 && found.promised > 0 && found.found >= found.promised);
    let fails = |before: &std::path::Path, after: &std::path::Path| {
        std::panic::catch_unwind(|| check::check(&root, before, after)).is_err()
    };
    // According to these records, some writes in the database were never issued.
    let nothing = dir.path().join("nothing");
    std::fs::create_dir(&nothing).unwrap();
    record::Record::create(&nothing, 0).phase(record::Phase::Created);
    assert!(fails(&nothing, &nothing), "writes that were never issued");
    // The database is replaced by an empty one.
    std::fs::remove_dir_all(writer::database(&root, 0)).unwrap();
    drop(terrane::Db::open(writer::database(&root, 0)).unwrap());
    assert!(fails(&records, &records), "writes that were lost");
}
