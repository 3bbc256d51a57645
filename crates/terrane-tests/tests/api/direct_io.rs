//! Tables that bypass the page cache.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use terrane::storage::{DiskStorage, MemoryStorage, Storage};
use terrane::{Background, Db, ErrorKind, ManualClock, Options, ReadMode, WriteMode};

use crate::support::{DIR, fill, in_memory, small_design, value};

fn run(options: Options) -> Db {
    let db = options.design(small_design()).open(DIR).unwrap();
    (0..4).for_each(|round| fill(&db, 400, round));
    db.compact_range(..).unwrap();
    db
}

fn check(db: &Db) {
    for number in 0..400 {
        assert_eq!(db.get(format!("{number:03}")).unwrap().unwrap(), value(number, 3));
    }
    assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), 400);
}

fn tables(storage: &MemoryStorage) -> BTreeMap<String, Vec<u8>> {
    let names = storage.list(Path::new(DIR)).unwrap();
    let tables = names.into_iter().filter(|name| name.ends_with(".sst"));
    tables.map(|name| (name.clone(), storage.read(&Path::new(DIR).join(name)).unwrap())).collect()
}

#[test]
fn tables_written_around_the_page_cache_are_the_same_to_the_byte() {
    let [buffered, direct] = [WriteMode::Buffered, WriteMode::Direct].map(|mode| {
        let (options, storage) = in_memory();
        // Tables contain their creation time, so the clock must stand still.
        let options = options.clock(Arc::new(ManualClock::new(1_000_000)));
        let db = run(options.write_mode(mode).read_mode(ReadMode::Direct));
        check(&db);
        assert_eq!(db.stats().direct_refused, 0);
        tables(&storage)
    });
    assert!(!buffered.is_empty() && buffered == direct);
}

#[test]
fn every_pair_of_modes_reads_what_was_written_on_a_disk() {
    for write_mode in [WriteMode::Buffered, WriteMode::Direct] {
        for read_mode in [ReadMode::Cached, ReadMode::Direct] {
            let dir = tempfile::tempdir().unwrap();
            let options = || {
                Options::new()
                    .storage(Arc::new(DiskStorage))
                    .background(Background::Inline)
                    .write_mode(write_mode)
                    .read_mode(read_mode)
            };
            let db = options().design(small_design()).open(dir.path()).unwrap();
            (0..3).for_each(|round| fill(&db, 400, round));
            db.compact_range(..).unwrap();
            db.close().unwrap();
            let db = options().open(dir.path()).unwrap();
            for number in 0..400 {
                let found = db.get(format!("{number:03}")).unwrap().unwrap();
                assert_eq!(found, value(number, 2), "{write_mode} {read_mode}");
            }
        }
    }
}

#[test]
fn refused_direct_io_falls_back_to_the_page_cache_and_is_counted() {
    let (options, storage) = in_memory();
    storage.refuse_direct();
    let options = options.read_mode(ReadMode::Direct).write_mode(WriteMode::Direct);
    let db = run(options);
    check(&db);
    let stats = db.stats();
    assert!(stats.direct_refused > stats.flushes, "{}", stats.direct_refused);
    assert!(stats.to_string().contains("refused by the file system"), "{stats}");
}

#[test]
fn damage_is_reported_as_corruption_in_every_read_mode() {
    let (options, storage) = in_memory();
    let db = run(options.write_mode(WriteMode::Direct));
    db.close().unwrap();
    for (name, mut bytes) in tables(&storage) {
        bytes[10] ^= 1;
        storage.overwrite(&Path::new(DIR).join(name), &bytes).unwrap();
    }
    let options = Options::new().storage(Arc::new(storage)).background(Background::Inline);
    let db = options.read_mode(ReadMode::Direct).write_mode(WriteMode::Direct).open(DIR).unwrap();
    assert_eq!(db.get("000").unwrap_err().kind(), ErrorKind::Corruption);
}
