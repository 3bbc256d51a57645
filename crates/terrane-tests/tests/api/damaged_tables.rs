//! A table that compactions cannot read: callers that depend on it get the error, and other work
//! continues.

use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, Db, Error, ErrorKind};
use terrane_testkit::run_guarded;

use crate::support::{DIR, in_memory};

/// A database whose only table, with keys from `a` to `z`, has a damaged block.
fn damaged(background: Background) -> Db {
    let (options, storage) = in_memory();
    let db = options.open(DIR).unwrap();
    db.put("a", "0").unwrap();
    db.put("z", "0").unwrap();
    db.delete("b").unwrap();
    db.close().unwrap();
    let names = storage.list(DIR.as_ref()).unwrap();
    let table = names.iter().find(|name| name.ends_with(".sst")).unwrap();
    flip(&storage, table, 10);
    options.background(background).open(DIR).unwrap()
}

fn flip(storage: &MemoryStorage, name: &str, at: usize) {
    let path = std::path::Path::new(DIR).join(name);
    let mut bytes = storage.read(&path).unwrap();
    bytes[at] ^= 1;
    storage.overwrite(&path, &bytes).unwrap();
}

/// Calls `work` on the database; fails if the call hangs.
fn guarded<T: Send + 'static>(db: &Db, work: impl FnOnce(&Db) -> T + Send + 'static) -> T {
    let db = db.clone();
    run_guarded(move || work(&db))
}

fn assert_names_table(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let text = error.to_string();
    assert!(text.contains(".sst") && text.contains("repair"), "{text}");
}

/// Writers used to hang, because they waited for a compaction that would never be picked again.
#[test]
fn writers_stopped_by_a_damaged_table_get_the_error() {
    for background in [Background::Threads, Background::Inline] {
        let db = damaged(background);
        let round = |db: &Db, number: u32| {
            db.put("a", number.to_string())?;
            db.put("z", number.to_string())?;
            db.flush()
        };
        let error = guarded(&db, move |db| (0..40).find_map(|number| round(db, number).err()));
        assert_names_table(&error.expect("writers were not stopped"));
        assert_names_table(&guarded(&db, |db| db.put("c", "1").unwrap_err()));
        assert_names_table(&guarded(&db, |db| db.wait_for_compactions().unwrap_err()));
        assert_names_table(&db.stats().error.unwrap());
        // Reads of undamaged blocks succeed.
        assert!(db.get("a").unwrap().is_some() && db.get("z").unwrap().is_some());
        guarded(&db, |db| db.clone().close().unwrap());
    }
}

/// The first call returned the damage. The calls after it used to hang, because they waited for the
/// conflicting table that the first call had found.
#[test]
fn a_range_with_a_damaged_table_is_refused_each_time_it_is_compacted() {
    for background in [Background::Threads, Background::Inline] {
        let db = damaged(background);
        // Without this key, the compaction would move the table without reading it.
        db.put("b", "1").unwrap();
        for _ in 0..3 {
            let refused = guarded(&db, |db| db.compact_range(..));
            assert_names_table(&refused.unwrap_err());
        }
        db.put("c", "1").unwrap();
        guarded(&db, |db| db.flush().unwrap());
        assert_eq!(db.get("c").unwrap().unwrap(), "1");
        // The work done since has not repaired the table.
        assert_names_table(&db.stats().error.unwrap());
    }
}
