//! Modules import only from below, and cycles of imports are short.

use terrane_testkit::layers::assert_cycles;

#[test]
fn import_cycles_are_short() {
    assert_cycles(env!("CARGO_MANIFEST_DIR"), 3);
}
