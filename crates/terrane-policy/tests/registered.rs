//! Every registered strategy value is documented, and has a case in the picking tests.

use terrane_policy::{Movement, Scheduler, TriggerKind};

#[allow(clippy::panic, reason = "a failed test is a panic")]
fn read(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns true if `text` contains `name` as a separate word; `-` counts as a letter.
fn mentions(text: &str, name: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-')).any(|word| word == name)
}

#[test]
fn every_registered_value_is_in_designs_md() {
    let designs = read("../../docs/designs.md");
    let triggers = TriggerKind::ALL.iter().map(|kind| kind.name());
    let rules = Movement::ALL.iter().map(|rule| rule.info().name);
    let schedulers = Scheduler::ALL.iter().map(|scheduler| scheduler.info().name);
    for name in triggers.chain(rules).chain(schedulers) {
        assert!(mentions(&designs, name), "describe '{name}' in docs/designs.md");
    }
}

#[test]
fn every_trigger_and_movement_rule_has_a_case_in_pick_txt() {
    let cases = read("testdata/pick.txt");
    let cases = cases.lines().filter(|line| !line.starts_with('#'));
    let cases = cases.collect::<Vec<_>>().join("\n");
    let triggers = TriggerKind::ALL.iter().map(|kind| kind.name());
    let rules = Movement::ALL.iter().map(|rule| rule.info().name);
    for name in triggers.chain(rules) {
        assert!(mentions(&cases, name), "add a case with '{name}' to testdata/pick.txt");
    }
}
