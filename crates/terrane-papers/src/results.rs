//! The measurements of an experiment: named numbers, and tables for people.
//!
//! An experiment declares its metrics, records measurements and adds tables. It does not judge
//! them: the judge compares the measurements with the claims of the paper.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use terrane_lab::host::Environment;

/// A metric that an experiment declares.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// The name in expressions.
    pub name: &'static str,
    /// The measured quantity, its unit and its keys.
    pub about: &'static str,
}

/// One number of a metric.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// One key for each dimension of the metric, such as a strategy.
    pub keys: Vec<String>,
    /// The number that represents all rounds.
    pub value: f64,
    /// The numbers of the rounds, if recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<f64>,
}

/// A table for people: text in the first column, numbers in the others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The heading.
    pub title: String,
    /// A heading for each column.
    pub headers: Vec<String>,
    /// The rows, as wide as the headers.
    pub rows: Vec<Vec<String>>,
    /// Paragraphs between the heading and the table.
    pub introduction: String,
    /// True if a section of the document shows the table under its title, so that the figures omit
    /// it.
    pub is_in_section: bool,
}

/// All measurements of an experiment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Results {
    /// The name of the experiment.
    pub experiment: String,
    /// The setting of the measurement; `None` before its end.
    #[serde(default)]
    pub environment: Option<Environment>,
    measurements: BTreeMap<String, Vec<Measurement>>,
    texts: BTreeMap<String, String>,
    /// The tables, in the order of the document.
    pub tables: Vec<Table>,
    /// The parts of the experiment that were measured completely.
    #[serde(default)]
    pub parts: Vec<String>,
    /// The timed metrics, which differ from round to round.
    #[serde(default)]
    pub timed: Vec<String>,
    #[serde(skip)]
    declared: Option<&'static [&'static [Metric]]>,
}

impl Results {
    /// Creates an empty set of results for an experiment with these metrics.
    #[must_use]
    pub fn new(experiment: &str, declared: &'static [&'static [Metric]]) -> Self {
        Self {
            experiment: experiment.to_owned(),
            environment: None,
            measurements: BTreeMap::new(),
            texts: BTreeMap::new(),
            tables: Vec::new(),
            parts: Vec::new(),
            timed: Vec::new(),
            declared: Some(declared),
        }
    }

    /// Adopts the measurements of an interrupted run.
    pub(crate) fn resume(&mut self, before: Self) {
        let declared = self.declared;
        *self = Self { declared, ..before };
    }

    fn check_declared(&self, name: &str) {
        debug_assert!(
            self.declared.is_none_or(|all| all
                .iter()
                .copied()
                .flatten()
                .any(|metric| metric.name == name)),
            "experiment {} does not declare the metric {name}",
            self.experiment
        );
    }

    /// Records a number; a number that is not finite counts as not measured. It replaces an earlier
    /// number with the same keys.
    pub fn record(&mut self, name: &str, keys: &[&str], value: f64) {
        self.record_rounds(name, keys, value, &[]);
    }

    /// Records a number with the rounds that it represents. Rounds that are not finite count as not
    /// measured; JSON has no such numbers, and results with them could not be read again.
    pub fn record_rounds(&mut self, name: &str, keys: &[&str], value: f64, rounds: &[f64]) {
        self.check_declared(name);
        if value.is_finite() {
            let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
            let all = self.measurements.entry(name.to_owned()).or_default();
            let rounds = rounds.iter().copied().filter(|round| round.is_finite()).collect();
            let measurement = Measurement { keys, value, rounds };
            match all.iter_mut().find(|one| one.keys == measurement.keys) {
                Some(before) => *before = measurement,
                None => all.push(measurement),
            }
        }
    }

    /// Records the least of the rounds, for times, and all rounds.
    pub fn record_least(&mut self, name: &str, keys: &[&str], rounds: &[f64]) {
        let least = rounds.iter().copied().reduce(f64::min);
        self.record_rounds(name, keys, least.unwrap_or(f64::NAN), rounds);
    }

    /// Records a text, such as the name of the best candidate.
    pub fn record_text(&mut self, name: &str, text: impl Into<String>) {
        self.check_declared(name);
        self.texts.insert(name.to_owned(), text.into());
    }

    /// Records a text for one key of a metric, such as a mode.
    pub fn record_text_of(&mut self, name: &str, key: &str, text: impl Into<String>) {
        self.check_declared(name);
        self.texts.insert(format!("{name}[{key}]"), text.into());
    }

    /// Adds a table to the figures.
    pub fn table(&mut self, title: impl Into<String>, headers: &[&str], rows: Vec<Vec<String>>) {
        self.table_with_introduction(title, "", headers, rows);
    }

    /// Adds a table with paragraphs between its heading and its rows.
    pub fn table_with_introduction(
        &mut self,
        title: impl Into<String>,
        introduction: impl Into<String>,
        headers: &[&str],
        rows: Vec<Vec<String>>,
    ) {
        self.tables.push(Table {
            title: title.into(),
            headers: headers.iter().map(|&header| header.to_owned()).collect(),
            rows,
            introduction: introduction.into(),
            is_in_section: false,
        });
    }

    /// Adds a table that a section of the document shows by its title.
    pub fn table_for_section(&mut self, title: &str, headers: &[&str], rows: Vec<Vec<String>>) {
        self.table(title, headers, rows);
        if let Some(table) = self.tables.last_mut() {
            table.is_in_section = true;
        }
    }

    /// Returns the names of the metrics that have measurements.
    pub fn measured(&self) -> impl Iterator<Item = &str> {
        self.measurements.keys().map(String::as_str)
    }

    /// Returns all measurements of a metric in recording order.
    #[must_use]
    pub fn measurements(&self, name: &str) -> &[Measurement] {
        self.measurements.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns true if the metric is timed and a measurement of it has a single round.
    #[must_use]
    pub fn is_of_one_round(&self, name: &str) -> bool {
        let is_timed = self.timed.iter().any(|timed| timed == name);
        is_timed && self.measurements(name).iter().any(|one| one.rounds.len() < 2)
    }

    /// Returns a recorded text.
    #[must_use]
    pub fn text_of(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &[&[Metric]] = &[&[Metric { name: "moved", about: "" }]];

    #[test]
    fn results_survive_json() {
        let mut results = Results::new("test", METRICS);
        results.record("moved", &["full"], 2.0);
        results.record_rounds("moved", &["tier"], 1.0, &[1.0, f64::INFINITY, 1.5]);
        results.record("moved", &["cold"], f64::NAN);
        results.table("a", &["b"], vec![vec!["c".to_owned()]]);
        let text = serde_json::to_string(&results).unwrap();
        let read: Results = serde_json::from_str(&text).unwrap();
        assert_eq!(read.measurements("moved"), results.measurements("moved"));
        assert_eq!(read.measurements("moved").len(), 2);
        assert_eq!(read.measurements("moved")[1].rounds, [1.0, 1.5]);
        assert_eq!(read.tables, results.tables);
    }

    #[test]
    #[should_panic(expected = "does not declare the metric read")]
    fn undeclared_metrics_are_not_recorded() {
        Results::new("test", METRICS).record("read", &[], 1.0);
    }
}
