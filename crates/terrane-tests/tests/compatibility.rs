//! Tests that databases of all format versions so far can be opened, read, verified and written to.
//!
//! `tests/golden/vN` holds a database in `db` and its contents in `expected.txt`. To add one when a
//! format version changes, raise [`NEWEST`] and run this test with `TERRANE_REWRITE=1`, which
//! creates missing directories and leaves existing ones alone. Then check the new directory in.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have files of their own")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{MemoryStorage, Storage};
use terrane::{
    Background, Clock, Db, Design, Durability, Keyspace, KeyspaceOptions, ManualClock, Options,
    WriteBatch, WriteOptions, inspect,
};
use xxhash_rust::xxh3::xxh3_64;

/// The newest golden database: 1 has all values in tables, 2 has separated values as well, 3 has padded and
/// compressed blocks, and 4 has values that expire and operands.
const NEWEST: u32 = 4;

/// The number of writes that are only in the log of each golden database.
const LOGGED_WRITES: [u64; 4] = [2, 3, 1, 4];

fn golden(version: u32) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{version}"))
}

/// Returns the contents of a database, one entry a line. Long values are given by length and
/// checksum.
fn contents(db: &Db) -> String {
    let mut out = String::new();
    let mut names = db.keyspaces();
    names.sort();
    for name in names {
        let keyspace = db.keyspace(&name, KeyspaceOptions::new()).unwrap();
        writeln!(out, "keyspace {name}: {}", keyspace.design()).unwrap();
        for entry in keyspace.iter().unwrap() {
            let (key, value) = entry.unwrap();
            let shown = match value.len() {
                0..=40 => format!("\"{}\"", value.escape_ascii()),
                len => format!("{len} bytes, XXH3-64 {:016x}", xxh3_64(&value)),
            };
            writeln!(out, "  \"{}\" = {shown}", key.escape_ascii()).unwrap();
        }
    }
    out
}

const DIR: &str = "db";

fn options(storage: &MemoryStorage) -> Options {
    Options::new()
        .storage(Arc::new(storage.clone()))
        .clock(Arc::new(ManualClock::new(1_700_000_000_000_000)))
        .background(Background::Inline)
        .compaction_threads(1)
        .log_segment_bytes(64 << 10)
}

/// Creates a database with an example of everything that table formats before version 3 can hold.
fn make(version: u32) {
    let storage = MemoryStorage::new(u64::from(version));
    let options = options(&storage);
    let small = "buffer=4KiB; table=2KiB; block=512B; filter=0.5,10";
    let plain = format!("1-leveling T=3 L0=2 base=4KiB; {small}").parse().unwrap();
    let packed = format!("tiering T=3; compression=none,lz4; memtable=skiplist; {small}");
    let db = options.design(plain).open(DIR).unwrap();
    let packed = KeyspaceOptions::new().design(packed.parse().unwrap());
    let packed = db.keyspace("packed", packed).unwrap();
    let gone = db.keyspace("gone", KeyspaceOptions::new()).unwrap();
    for number in 0..150u32 {
        let key = format!("key {:03}", number * 7 % 100);
        db.put(&key, format!("value {number}")).unwrap();
        packed.put(&key, format!("value {number} ").repeat(8)).unwrap();
        gone.put(&key, "never seen again").unwrap();
    }
    db.drop_keyspace("gone").unwrap();
    // A value that gets a block of its own, and that is not in the log.
    let large: Vec<u8> = (0..33_000u32).map(|at| (at % 251) as u8).collect();
    let unlogged = WriteOptions::new().durability(Durability::None);
    db.put_with("large", large, unlogged).unwrap();
    db.compact_range(..).unwrap();
    let separated = put_separated_values(&db);
    let snapshot = db.snapshot();
    let default = db.keyspace("default", KeyspaceOptions::new()).unwrap();
    for keyspace in [&default, &packed].into_iter().chain(&separated) {
        write_later(keyspace);
    }
    db.flush().unwrap();
    drop(snapshot);
    let [linked, .., inline] = &separated;
    inline.set_design("leveling; buffer=4KiB; table=2KiB".parse().unwrap()).unwrap();
    check_files_of_values(&storage, DIR);
    // These writes stay in the log.
    let mut batch = WriteBatch::new();
    batch.put("", "the empty key").put("empty", "").delete("key 099").put_in(&packed, "log", "in");
    batch.delete_range_in(&packed, "key 09"..="key 095").delete_range("y"..);
    db.write_with(&batch, WriteOptions::new().durability(Durability::Sync)).unwrap();
    db.put("last", "write").unwrap();
    linked.put("last", "write ".repeat(100)).unwrap();
    save(&storage, version, &contents(&db));
}

/// Creates a database with padded blocks and blocks of every compression. Without the feature `zstd`
/// the last one has blocks of LZ4.
fn make_compressed(version: u32) {
    let storage = MemoryStorage::new(u64::from(version));
    let db = options(&storage).open(DIR).unwrap();
    for compression in ["none", "lz4", "zstd"] {
        let design = format!("leveling; compression={compression}; block=4KiB; filter=10");
        let options = KeyspaceOptions::new().design(design.parse().unwrap());
        let keyspace = db.keyspace(compression, options).unwrap();
        for number in 0..300u32 {
            let key = format!("record {:05}", number * 77 % 300);
            keyspace.put(key, format!("number {number} of many ").repeat(2)).unwrap();
        }
        // This is the last write, because blocks after it would not start at page boundaries.
        keyspace.put("the long one", "abcd".repeat(2000)).unwrap();
        keyspace.flush().unwrap();
    }
    db.put("key 055", "value in the default keyspace").unwrap();
    db.flush().unwrap();
    db.put("last", "write").unwrap();
    let tables = storage.list(Path::new(DIR)).unwrap();
    let tables = tables.iter().filter(|name| name.ends_with(".sst"));
    let tables: Vec<_> =
        tables.map(|name| storage.read(&Path::new(DIR).join(name)).unwrap()).collect();
    let has =
        |wanted: &[u8]| tables.iter().any(|bytes| bytes.windows(4).any(|four| four == wanted));
    assert!(has(&[0x28, 0xb5, 0x2f, 0xfd]), "no frame of Zstandard; see the feature");
    let versions: Vec<u8> = tables.iter().map(|bytes| bytes[bytes.len() - 20]).collect();
    assert_eq!(versions.iter().filter(|version| **version == 3).count(), 2, "{versions:?}");
    save(&storage, version, &contents(&db));
}

/// Creates a database with expiring values (some already expired), with operands above values, above
/// deletes and above nothing, and with a default time to live.
fn make_more_kinds(version: u32) {
    let storage = MemoryStorage::new(u64::from(version));
    let clock = Arc::new(ManualClock::new(1_700_000_000_000_000));
    let db = options(&storage).clock(Arc::clone(&clock) as Arc<dyn Clock>).open(DIR).unwrap();
    let (short, long) = (Duration::from_secs(5), Duration::from_secs(1 << 36));
    let mut snapshots = Vec::new();
    for name in ["default", "packed", "apart"] {
        let design = match name {
            "packed" => "tiering; buffer=16KiB; block=512B; compression=lz4",
            "apart" => "leveling; buffer=16KiB; block=512B; values=separate(100)",
            _ => "leveling; buffer=16KiB; block=512B",
        };
        let options = KeyspaceOptions::new().design_or_change(design.parse::<Design>().unwrap());
        let keyspace = db.keyspace(name, options).unwrap();
        keyspace.set_merge_operator("append").unwrap();
        for number in 0..100u32 {
            let key = format!("key {number:03}");
            let value = format!("item {number} ").repeat(if number % 7 == 0 { 20 } else { 1 });
            let options = WriteOptions::new();
            match number % 5 {
                1 | 46 => {}
                2 => keyspace.put_with(&key, value, options.ttl(short)).unwrap(),
                3 => keyspace.put_with(&key, value, options.ttl(long)).unwrap(),
                _ => keyspace.put(&key, value).unwrap(),
            }
        }
        keyspace.flush().unwrap();
        for number in (0..100u32).filter(|number| number % 5 != 1 && number % 3 == 0) {
            keyspace.merge(format!("key {number:03}"), "and more").unwrap();
            // Operands are not combined across a snapshot.
            snapshots.push(db.snapshot());
            keyspace.merge(format!("key {number:03}"), "!").unwrap();
        }
        keyspace.merge("only operands", "one").unwrap();
        keyspace.delete("key 046").unwrap();
        keyspace.flush().unwrap();
    }
    let ending = db.keyspace("ending", KeyspaceOptions::new()).unwrap();
    ending.set_ttl(Some(long)).unwrap();
    ending.put("flushed", "value").unwrap();
    ending.flush().unwrap();
    drop(snapshots);
    ending.put("logged", "value").unwrap();
    db.put_with("logged", "value", WriteOptions::new().ttl(short)).unwrap();
    db.put_with("logged long", "value", WriteOptions::new().ttl(long)).unwrap();
    db.keyspace("packed", KeyspaceOptions::new()).unwrap().merge("last", "write").unwrap();
    let tables = storage.list(Path::new(DIR)).unwrap().into_iter();
    let tables = tables.filter(|name| name.ends_with(".sst"));
    let version_of = |name: String| {
        let bytes = storage.read(&Path::new(DIR).join(name)).unwrap();
        bytes[bytes.len() - 20]
    };
    let versions: Vec<u8> = tables.map(version_of).collect();
    assert!(versions.iter().all(|version| *version == 4), "{versions:?}");
    clock.advance(short);
    save(&storage, version, &contents(&db));
}

/// Writes a database to its directory.
fn save(storage: &MemoryStorage, version: u32, text: &str) {
    let dir = golden(version);
    std::fs::create_dir_all(dir.join("db")).unwrap();
    for name in storage.list(Path::new(DIR)).unwrap() {
        let mut bytes = storage.read(&Path::new(DIR).join(&name)).unwrap();
        if name.ends_with(".log") {
            // Spare segments are empty, and a few of the zeros at the end of a segment suffice.
            let Some(used) = bytes.iter().rposition(|&byte| byte != 0) else { continue };
            bytes.truncate((used + 64).next_multiple_of(8));
        }
        std::fs::write(dir.join("db").join(name), bytes).unwrap();
    }
    std::fs::write(dir.join("expected.txt"), text).unwrap();
}

/// Creates keyspaces with separated values: one leaves its values in the log, one moves them to files when
/// it flushes, and a design change moves those of one back into tables later.
fn put_separated_values(db: &Db) -> [Keyspace; 3] {
    let small = "buffer=16KiB; table=2KiB; block=512B; values=separate";
    let open = |name: &str, values: &str| {
        let design = format!("1-leveling T=3 L0=2 base=8KiB; {small}{values}").parse().unwrap();
        db.keyspace(name, KeyspaceOptions::new().design(design)).unwrap()
    };
    let keyspaces = [
        open("values in the log", "(100,garbage=60%,space=2)"),
        open("values in files", "(100,garbage=90%,space=4,file=8KiB)"),
        open("values in tables", "(100,garbage=90%,space=4)"),
    ];
    for (keyspace, durability) in
        keyspaces.iter().zip([Durability::Process, Durability::None, Durability::None])
    {
        for number in 0..150u32 {
            let key = format!("key {:03}", number * 7 % 100);
            // Every fourth value is small enough for the table.
            let value = format!("value {number} ").repeat(if number % 4 == 0 { 3 } else { 60 });
            keyspace.put_with(key, value, WriteOptions::new().durability(durability)).unwrap();
        }
        keyspace.put_with("empty", "", WriteOptions::new().durability(durability)).unwrap();
        keyspace.flush().unwrap();
    }
    keyspaces
}

/// Checks that some value files are segments of the log, and some are not.
fn check_files_of_values(storage: &MemoryStorage, dir: &str) {
    let names = storage.list(Path::new(dir)).unwrap();
    let values = names.iter().filter(|name| name.ends_with(".val"));
    let magics: Vec<Vec<u8>> = values
        .map(|name| storage.read(&Path::new(dir).join(name)).unwrap()[..8].to_vec())
        .collect();
    assert!(magics.iter().any(|magic| magic == b"TERRLOG\0"), "{names:?}");
    assert!(magics.iter().any(|magic| magic == b"TERRVALS"), "{names:?}");
}

/// Writes versions of a key, deletes and range deletes in tables above the entries they hide.
fn write_later(keyspace: &Keyspace) {
    for number in (0..100).step_by(10) {
        keyspace.put(format!("key {number:03}"), format!("later {number}")).unwrap();
        keyspace.delete(format!("key {:03}", number + 1)).unwrap();
    }
    keyspace.delete_range("key 042".."key 048").unwrap();
    keyspace.put("key 045", "after the range").unwrap();
}

fn copy_of(version: u32) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(golden(version).join("db")).unwrap() {
        let path = entry.unwrap().path();
        std::fs::copy(&path, dir.path().join(path.file_name().unwrap())).unwrap();
    }
    dir
}

#[test]
fn databases_of_every_version_are_read_verified_and_written_to() {
    for version in 1..=NEWEST {
        if std::env::var_os("TERRANE_REWRITE").is_some() && !golden(version).exists() {
            match version {
                1 | 2 => make(version),
                3 => make_compressed(version),
                _ => make_more_kinds(version),
            }
        }
        let expected = std::fs::read_to_string(golden(version).join("expected.txt")).unwrap();
        // Designs of earlier manifests print with the current word.
        let expected = expected.replace("values=apart(", "values=separate(");
        let dir = copy_of(version);
        let bytes: u64 = dir
            .path()
            .read_dir()
            .unwrap()
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum();
        // A log segment that became a value file keeps its full length.
        assert!(
            bytes < [100_000, 500_000, 100_000, 300_000][version as usize - 1],
            "v{version}: {bytes} bytes"
        );
        let logged = LOGGED_WRITES[version as usize - 1];
        assert_eq!(contents(&Db::open_read_only(dir.path()).unwrap()), expected, "v{version}");
        let verify = || inspect::verify(dir.path(), &mut |_| {}).unwrap();
        let found = verify();
        assert!(found.problems.is_empty(), "v{version}: {:?}", found.problems);
        assert!(found.tables >= 4 && found.log_writes == logged, "v{version}: {found:?}");
        let db = Db::open(dir.path()).unwrap();
        assert_eq!(contents(&db), expected, "v{version}");
        assert_eq!(db.stats().replayed_writes, logged);
        check_gets(&db, &expected);
        db.put("key 000", "of now").unwrap();
        db.delete_range("key 05".."key 06").unwrap();
        let expected = contents(&db);
        assert!(expected.contains("of now") && !expected.contains("\"key 055\" = \"value"));
        db.flush().unwrap();
        db.compact_range(..).unwrap();
        assert_eq!(contents(&db), expected, "v{version} compacted");
        db.put("more", "in the log").unwrap();
        let expected = contents(&db);
        drop(db);
        let db = Db::open(dir.path()).unwrap();
        assert_eq!(contents(&db), expected, "v{version} opened again");
        db.close().unwrap();
        assert!(verify().problems.is_empty());
    }
}

/// Looks up every key on its own, through index and filter.
fn check_gets(db: &Db, expected: &str) {
    let mut names = db.keyspaces();
    names.sort();
    let mut count = 0;
    for name in names {
        let keyspace = db.keyspace(&name, KeyspaceOptions::new()).unwrap();
        for entry in keyspace.iter().unwrap() {
            let (key, value) = entry.unwrap();
            assert_eq!(keyspace.get(&key).unwrap().unwrap(), value);
            count += 1;
        }
        assert_eq!(keyspace.get("key 001").unwrap(), None);
        assert_eq!(keyspace.get("key 046").unwrap(), None);
    }
    assert_eq!(expected.lines().filter(|line| line.starts_with("  ")).count(), count);
}
