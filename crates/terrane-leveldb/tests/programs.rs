//! Compiles a program written for LevelDB, and runs it against the shared and the static library. Skipped, with a
//! line that says so, if there is no `cc`; C++ also if there is no `c++`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests; a skipped one says so"
)]
#![cfg(unix)]

#[path = "../../terrane-capi/tests/support/programs.rs"]
mod programs;

use std::path::Path;

use programs::Programs;

fn programs() -> Programs<'static> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    Programs { crate_dir, library: "terrane_leveldb", header: "leveldb/c.h" }
}

#[test]
fn a_program_for_leveldb_works() {
    programs().assert_prints("tests/c/leveldb.c", "all functions work\n");
}

#[test]
fn the_header_is_clean_c99_and_cpp() {
    programs().assert_header_is_clean();
}
