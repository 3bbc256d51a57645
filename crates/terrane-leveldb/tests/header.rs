//! `include/leveldb/c.h` is generated from the sources.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

#[path = "../../terrane-capi/tests/support/header.rs"]
mod header;

use std::path::Path;

use header::Header;

fn header() -> Header<'static> {
    Header {
        crate_dir: Path::new(env!("CARGO_MANIFEST_DIR")),
        path: "include/leveldb/c.h",
        preamble: "include/preamble.h",
        sections: &[
            ("Errors and versions", "status"),
            ("Objects of options", "objects"),
            ("Options", "options"),
            ("Batches", "batch"),
            ("Databases", "database"),
            ("Iterators", "iterator"),
            ("Databases that are not open", "files"),
        ],
        prefix: "leveldb_",
        // LevelDB passes them without `const`, although nothing changes them.
        never_const: &[
            "leveldb_t",
            "leveldb_comparator_t",
            "leveldb_filterpolicy_t",
            "leveldb_cache_t",
            "leveldb_env_t",
            "leveldb_logger_t",
        ],
    }
}

#[test]
fn the_header_is_that_of_the_sources() {
    header().assert_committed();
}

#[test]
fn every_function_is_documented() {
    header().assert_complete(60);
}
