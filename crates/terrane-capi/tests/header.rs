//! `include/terrane.h` is generated from the sources.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "support/header.rs"]
mod header;

use std::path::Path;

use header::Header;

fn header() -> Header<'static> {
    Header {
        crate_dir: Path::new(env!("CARGO_MANIFEST_DIR")),
        path: "include/terrane.h",
        preamble: "include/preamble.h",
        sections: &[
            ("Versions", "version"),
            ("Errors", "error"),
            ("Texts and names", "text"),
            ("Options", "options"),
            ("Databases", "database"),
            ("Keyspaces", "keyspace"),
            ("Options of writes", "write_options"),
            ("Writes", "write"),
            ("Batches", "batch"),
            ("Values", "value"),
            ("Lookups", "read"),
            ("Snapshots", "snapshot"),
            ("Transactions", "transaction"),
            ("Iterators", "iter"),
            ("Ingests", "ingest"),
            ("Changes", "changes"),
            ("Databases that are not open", "files"),
        ],
        prefix: "terrane_",
        never_const: &[],
    }
}

#[test]
fn the_header_is_that_of_the_sources() {
    header().assert_committed();
}

#[test]
fn every_function_is_documented() {
    header().assert_complete(100);
}
