//! The table of steps: what each made, why it was skipped, or how it failed.

use std::fmt;
use std::time::{Duration, Instant};

use crate::step::StepResult;

/// Why a step has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The machine lacks a tool; the text names it and says how to get it.
    Skipped(String),
    /// A maintainer has to do something first.
    ToDo(String),
    Failed(String),
}

impl From<String> for Stop {
    fn from(message: String) -> Self {
        Self::Failed(message)
    }
}

/// The result of a step: a text for the table.
pub(crate) type Made = Result<String, Stop>;

/// The steps so far.
#[derive(Debug, Default)]
pub(crate) struct Report {
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    step: String,
    made: Made,
    time: Duration,
}

impl Report {
    /// Runs a step and adds it to the table; returns true if it has a result.
    pub(crate) fn run(&mut self, part: &str, verb: &str, step: impl FnOnce() -> Made) -> bool {
        let start = Instant::now();
        let name = format!("{part} {verb}");
        println!("==> {name}");
        let made = step();
        let is_made = made.is_ok();
        self.rows.push(Row { step: name, made, time: start.elapsed() });
        is_made
    }

    /// Returns an error that names the failed steps. If `is_strict`, these include skipped steps and tasks
    /// of a maintainer.
    pub(crate) fn result(&self, is_strict: bool) -> StepResult {
        let is_bad = |row: &&Row| match row.made {
            Ok(_) => false,
            Err(Stop::Skipped(_) | Stop::ToDo(_)) => is_strict,
            Err(Stop::Failed(_)) => true,
        };
        let bad: Vec<&str> = self.rows.iter().filter(is_bad).map(|row| row.step.as_str()).collect();
        if bad.is_empty() { Ok(()) } else { Err(format!("not done: {}", bad.join(", "))) }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.rows.iter().map(|row| row.step.len()).max().unwrap_or(0);
        for (at, row) in self.rows.iter().enumerate() {
            let (word, text) = match &row.made {
                Ok(text) => ("ok", text),
                Err(Stop::Skipped(text)) => ("SKIPPED", text),
                Err(Stop::ToDo(text)) => ("TO DO", text),
                Err(Stop::Failed(text)) => ("FAILED", text),
            };
            let seconds = row.time.as_secs_f64();
            let end = if at + 1 < self.rows.len() { "\n" } else { "" };
            write!(f, "{:<width$}  {word:<7} {seconds:>7.1} s  {text}{end}", row.step)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_step_has_its_remedy_in_the_table_and_fails_only_a_strict_run() {
        let mut report = Report::default();
        assert!(report.run("deb", "made", || Ok("terrane.deb".into())));
        assert!(!report.run("image", "made", || Err(Stop::Skipped("start Docker".into()))));
        let table = report.to_string();
        assert!(table.contains("deb made    ok"), "{table}");
        assert!(table.contains("image made  SKIPPED") && table.contains("start Docker"), "{table}");
        assert_eq!(report.result(false), Ok(()));
        assert_eq!(report.result(true), Err("not done: image made".into()));
        report.run("sums", "used", || Err("differ".to_owned().into()));
        assert_eq!(report.result(false), Err("not done: sums used".into()));
    }
}
