//! What only shows between two steps of the engine.

use std::sync::Arc;

use terrane_policy::{PickInput, pick};

use crate::error::Error;
use crate::storage::{Fault, FaultStorage, MemoryStorage, Operation};
use crate::{Background, Db, Design, KeyspaceOptions, Options};

fn open() -> Db {
    let storage = Arc::new(MemoryStorage::new(1));
    Options::new().storage(storage).background(Background::Inline).open("db").unwrap()
}

/// A compaction was picked, its keyspace was dropped, and the compaction then found none of its
/// tables: which was taken for a contradiction, and stopped all writes of the database.
#[test]
fn a_keyspace_dropped_before_its_compaction_begins_stops_nothing_else() {
    let db = open();
    let gathers: Design = "tiering T=9".parse().unwrap();
    let keyspace = db.keyspace("dropped", KeyspaceOptions::new().design(gathers)).unwrap();
    for value in ["1", "2", "3"] {
        keyspace.put("key", value).unwrap();
        keyspace.flush().unwrap();
    }
    let (engine, tree) = (&keyspace.handle.engine, &keyspace.tree);
    let compaction = {
        let state = tree.state();
        let mut jobs = tree.jobs();
        let design: Design = "leveling T=2 L0=1".parse().unwrap();
        let shape = state.version.shape();
        let input = PickInput::new(shape, &design);
        let compaction = pick(&input).unwrap();
        jobs.compactions.push(compaction.clone());
        compaction
    };
    db.drop_keyspace("dropped").unwrap();
    let outcome = engine.compact(tree, &compaction);
    assert!(matches!(outcome, Err(Error::Closed)), "{outcome:?}");
    assert!(tree.jobs().compactions.is_empty());
}

/// Dropping a keyspace failed to be kept, and a new one of the same name was made beside it: both
/// were there when the database was opened again.
#[test]
fn a_keyspace_whose_drop_was_not_kept_is_still_there() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new().storage(Arc::new(storage.clone())).background(Background::Inline);
    let db = options.open("db").unwrap();
    let keyspace = db.keyspace("kept", KeyspaceOptions::new()).unwrap();
    keyspace.put("a", "1").unwrap();
    storage.set(Some(Fault {
        operation: Some(Operation::Append),
        path_contains: "MANIFEST".into(),
        after: 0,
        is_permanent: false,
        error: std::io::ErrorKind::StorageFull,
    }));
    assert!(db.drop_keyspace("kept").is_err());
    assert_eq!(storage.fired(), 1);
    storage.set(None);
    let again = db.keyspace("kept", KeyspaceOptions::new()).unwrap();
    assert_eq!(again.get("a").unwrap().unwrap(), "1");
    again.put("b", "2").unwrap();
    keyspace.put("c", "3").unwrap();
    drop((keyspace, again));
    db.close().unwrap();
    let db = options.open("db").unwrap();
    assert_eq!(db.keyspaces(), ["default", "kept"]);
    assert_eq!(db.keyspace("kept", KeyspaceOptions::new()).unwrap().iter().unwrap().count(), 3);
}
