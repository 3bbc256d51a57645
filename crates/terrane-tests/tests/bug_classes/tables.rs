//! Bug classes about the contents of tables, and how they are read.

use std::path::Path;

use terrane::storage::MemoryStorage;
use terrane::{Durability, ErrorKind, KeyspaceOptions, ReadMode, WriteMode};

use super::{DIR, LOST, contents, crash, losses, names, options, small_design};

/// A table was in the manifest, but its length was not durable, because it had been written around
/// the page cache.
#[test]
fn tables_written_around_the_page_cache_keep_their_length() {
    let storage = MemoryStorage::new(1);
    let options = |storage| {
        options(storage)
            .write_mode(WriteMode::Direct)
            .read_mode(ReadMode::Direct)
            .durability(Durability::None)
    };
    let db = options(storage.clone()).design(small_design()).open(DIR).unwrap();
    for round in 0..10u8 {
        for number in 0..40u8 {
            db.put([round, number], [number; 77]).unwrap();
        }
        db.flush().unwrap();
        for loss in losses().step_by(9).chain([LOST]) {
            let db = options(crash(&storage, loss)).open(DIR).unwrap();
            let found = contents(&db, "default").len();
            assert_eq!(found, (usize::from(round) + 1) * 40, "round {round}, {loss:?}");
        }
    }
}

/// A block lay in another block's place, and its checksum was valid there.
#[test]
fn a_block_in_the_place_of_another_is_refused() {
    let storage = MemoryStorage::new(1);
    let design = "leveling; buffer=1MiB; table=1MiB; block=128B; compression=none";
    let db = options(storage.clone()).design(design.parse().unwrap()).open(DIR).unwrap();
    for number in 0..200 {
        // All entries have the same length, and so do most blocks.
        db.put(format!("{number:03}"), format!("the value of key {number:03}")).unwrap();
    }
    db.close().unwrap();
    let [table] = &names(&storage, ".sst")[..] else { panic!("one table") };
    let path = Path::new(DIR).join(table);
    let good = storage.read(&path).unwrap();
    let mut refused = 0;
    // One of these lengths is the length of a block.
    for len in 100..400 {
        let mut bad = good.clone();
        let (first, second) = bad.split_at_mut(len);
        first.swap_with_slice(&mut second[..len]);
        for mode in [ReadMode::Cached, ReadMode::Direct] {
            let image = storage.deep_copy();
            image.overwrite(&path, &bad).unwrap();
            let db = options(image).read_mode(mode).open(DIR).unwrap();
            let error = db.iter().unwrap().find_map(Result::err).unwrap();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{len}: {error}");
            let error = db.get("000").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{len}: {error}");
            refused += 1;
        }
    }
    assert_eq!(refused, 600);
}

/// The cache returned a block of a file that was gone, because a later file had its number.
#[test]
fn the_cache_never_returns_blocks_of_tables_that_are_gone() {
    let storage = MemoryStorage::new(1);
    let mut db = options(storage.clone())
        .read_mode(ReadMode::Cached)
        .design(small_design())
        .open(DIR)
        .unwrap();
    for round in 0..30u8 {
        let keyspace = db.keyspace("other", KeyspaceOptions::new()).unwrap();
        for number in 0..60u8 {
            keyspace.put([number], [round; 60]).unwrap();
            db.put([number], [round; 60]).unwrap();
        }
        db.flush().unwrap();
        // Fills the cache with blocks of this round.
        for name in ["default", "other"] {
            let found = contents(&db, name);
            assert!(found.len() == 60 && found.iter().all(|(_, value)| value[0] == round));
            let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
            for number in 0..60u8 {
                assert_eq!(keyspace.get([number]).unwrap().unwrap()[0], round, "{name} {number}");
            }
        }
        match round % 3 {
            0 => assert!(db.drop_keyspace("other").unwrap()),
            1 => db.compact_range(..).unwrap(),
            _ => {
                db.close().unwrap();
                db = options(storage.clone()).read_mode(ReadMode::Cached).open(DIR).unwrap();
            }
        }
    }
}
