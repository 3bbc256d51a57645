//! Blocks compressed with zstd: `cargo test --package terrane --features zstd --test zstd`.
//!
//! The module under test and its tests are compiled into this test, which avoids building all unit
//! tests with the feature.
#![cfg(feature = "zstd")]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]
#![allow(dead_code, reason = "only the tests of the module are used")]

/// The parents of the module under test.
#[path = "../src/files"]
mod files {
    pub(crate) mod table {
        mod zstd;
    }
}

use terrane::{Design, Options};

#[test]
fn a_database_has_what_was_compressed() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = ["none", "zstd"].map(|compression| {
        let design: Design =
            format!("leveling; compression={compression}; buffer=64KiB").parse().unwrap();
        let dir = dir.path().join(compression);
        let db = Options::new().design(design).open(&dir).unwrap();
        for number in 0..5_000u32 {
            db.put(number.to_be_bytes(), format!("value {number} of a database; ").repeat(3))
                .unwrap();
        }
        db.flush().unwrap();
        let written = db.stats().flush_bytes_written;
        db.close().unwrap();
        let db = Options::new().open(&dir).unwrap();
        for number in 0..5_000u32 {
            let expected = format!("value {number} of a database; ").repeat(3);
            assert_eq!(db.get(number.to_be_bytes()).unwrap().unwrap(), expected.as_bytes());
        }
        written
    });
    assert!(bytes[1] < bytes[0] / 2, "{bytes:?}");
}
