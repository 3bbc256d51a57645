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

examples_of! {
    NAMES;
    backup: "../../terrane/examples/backup.rs"
    change_feed: "../../terrane/examples/change_feed.rs"
    counters: "../../terrane/examples/counters.rs"
    expiry: "../../terrane/examples/expiry.rs"
    index: "../../terrane/examples/index.rs"
    live_design: "../../terrane/examples/live_design.rs"
    queue: "../../terrane/examples/queue.rs"
    quick_start: "../../terrane/examples/quick_start.rs"
    tokio: "../../terrane/examples/tokio.rs"
    transactions: "../../terrane/examples/transactions.rs"
}

/// Examples that only measure and have no results to check.
const MEASUREMENTS: &[&str] = &["in_place"];

#[test]
#[allow(clippy::disallowed_methods, reason = "the sources are files")]
fn every_example_is_run_by_a_test() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../terrane/examples");
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let mut known = NAMES.iter().chain(MEASUREMENTS);
        assert!(known.any(|known| *known == name), "no test runs {name}");
    }
}
