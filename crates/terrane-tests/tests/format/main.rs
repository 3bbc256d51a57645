//! The annotated dump in `docs/FORMAT.md` shows a database that this test writes.
//!
//! A separate reader, written from the document and not from the engine, parses the files: it
//! verifies every checksum with the seed that the document gives, and names every byte. The test
//! fails if the dump differs from the document; `TERRANE_REWRITE=1` rewrites it.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have files of their own")]

mod log;
mod manifest;
mod table;
mod walk;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane::storage::{MemoryStorage, Storage};
use terrane::{Background, Durability, ManualClock, Options, WriteBatch, WriteOptions};

const DIR: &str = "db";
const BEGIN: &str = "<!-- dump:begin -->\n";
const END: &str = "<!-- dump:end -->\n";

/// Writes the same bytes each time: random numbers follow from a seed, the clock stands still, and
/// background work is inline.
fn make() -> MemoryStorage {
    let storage = MemoryStorage::new(7);
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .clock(Arc::new(ManualClock::new(1_700_000_000_000_000)))
        .background(Background::Inline)
        .durability(Durability::Process)
        .compaction_threads(1)
        .log_segment_bytes(64 << 10);
    let db = options.open(DIR).unwrap();
    db.put("apple", "red").unwrap();
    db.put("apricot", "orange").unwrap();
    db.put("banana", "yellow").unwrap();
    db.delete("apple").unwrap();
    let keep = db.snapshot();
    db.put("apricot", "ripe").unwrap();
    db.delete_range("c".."d").unwrap();
    db.flush().unwrap();
    drop(keep);
    let mut batch = WriteBatch::new();
    batch.put("cherry", "dark").delete("banana").delete_range("x"..);
    db.write_with(&batch, WriteOptions::new().durability(Durability::Sync)).unwrap();
    db.put("date", "").unwrap();
    storage
}

fn dump(storage: &MemoryStorage) -> String {
    let mut out = String::new();
    // The lock file and the disk reserve have no format.
    let has_format = |name: &String| name != "LOCK" && !name.starts_with("RESERVE");
    for name in storage.list(Path::new(DIR)).unwrap().into_iter().filter(has_format) {
        let bytes = storage.read(&Path::new(DIR).join(&name)).unwrap();
        out.push_str(&format!("#### `{name}`, {} bytes\n\n```text\n", bytes.len()));
        let text = if name == "CURRENT" {
            let mut walk = walk::Walk::new(&bytes);
            walk.take(bytes.len(), "the name of the manifest, and a newline");
            walk.finish()
        } else if let Some(number) = name.strip_prefix("MANIFEST-") {
            manifest::dump(&bytes, number.parse().unwrap())
        } else if name.ends_with(".log") {
            log::dump(&bytes)
        } else {
            table::dump(&bytes)
        };
        out.push_str(&text);
        out.push_str("```\n\n");
    }
    out
}

#[test]
fn the_dump_in_the_document_matches_the_engine() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/FORMAT.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let start = text.find(BEGIN).unwrap() + BEGIN.len();
    let end = text.find(END).unwrap();
    let made = dump(&make());
    if std::env::var_os("TERRANE_REWRITE").is_some() {
        let new = [&text[..start], "\n", &made, &text[end..]].concat();
        std::fs::write(&path, new).unwrap();
        return;
    }
    let mut lines = text[start..end].trim().lines().zip(made.trim().lines());
    if let Some((document, engine)) = lines.find(|(document, engine)| document != engine) {
        panic!(
            "docs/FORMAT.md says\n  {document}\nand the engine writes\n  {engine}\n\
             TERRANE_REWRITE=1 rewrites the dump; the text above it must be true as well"
        );
    }
    assert_eq!(text[start..end].trim().lines().count(), made.trim().lines().count());
}

#[test]
fn the_same_database_is_written_each_time() {
    assert_eq!(dump(&make()), dump(&make()));
}
