//! Modules import only from lower ranks, and import cycles are short.

use terrane_testkit::layers::{assert_cycles, assert_ranks};

#[test]
fn modules_import_only_from_lower_ranks() {
    assert_ranks(env!("CARGO_MANIFEST_DIR"));
}

#[test]
fn import_cycles_are_short() {
    assert_cycles(env!("CARGO_MANIFEST_DIR"), 3);
}
