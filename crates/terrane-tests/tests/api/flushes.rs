//! When memtables are flushed, and flushes that merge with level 0.

use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, Db, Design, Event, ManualClock, Options, inspect};
use terrane_testkit::wait_until;

use crate::support::{DIR, fill, in_memory, pairs, value};

const DESIGN: &str = "1-leveling T=4 L0=4; flush=merge; buffer=64KiB; table=4KiB; block=512B";

fn open() -> (Db, MemoryStorage) {
    let (options, storage) = in_memory();
    (options.design(DESIGN.parse().unwrap()).open(DIR).unwrap(), storage)
}

fn level0_runs(db: &Db) -> usize {
    db.tree().shape.level(0).runs.len()
}

/// Dent's buffer holds one version of each key (§2.1), so putting a key again takes no more space.
#[test]
fn the_buffer_of_dents_tree_overwrites_in_place() {
    for (more, is_in_place) in [("", true), ("; memtable=btree", false)] {
        let (options, _storage) = in_memory();
        let design = format!("dent{more}").parse().unwrap();
        let db = options.design(design).open(DIR).unwrap();
        for number in 0..50_000_u32 {
            db.put("key", [&number.to_be_bytes()[..], &[7; 100]].concat()).unwrap();
        }
        let bytes = db.stats().memory.memtable_bytes;
        assert_eq!(bytes < 1 << 20, is_in_place, "{more}: {bytes} bytes");
        assert_eq!(db.get("key").unwrap().unwrap()[..4], 49_999_u32.to_be_bytes());
    }
}

#[test]
fn merging_flushes_leave_one_run_and_the_same_answers() {
    let (db, _) = open();
    let (other, _) = in_memory();
    let other = other.design(DESIGN.replace("merge", "new").parse().unwrap()).open(DIR).unwrap();
    for round in 0..3 {
        for db in [&db, &other] {
            fill(db, 100 - 20 * round, round);
            db.delete(format!("{:03}", 90 + round)).unwrap();
            db.delete_range(format!("{:03}", 10 * round)..format!("{:03}", 10 * round + 5))
                .unwrap();
            db.flush().unwrap();
        }
    }
    assert_eq!((level0_runs(&db), level0_runs(&other)), (1, 3));
    assert_eq!(pairs(db.iter().unwrap()), pairs(other.iter().unwrap()));
    let (merged, apart) = (db.stats(), other.stats());
    assert_eq!((merged.flushes, merged.flushes_merged, merged.flushes_apart), (3, 2, 0));
    assert_eq!((apart.flushes, apart.flushes_merged, apart.flushes_apart), (3, 0, 0));
    assert!(merged.write_amplification().unwrap() > apart.write_amplification().unwrap());
    assert!(
        merged.to_string().contains("2 merged with level 0, 0 made a new run instead"),
        "{merged}"
    );
    let last = db.events().into_iter().rev().map(|event| event.event);
    let ended = last.into_iter().find(|event| matches!(event, Event::FlushEnded { .. })).unwrap();
    let Event::FlushEnded { merged_tables, read_bytes, new_run_reason, .. } = &ended else {
        panic!()
    };
    assert!(*merged_tables > 0 && *read_bytes > 0 && new_run_reason.is_none(), "{ended:?}");
    assert!(ended.to_string().contains("of level 0"), "{ended}");
}

#[test]
fn jobs_record_merging_flushes() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().background(Background::Inline).design(DESIGN.parse().unwrap());
    let db = options.open(dir.path()).unwrap();
    for round in 0..2 {
        fill(&db, 30, round);
        db.flush().unwrap();
    }
    let jobs = inspect::jobs(dir.path()).unwrap();
    assert_eq!(jobs.len(), 1);
    assert!(jobs[0].what.starts_with("the memtable + L0 r1: "), "{}", jobs[0].what);
    assert!(jobs[0].what.ends_with("into L0 r1"), "{}", jobs[0].what);
    assert_eq!(jobs[0].why, "flush: the memtable is merged with level 0");
    assert!(jobs[0].written_bytes > 0 && jobs[0].read_bytes > 0);
    db.close().unwrap();
    assert!(inspect::verify(dir.path(), &mut |_| {}).unwrap().problems.is_empty());
}

#[test]
fn merging_flushes_keep_only_versions_that_snapshots_see() {
    let (db, _) = open();
    fill(&db, 30, 0);
    db.flush().unwrap();
    let snapshot = db.snapshot();
    fill(&db, 30, 1);
    db.delete_range("010".."020").unwrap();
    db.flush().unwrap();
    assert_eq!((level0_runs(&db), db.stats().table_entries), (1, 50));
    assert_eq!(snapshot.iter().unwrap().count(), 30);
    assert_eq!(db.iter().unwrap().count(), 20);
    drop(snapshot);
    db.put("000", "again").unwrap();
    db.delete_range(..).unwrap();
    db.flush().unwrap();
    // Everything is deleted, and no older entries are left that the tombstones must hide.
    assert_eq!((db.stats().tables, db.iter().unwrap().count()), (0, 0));
    assert!(db.stats().tables_dropped > 0, "tables that are deleted whole are not read");
}

#[test]
fn a_flush_that_overlaps_no_table_rewrites_nothing() {
    let (db, _) = open();
    for part in ["a", "b", "c"] {
        (0..50).for_each(|number| db.put(format!("{part}{number}"), "value").unwrap());
        db.flush().unwrap();
    }
    assert_eq!((level0_runs(&db), db.stats().flushes_merged), (1, 2));
    assert!(db.stats().write_amplification().unwrap() < 3.0, "{}", db.stats());
    assert_eq!(db.stats().compaction_bytes_read, 0);
}

/// A damaged table must not keep the memtable from being flushed.
#[test]
fn a_damaged_table_is_skipped_and_the_memtable_becomes_a_new_run() {
    let (db, storage) = open();
    fill(&db, 30, 0);
    db.close().unwrap();
    let names = storage.list(DIR.as_ref()).unwrap();
    let table = names.iter().find(|name| name.ends_with(".sst")).unwrap();
    let path = std::path::Path::new(DIR).join(table);
    let mut bytes = storage.read(&path).unwrap();
    bytes[10] ^= 1;
    storage.overwrite(&path, &bytes).unwrap();
    let (options, _) = in_memory();
    let db = options.storage(Arc::new(storage)).open(DIR).unwrap();
    for round in 1..4 {
        fill(&db, 30, round);
        db.flush().unwrap();
        assert_eq!(db.get("005").unwrap().unwrap(), value(5, round));
    }
    // The first flush reads the damaged table and fails to merge; later flushes merge with each
    // other.
    assert_eq!((level0_runs(&db), db.stats().flushes_apart), (2, 1));
    let reported = db.events().iter().map(|event| event.event.to_string()).collect::<Vec<_>>();
    let apart = reported.iter().find(|text| text.contains("a new run because")).unwrap();
    assert!(apart.contains("merging it failed") && apart.contains(".sst"), "{apart}");
    assert!(db.stats().error.unwrap().to_string().contains(".sst"));
}

#[test]
fn flush_merge_can_be_switched_on_a_live_database() {
    let (db, _) = open();
    let design = |word: &str| -> Design { DESIGN.replace("merge", word).parse().unwrap() };
    db.set_design(design("new")).unwrap();
    for round in 0..3 {
        fill(&db, 20, round);
        db.flush().unwrap();
    }
    assert_eq!(level0_runs(&db), 3);
    db.set_design(design("merge")).unwrap();
    fill(&db, 20, 3);
    db.flush().unwrap();
    assert_eq!((level0_runs(&db), db.iter().unwrap().count()), (1, 20));
    db.set_design(design("new")).unwrap();
    fill(&db, 20, 4);
    db.flush().unwrap();
    assert_eq!((level0_runs(&db), db.iter().unwrap().count()), (2, 20));
}

#[test]
fn deletes_are_persistent_in_time_though_flushes_merge() {
    let clock = Arc::new(ManualClock::new(1_000_000));
    let (options, _) = in_memory();
    let options = options.clock(clock.clone()).delete_persistence(Duration::from_secs(100));
    let db = options.design(DESIGN.parse().unwrap()).open(DIR).unwrap();
    fill(&db, 30, 0);
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    db.delete("003").unwrap();
    for round in 0..50 {
        clock.advance(Duration::from_secs(3));
        fill(&db, 3, round);
        db.flush().unwrap();
        while db.run_background_job().unwrap() {}
        let age = db.stats().oldest_tombstone_micros.unwrap_or(0);
        assert!(age < 100_000_000, "{age} in round {round}:\n{}", db.tree());
    }
    assert_eq!(db.stats().table_tombstones, 0);
    assert!(db.stats().flushes_merged > 20);
}

/// Touching all memory of a preallocated vector takes milliseconds, which no put should take.
#[test]
fn the_next_memtable_is_preallocated_before_a_put_needs_it() {
    const BUFFER: u64 = 1 << 20;
    let (options, _) = in_memory();
    let design = "leveling; buffer=1MiB; memtable=vector(prealloc=1MiB)".parse().unwrap();
    let db = options.background(Background::Threads).design(design).open(DIR).unwrap();
    let bytes = || db.stats().memory.memtable_bytes;
    let put = |number: u64| db.put(number.to_be_bytes(), [7; 1000]).unwrap();
    let alone = bytes();
    assert!(alone >= BUFFER, "{alone}");
    // Four fifths of the buffer: a background thread prepares the next memtable.
    (0..840).for_each(put);
    wait_until(|| bytes() >= alone + BUFFER, || format!("{} bytes after {alone}", bytes()));
    assert_eq!(db.stats().flushes, 0);
    // The put that fills the buffer switches to it. A memtable created by that put would not be
    // preallocated.
    (840..1100).for_each(put);
    wait_until(|| db.stats().flushes == 1, || db.stats().to_string());
}
