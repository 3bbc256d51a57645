//! Compiles the examples and the test programs in C, and runs them against the shared and the static library.
//! Skipped, with a line that says so, if there is no `cc`; C++ also if there is no `c++`.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests; a skipped one says so"
)]
#![cfg(unix)]

#[path = "support/programs.rs"]
mod programs;

use std::path::Path;

use programs::Programs;

fn programs() -> Programs<'static> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    Programs { crate_dir, library: "terrane_c", header: "terrane.h" }
}

#[test]
fn the_first_example_prints_its_fruit() {
    let expected = "apple is red\nbanana is yellow\ncherry is dark red\n";
    programs().assert_prints("examples/c/first.c", expected);
}

#[test]
fn transfers_keep_the_sum() {
    programs().assert_prints("examples/c/accounts.c", "800 transfers, sum 800\n");
}

#[test]
fn events_arrive_and_their_context_is_freed() {
    programs().assert_prints("examples/c/events.c", "statistics count writes\nevents arrived\n");
}

#[test]
fn every_function_works_from_c() {
    programs().assert_prints("tests/c/functions.c", "all functions work\n");
}

#[test]
fn handles_outlive_their_database_and_threads_see_it_closed() {
    programs().assert_prints("tests/c/closing.c", "closing is safe\n");
}

#[test]
fn a_database_does_not_work_in_a_child_of_fork_and_can_be_opened_there() {
    programs().assert_prints("tests/c/forking.c", "forks are safe\n");
}

#[test]
fn the_header_is_clean_c99_and_cpp() {
    programs().assert_header_is_clean();
}
