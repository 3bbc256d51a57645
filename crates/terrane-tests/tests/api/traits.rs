//! Handles, snapshots and iterators have no lifetimes and are usable from any thread.

use terrane::{Db, Error, Iter, Key, Keyspace, Options, Snapshot, Value, WriteBatch};

const fn goes_anywhere<T: Send + Sync + 'static>() {}
const fn is_cloned<T: Clone>() {}

const _: () = {
    goes_anywhere::<Db>();
    goes_anywhere::<Keyspace>();
    goes_anywhere::<Snapshot>();
    goes_anywhere::<Iter>();
    goes_anywhere::<Key>();
    goes_anywhere::<Value>();
    goes_anywhere::<WriteBatch>();
    goes_anywhere::<Options>();
    goes_anywhere::<Error>();
    is_cloned::<Db>();
    is_cloned::<Keyspace>();
    is_cloned::<Snapshot>();
    is_cloned::<Value>();
    is_cloned::<Error>();
};

/// Each handle is created on one thread and used on another after the others are gone.
#[test]
fn handles_values_and_iterators_work_on_other_threads_after_the_database_is_dropped() {
    let db = crate::support::small();
    crate::support::fill(&db, 200, 0);
    db.flush().unwrap();
    db.put("201", "in memory, and long enough not to be copied into the value").unwrap();
    let (snapshot, mut iter) = (db.snapshot(), db.iter().unwrap());
    let held = [db.get("000").unwrap().unwrap(), db.get("201").unwrap().unwrap()];
    let clone = db.clone();
    drop(db);
    std::thread::spawn(move || {
        clone.put("202", "from a thread").unwrap();
        drop(clone);
        assert_eq!(iter.by_ref().count(), 201);
        drop(iter);
        assert_eq!(snapshot.get("201").unwrap().unwrap(), held[1]);
        assert_eq!(snapshot.get("202").unwrap(), None);
        drop(snapshot);
        assert_eq!(held[0], crate::support::value(0, 0));
    })
    .join()
    .unwrap();
}
