//! The table of bug classes in docs/TESTING.md is complete, and names tests that exist.

use std::path::Path;

/// Returns the tests that a row names, as pairs of a file and a function.
fn tests(row: &str) -> Vec<(String, String)> {
    let code = row.split('`').skip(1).step_by(2);
    let test = |text: &str| text.split_once("::").map(|(file, name)| (file.into(), name.into()));
    code.filter(|text| text.contains(".rs::")).filter_map(test).collect()
}

/// Returns true if a file of Rust defines the function, or a macro of tests lists its name.
fn defines(source: &str, name: &str) -> bool {
    source.lines().map(str::trim_start).any(|line| {
        let function = line.trim_start_matches("pub ").strip_prefix("fn ");
        function.is_some_and(|rest| rest.starts_with(&format!("{name}(")))
            || line.starts_with(&format!("{name}: "))
    })
}

#[test]
fn every_bug_class_has_a_test_that_exists() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let document = std::fs::read_to_string(crates.join("../docs/TESTING.md")).unwrap();
    let section = document.split_once("\n## Bug classes\n").unwrap().1;
    let section = section.split("\n## ").next().unwrap();
    let mut numbers = Vec::new();
    for row in section.lines().filter(|line| line.starts_with('|')) {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let Some(Ok(number)) = cells.next().map(str::parse::<u32>) else { continue };
        numbers.push(number);
        let tests = tests(row);
        assert!(!tests.is_empty() || row.contains("does not apply"), "class {number} has no test");
        for (file, name) in tests {
            let source = std::fs::read_to_string(crates.join(&file));
            let source = source.unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(defines(&source, &name), "class {number}: no test {file}::{name}");
        }
    }
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>());
}
