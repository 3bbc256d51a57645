use std::sync::Arc;

use super::*;
use crate::files::storage::MemoryStorage;
use crate::{Background, KeyspaceOptions, Options};

/// The stall of a dropped keyspace never ended, and every job looked for its end in all keyspaces.
#[test]
fn the_stall_of_a_dropped_keyspace_ends() {
    let storage = Arc::new(MemoryStorage::new(1));
    let db = Options::new().storage(storage).background(Background::Inline).open("db").unwrap();
    let keyspace = db.keyspace("dropped", KeyspaceOptions::new()).unwrap();
    let catalog = &keyspace.handle.engine.catalog;
    let pressure = Pressure::new(StallCause::Level0Runs, None, 24, 24, 24);
    let report = || catalog.report_stalled(&keyspace.tree, StallEffect::Stopped, &pressure);
    report();
    assert_eq!(catalog.stalls_reported.load(Ordering::Relaxed), 1);
    assert!(db.drop_keyspace("dropped").unwrap());
    assert_eq!(catalog.stalls_reported.load(Ordering::Relaxed), 0);
    let is_end = |event: &Event| match event {
        Event::WritesResumed { keyspace, .. } => keyspace == "dropped",
        _ => false,
    };
    assert_eq!(db.events().iter().filter(|logged| is_end(&logged.event)).count(), 1);
    // A writer that found the keyspace before it was dropped.
    report();
    assert_eq!(catalog.stalls_reported.load(Ordering::Relaxed), 0);
}
