//! Every byte of a small database flipped, every file cut at every length, every file removed.
//!
//! The database must answer correctly or return a typed error. It must not panic, nor allocate more
//! memory than its files justify.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Access, MemoryStorage, Storage};
use terrane::{Background, Db, Design, ErrorKind, KeyspaceOptions, Options, ReadMode, Result};
use terrane_testkit::{Rng, print_counts, seed_from_env};
use terrane_tests::model::Map;

const DIR: &str = "db";

const INLINE: &str = "inline";
const SEPARATED: &str = "separate(32,file=1KiB)";

fn options(storage: &MemoryStorage, mode: ReadMode) -> Options {
    Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Inline)
        .read_mode(mode)
        .log_segment_bytes(64 << 10)
}

/// A database with tables in two levels, range tombstones, a log and two keyspaces.
fn build(closes: bool, values: &str) -> (MemoryStorage, Map, Map) {
    let storage = MemoryStorage::new(1);
    let design = "balanced L0=2 base=1KiB; buffer=2KiB; table=1KiB; block=128";
    let design: Design = format!("{design}; values={values}").parse().unwrap();
    let longest = if values == INLINE { 20 } else { 60 };
    let db = options(&storage, ReadMode::Cached).design(design).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    let (mut map, mut others) = (Map::new(), Map::new());
    let mut rng = Rng::new(seed_from_env(1));
    for number in 0..60u32 {
        let key = format!("key{:02}", number * 7 % 60).into_bytes();
        let value = format!("value {number}{}", "x".repeat(rng.index(longest))).into_bytes();
        db.put(&key, &value).unwrap();
        map.insert(key, value);
        if number % 10 == 0 {
            let key = number.to_be_bytes().to_vec();
            other.put(&key, b"other").unwrap();
            others.insert(key, b"other".to_vec());
        }
    }
    db.delete_range("key20".."key24").unwrap();
    map.retain(|key, _| !(b"key20".to_vec()..b"key24".to_vec()).contains(key));
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    for number in 0..5u32 {
        let key = format!("late{number}").into_bytes();
        db.put(&key, b"in the log").unwrap();
        map.insert(key, b"in the log".to_vec());
    }
    if closes {
        db.close().unwrap();
    }
    (storage, map, others)
}

fn read_all(db: &Db) -> Result<(Map, Map)> {
    let read = |iter: terrane::Iter| -> Result<Map> {
        iter.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec()))).collect()
    };
    let map = read(db.iter()?)?;
    let other = db.keyspace("other", KeyspaceOptions::new())?;
    for (key, value) in map.iter().step_by(5) {
        assert_eq!(db.get(key)?.as_deref(), Some(&value[..]), "get and scan disagree");
    }
    db.get("missing")?;
    let backward: Map = read(db.iter()?)?;
    assert_eq!(backward, map);
    Ok((map, read(other.iter()?)?))
}

fn check(storage: &MemoryStorage, map: &Map, others: &Map, mode: ReadMode, what: &str) -> bool {
    let answer = options(storage, mode).open(DIR).and_then(|db| read_all(&db));
    match answer {
        Ok((found, other)) => {
            assert!(found == *map && other == *others, "a wrong answer after {what}");
            true
        }
        Err(error) => {
            let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported];
            assert!(kinds.contains(&error.kind()), "{what}: {error}");
            false
        }
    }
}

/// Returns the offsets to damage: every `step`th, from an offset that the seed decides. A log segment
/// (or a value file, which may be one) has its records at the start, so few offsets after them
/// suffice. The contents of a disk reserve have no meaning.
fn places(name: &str, len: usize, step: usize) -> Vec<usize> {
    let is_segment = name.ends_with(".log") || name.ends_with(".val");
    let all = match name {
        _ if name.starts_with("RESERVE") => 0,
        _ if is_segment => len.min(8000),
        _ => len,
    };
    let first = seed_from_env(0) as usize % step;
    (first..all).step_by(step).chain((all..len).step_by(997)).collect()
}

fn flip_everything(values: &str, mode: ReadMode, step: usize) {
    let (storage, map, others) = build(true, values);
    let names = storage.list(Path::new(DIR)).unwrap();
    assert!(names.iter().filter(|name| name.ends_with(".sst")).count() > 2);
    let (mut refused, mut damaged) = (0, 0);
    for name in &names {
        let path = Path::new(DIR).join(name);
        let good = storage.read(&path).unwrap();
        for at in places(name, good.len(), step) {
            damaged += 1;
            let mut bad = good.clone();
            bad[at] ^= 1 << ((at as u64).wrapping_add(seed_from_env(0)) % 8);
            let image = storage.deep_copy();
            image.overwrite(&path, &bad).unwrap();
            refused += usize::from(!check(
                &image,
                &map,
                &others,
                mode,
                &format!("flipping byte {at} of {name}"),
            ));
        }
    }
    assert!(refused > 500 / step, "damage was hardly ever seen: {refused}");
    print_counts(&[("damaged_files", damaged)]);
}

#[test]
fn flipped_bytes_of_a_closed_database_are_detected_or_harmless() {
    flip_everything(INLINE, ReadMode::Cached, 2);
    flip_everything(INLINE, ReadMode::Direct, 4);
}

#[test]
fn flipped_bytes_of_a_closed_database_with_separated_values_are_detected_or_harmless() {
    flip_everything(SEPARATED, ReadMode::Cached, 5);
}

/// If the last record of a log that was not closed is damaged, it looks as if a crash had cut it
/// short, because no record follows it. All other damage is detected.
#[test]
fn flipped_bytes_of_an_open_database_lose_the_last_record_at_most() {
    let (storage, map, others) = build(false, SEPARATED);
    let mut shorter = map.clone();
    shorter.remove(b"late4".as_slice());
    let flip = Rng::new(seed_from_env(3)).between(1, 255) as u8;
    let mut damaged = 0;
    for name in storage.list(Path::new(DIR)).unwrap() {
        let path = Path::new(DIR).join(&name);
        let good = storage.read(&path).unwrap();
        for at in places(&name, good.len(), 3) {
            damaged += 1;
            let mut bad = good.clone();
            bad[at] ^= flip;
            let image = storage.deep_copy();
            image.overwrite(&path, &bad).unwrap();
            let answer = options(&image, ReadMode::Cached).open(DIR).and_then(|db| read_all(&db));
            match answer {
                Ok((found, other)) => {
                    // A segment of the log may be a value file as well, under both names.
                    let is_log = name.ends_with(".log") || name.ends_with(".val");
                    let right = found == map || (found == shorter && is_log);
                    assert!(right && other == others, "byte {at} of {name}");
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at} of {name}: {error}");
                }
            }
        }
    }
    print_counts(&[("damaged_files", damaged)]);
}

#[test]
fn cut_and_missing_files_are_detected_or_harmless() {
    cut_and_remove_everything(INLINE);
    cut_and_remove_everything(SEPARATED);
}

fn cut_and_remove_everything(values: &str) {
    let (storage, map, others) = build(true, values);
    let mut damaged = 0;
    for name in storage.list(Path::new(DIR)).unwrap() {
        let path = Path::new(DIR).join(&name);
        let good = storage.read(&path).unwrap();
        for len in places(&name, good.len(), 3) {
            damaged += 1;
            let image = storage.deep_copy();
            image.overwrite(&path, &good[..len]).unwrap();
            // A manifest that was cut may look like a valid manifest without its last edits, as
            // after a crash.
            if name.starts_with("MANIFEST") {
                let answer =
                    options(&image, ReadMode::Cached).open(DIR).and_then(|db| read_all(&db));
                assert!(
                    answer.is_err()
                        || answer.is_ok_and(|(found, other)| found == map && other == others),
                    "{name} cut to {len}"
                );
            } else {
                check(&image, &map, &others, ReadMode::Cached, &format!("cutting {name} to {len}"));
            }
        }
        let image = storage.deep_copy();
        image.remove(&path).unwrap();
        let survives = check(&image, &map, &others, ReadMode::Cached, &format!("removing {name}"));
        let is_spare = name == "LOCK" || name.starts_with("RESERVE");
        assert!(!survives || is_spare, "{name} is of no use");
        damaged += 1;
    }
    print_counts(&[("damaged_files", damaged)]);
}

#[test]
fn foreign_files_in_the_directory_are_left_alone() {
    let (storage, map, others) = build(true, INLINE);
    let names = [
        ".DS_Store",
        "notes.txt",
        "000001.sst",
        "MANIFEST",
        "MANIFEST-x",
        "CURRENT~",
        "000999.log.bak",
        "99999999-zz.sst",
    ];
    for name in names {
        storage
            .create(&Path::new(DIR).join(name), Access::Buffered)
            .unwrap()
            .append(b"not ours")
            .unwrap();
    }
    // These names look like names of the engine's files, but the files belong to an opening that
    // crashed or to another database.
    for name in ["000999.log", "MANIFEST-000000", "00000999-000000000000abcd.sst", "CURRENT.new"] {
        storage
            .create(&Path::new(DIR).join(name), Access::Buffered)
            .unwrap()
            .append(b"left over")
            .unwrap();
    }
    for _ in 0..2 {
        assert!(check(&storage, &map, &others, ReadMode::Cached, "strange files"));
        let db = options(&storage, ReadMode::Cached).open(DIR).unwrap();
        db.put("x", "y").unwrap();
        db.delete("x").unwrap();
        db.close().unwrap();
    }
    let left = storage.list(Path::new(DIR)).unwrap();
    assert!(names.iter().all(|name| left.contains(&(*name).to_owned())));
    assert!(!left.contains(&"00000999-000000000000abcd.sst".to_owned()));
}

#[test]
fn swapped_blocks_and_swapped_tables_are_detected() {
    let (storage, map, others) = build(true, INLINE);
    let names = storage.list(Path::new(DIR)).unwrap();
    let tables: Vec<_> = names
        .iter()
        .filter(|name| name.ends_with(".sst"))
        .map(|name| Path::new(DIR).join(name))
        .collect();
    let contents: Vec<_> = tables.iter().map(|path| storage.read(path).unwrap()).collect();
    let mut swapped = 0;
    for a in 0..tables.len() {
        for b in 0..a {
            if contents[a].len() != contents[b].len() {
                continue;
            }
            let image = storage.deep_copy();
            image.overwrite(&tables[a], &contents[b]).unwrap();
            image.overwrite(&tables[b], &contents[a]).unwrap();
            assert!(!check(&image, &map, &others, ReadMode::Cached, "swapping tables"));
            swapped += 1;
        }
    }
    // Swap two blocks of one table that have the same length.
    for (path, good) in tables.iter().zip(&contents) {
        for len in [100, 110, 120, 130] {
            let mut bad = good.clone();
            if bad.len() < 2 * len + 200 {
                continue;
            }
            let (first, second) = bad.split_at_mut(len);
            first.swap_with_slice(&mut second[..len]);
            let image = storage.deep_copy();
            image.overwrite(path, &bad).unwrap();
            check(&image, &map, &others, ReadMode::Cached, "swapping blocks");
        }
    }
    let _ = swapped;
}
