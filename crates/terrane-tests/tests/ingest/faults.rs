//! Each operation of a script with ingests fails once, or from then on.
//!
//! A failed ingest has changed nothing, or its entries exist after the database is opened again. Writes
//! continue after it, unless the database refuses them.

use std::io::ErrorKind as Io;
use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation, Storage};
use terrane::{Background, Db, Durability, ErrorKind, Options};
use terrane_testkit::{print_counts, seed_from_env};

const DIR: &str = "db";

fn options(storage: Arc<dyn Storage>, values: &str) -> Options {
    let design =
        format!("1-leveling T=4 L0=4 base=16KiB; buffer=64KiB; table=4KiB; block=512B{values}");
    Options::new()
        .storage(storage)
        .background(Background::Inline)
        .durability(Durability::Process)
        .memory_budget(16 << 20)
        .log_segment_bytes(64 << 10)
        .design(design.parse().unwrap())
}

/// The rounds that the keys of ingests and of puts may have.
#[derive(Debug)]
struct Outcome {
    /// The newest ingest that succeeded, and those after it that failed.
    ingests: Vec<u32>,
    /// The same for puts.
    puts: Vec<u32>,
}

fn ingest(db: &Db, round: u32) -> terrane::Result<()> {
    let mut ingest = db.default_keyspace().begin_ingest()?;
    for number in 0..120 {
        ingest.put(format!("k{number:03}"), vec![round as u8; 100])?;
    }
    ingest.commit()
}

fn script(db: &Db, outcome: &mut Outcome) {
    for round in 1..=4 {
        match db.put("a put", [round as u8]) {
            Ok(()) => outcome.puts = vec![round],
            Err(_) => outcome.puts.push(round),
        }
        match ingest(db, round) {
            Ok(()) => outcome.ingests = vec![round],
            Err(_) => outcome.ingests.push(round),
        }
        check(db, outcome, true);
    }
}

/// Checks that all keys have the value of the same ingest, one that `outcome` allows.
fn check(db: &Db, outcome: &Outcome, is_failing: bool) {
    let Ok(iter) = db.prefix("k") else { return };
    let found: Result<Vec<_>, _> = iter.collect();
    let found = match found {
        Ok(found) => found,
        Err(_) if is_failing => return,
        Err(error) => panic!("{error}"),
    };
    let round = found.first().map_or(0, |(_, value)| u32::from(value[0]));
    assert!(outcome.ingests.contains(&round), "round {round} of {outcome:?}");
    assert_eq!(found.len(), if round == 0 { 0 } else { 120 }, "{outcome:?}");
    assert!(found.iter().all(|(_, value)| u32::from(value[0]) == round), "{outcome:?}");
    if let Ok(put) = db.get("a put") {
        let put = put.map_or(0, |value| u32::from(value[0]));
        assert!(outcome.puts.contains(&put), "put {put} of {outcome:?}");
    }
}

/// Runs the script with one fault. Returns false if the fault did not fire.
fn run(fault: &Fault, values: &str) -> bool {
    let memory = MemoryStorage::new(1);
    let storage = FaultStorage::new(Arc::new(memory.clone()));
    let db = options(Arc::new(storage.clone()), values).open(DIR).unwrap();
    let mut outcome = Outcome { ingests: vec![0], puts: vec![0] };
    storage.set(Some(fault.clone()));
    script(&db, &mut outcome);
    let fired = storage.fired() > 0;
    storage.set(None);
    check(&db, &outcome, false);
    // After a transient fault, the database works again, or says that it must be opened again.
    match ingest(&db, 9) {
        Ok(()) => outcome.ingests = vec![9],
        Err(error) => {
            assert!(fired && error.kind() == ErrorKind::Poisoned, "{error} after {fault:?}");
            outcome.ingests.push(9);
        }
    }
    check(&db, &outcome, false);
    drop(db);
    let db = options(Arc::new(memory.clone()), values).open(DIR).unwrap();
    check(&db, &outcome, false);
    ingest(&db, 10).unwrap();
    db.close().unwrap();
    let db = options(Arc::new(memory.clone()), values).open(DIR).unwrap();
    let names = memory.list(Path::new(DIR)).unwrap();
    let files = names.iter().filter(|name| name.ends_with(".sst")).count();
    assert_eq!(files, db.tree().shape.tables().count(), "{fault:?}");
    fired
}

#[test]
fn an_ingest_that_fails_changes_nothing() {
    let kinds = [
        (Operation::Create, ""),
        (Operation::Append, ""),
        (Operation::Sync, ".sst"),
        (Operation::Sync, ".val"),
        (Operation::Sync, ".log"),
        (Operation::Sync, "MANIFEST"),
        (Operation::SyncDir, ""),
        (Operation::Name, ""),
        (Operation::List, ""),
        (Operation::Open, ""),
        (Operation::Read, ""),
    ];
    let mut faults = 0;
    for values in ["", "; values=separate(64)"] {
        for (operation, path) in kinds {
            for is_permanent in [false, true] {
                // Every other operation; the seed says which.
                for after in (seed_from_env(0) % 2..).step_by(2) {
                    let fault = Fault {
                        operation: Some(operation),
                        path_contains: path.into(),
                        after,
                        is_permanent,
                        error: Io::StorageFull,
                    };
                    if !run(&fault, values) {
                        break;
                    }
                    faults += 1;
                }
            }
        }
    }
    print_counts(&[("faults", faults)]);
    assert!(faults > 150, "{faults}");
}
