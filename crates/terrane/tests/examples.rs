//! Runs the examples in `examples/`. Each checks its own results.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, reason = "tests and examples")]
#![allow(dead_code, reason = "the examples have a `main`")]

macro_rules! examples_of {
    ($names:ident; $($name:ident: $path:literal)*) => {$(
        #[path = $path]
        mod $name;

        #[test]
        fn $name() {
            $name::run(tempfile::tempdir().unwrap().path()).unwrap();
        }
    )*

    const $names: &[&str] = &[$(stringify!($name)),*];
    };
}

#[cfg(feature = "async")]
examples_of! { TOKIO; tokio: "../examples/tokio.rs" }

examples_of! {
    NAMES;
    backup: "../examples/backup.rs"
    change_feed: "../examples/change_feed.rs"
    counters: "../examples/counters.rs"
    expiry: "../examples/expiry.rs"
    index: "../examples/index.rs"
    live_design: "../examples/live_design.rs"
    queue: "../examples/queue.rs"
    quick_start: "../examples/quick_start.rs"
    transactions: "../examples/transactions.rs"
}

/// The example of the feature `async`, which is not compiled without it.
#[cfg(not(feature = "async"))]
const TOKIO: &[&str] = &["tokio"];

/// Examples that measure, and have no results to check.
const MEASUREMENTS: &[&str] = &["in_place"];

#[test]
#[allow(clippy::disallowed_methods, reason = "the sources are files")]
fn every_example_is_run_by_a_test() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let mut known = NAMES.iter().chain(TOKIO).chain(MEASUREMENTS);
        assert!(known.any(|known| *known == name), "no test runs {name}");
    }
}
