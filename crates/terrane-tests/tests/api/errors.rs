//! Tests the text of errors, which names a file, an offset and a remedy.

use std::path::Path;

use terrane::{Db, Error, ErrorKind, inspect};

use crate::support::{DIR, fill, in_memory};

fn table_in(storage: &terrane::storage::MemoryStorage) -> std::path::PathBuf {
    use terrane::storage::Storage;
    let names = storage.list(Path::new(DIR)).unwrap();
    Path::new(DIR).join(names.iter().find(|name| name.ends_with(".sst")).unwrap())
}

#[test]
fn a_damaged_block_names_file_offset_and_remedy() {
    let (options, storage) = in_memory();
    let db = options.open(DIR).unwrap();
    fill(&db, 100, 0);
    db.close().unwrap();
    let path = table_in(&storage);
    let mut bytes = storage.read(&path).unwrap();
    bytes[100] ^= 1;
    storage.overwrite(&path, &bytes).unwrap();
    let db = options.open(DIR).unwrap();
    let error = db.get("000").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
    let Error::Corruption(place) = &error else { panic!("{error}") };
    assert_eq!((&place.path, place.offset), (&path, Some(0)));
    let text = error.to_string();
    assert!(text.contains(".sst at byte 0") && text.contains("terrane repair"), "{text}");
    // The iterator returns the error as its last item, so that a scan that was cut short does not
    // look complete.
    let mut iter = db.iter().unwrap();
    assert_eq!(iter.next().unwrap().unwrap_err().kind(), ErrorKind::Corruption);
    assert!(iter.next().is_none() && iter.next().is_none());
}

#[test]
fn a_missing_table_is_seen_when_the_database_is_opened() {
    use terrane::storage::Storage;
    let (options, storage) = in_memory();
    let db = options.open(DIR).unwrap();
    fill(&db, 10, 0);
    db.close().unwrap();
    let path = table_in(&storage);
    storage.remove(&path).unwrap();
    let text = options.open(DIR).unwrap_err().to_string();
    assert!(text.contains(path.to_str().unwrap()) && text.contains("missing"), "{text}");
}

#[test]
fn a_newer_format_is_distinguished_from_damage() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("a", "1").unwrap();
    drop(db);
    let log = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let log =
        log.into_iter().find(|path| path.extension().is_some_and(|end| end == "log")).unwrap();
    let mut bytes = std::fs::read(&log).unwrap();
    // Version 2 with a valid checksum; docs/FORMAT.md defines it.
    bytes[8..12].copy_from_slice(&2u32.to_le_bytes());
    let sum = xxh3_header(&bytes[..88]);
    bytes[88..96].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&log, &bytes).unwrap();
    let error = Db::open(dir.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    let Error::Unsupported { path, found: 2, supported: 1, .. } = &error else { panic!("{error}") };
    assert_eq!(**path, *log);
    let text = error.to_string();
    assert!(text.contains("format version 2") && text.contains("newer"), "{text}");
    assert!(inspect::verify(dir.path(), &mut |_| {}).unwrap().problems.len() == 1);
}

fn xxh3_header(bytes: &[u8]) -> u64 {
    let seed = u64::from_le_bytes(*b"TERRLOG\0");
    xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed)
}

#[test]
fn every_error_is_one_sentence_without_line_breaks() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    let errors = [
        options.open(DIR).unwrap_err(),
        db.put(vec![0; 70_000], "").unwrap_err(),
        db.drop_keyspace("default").unwrap_err(),
        db.keyspace("", terrane::KeyspaceOptions::new()).unwrap_err(),
        db.keyspace(&"x".repeat(256), terrane::KeyspaceOptions::new()).unwrap_err(),
        Db::open_read_only("no such directory").unwrap_err(),
    ];
    for error in errors {
        let text = error.to_string();
        assert!(!text.contains('\n') && text.len() > 20, "{text}");
    }
}
