//! Adds up the counts of the suites.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;
use std::time::Duration;

use terrane_testkit::parse_counts;

use super::program::Outcome;
use super::suite::Suite;
use crate::step::root;

/// The results of a suite.
struct Row {
    name: &'static str,
    seeds_per_run: u64,
    runs: u64,
    failures: u64,
    time: Duration,
}

/// The results of all suites.
pub(super) struct Summary {
    rows: Vec<Row>,
    /// The commit that the suites were built from.
    commit: String,
    /// The sums of the tests' counts.
    counts: BTreeMap<String, u64>,
    /// The commands that repeat the failures.
    pub(super) failures: Vec<String>,
}

impl Summary {
    pub(super) fn new(suites: &[Suite]) -> Self {
        let row = |suite: &Suite| Row {
            name: suite.name,
            seeds_per_run: suite.seeds,
            runs: 0,
            failures: 0,
            time: Duration::ZERO,
        };
        let rows = suites.iter().map(row).collect();
        Self { rows, commit: commit(), counts: BTreeMap::new(), failures: Vec::new() }
    }

    pub(super) fn add(&mut self, suite: usize, time: Duration, outcome: &Outcome) {
        let row = &mut self.rows[suite];
        row.runs += 1;
        row.failures += u64::from(!outcome.is_success());
        row.time += time;
        for (name, count) in outcome.output.lines().filter_map(parse_counts).flatten() {
            *self.counts.entry(name.to_owned()).or_default() += count;
        }
    }

    /// Returns a table of the suites and a table of the counts.
    pub(super) fn table(&self, time: Duration, workers: usize) -> String {
        let mut text = format!(
            "==> soak of {:.0} s on {workers} cores at {}\n\n{:<18}{:>8}{:>10}{:>12}{:>10}\n",
            time.as_secs_f64(),
            self.commit,
            "suite",
            "runs",
            "seeds",
            "seconds",
            "failures"
        );
        for row in &self.rows {
            let (seeds, seconds) = (row.runs * row.seeds_per_run, row.time.as_secs_f64());
            let _ = writeln!(
                text,
                "{:<18}{:>8}{:>10}{:>12.0}{:>10}",
                row.name, row.runs, seeds, seconds, row.failures
            );
        }
        text.push('\n');
        for (name, count) in &self.counts {
            let _ = writeln!(text, "{:<30}{:>16}", name.replace('_', " "), grouped(*count));
        }
        text
    }
}

/// Returns the commit of the work tree, and whether the tree differs from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(root()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short", "HEAD"]) else {
        return "an unknown commit".into();
    };
    match git(&["status", "--porcelain"]) {
        Some(changes) if changes.is_empty() => commit,
        _ => format!("{commit} with changes"),
    }
}

/// Returns a number with a comma before every three digits.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_runs_are_added_up() {
        let mut summary = Summary::new(&[Suite { name: "crash", seeds: 6, percent: 100 }]);
        for verdict in ["ok", "FAILED"] {
            let output = "test a ... counts: images=1000 kills=1\nok\ncounts: images=500\n".into();
            summary.add(0, Duration::from_secs(3), &Outcome { verdict, output });
        }
        let table = summary.table(Duration::from_secs(6), 2);
        let words: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert!(words.contains(&vec!["crash", "2", "12", "6", "1"]), "{table}");
        assert!(words.contains(&vec!["images", "3,000"]), "{table}");
        assert!(words.contains(&vec!["kills", "2"]), "{table}");
    }

    #[test]
    fn digits_are_grouped_by_three() {
        let numbers = [0, 999, 1000, 387_424, 5_400_000].map(grouped);
        assert_eq!(numbers, ["0", "999", "1,000", "387,424", "5,400,000"]);
    }
}
