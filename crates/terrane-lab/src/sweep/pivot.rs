//! Shows how one metric of a sweep depends on one parameter, with a line for each value of another
//! parameter.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;
use serde_json::Value;
use terrane_policy::suggest::did_you_mean;

use super::results::ResultLine;
use crate::error::usage;
use crate::input::quantity;
use crate::output::plot::{Curve, Plot, Scale, Stroke};

/// The options of a pivot.
#[derive(Debug, Clone)]
pub struct PivotOptions {
    /// The parameter whose values become the columns.
    pub x: String,
    /// The metric.
    pub y: String,
    /// The parameter whose values become the rows.
    pub by: Option<String>,
    /// `NAME=VALUE` conditions on parameters.
    pub only: Vec<String>,
}

/// Medians by row and column.
#[derive(Debug, Clone)]
pub struct Pivot {
    options: PivotOptions,
    /// The values of the column parameter, in order.
    pub columns: Vec<String>,
    /// For each value of the row parameter, the medians by column.
    pub rows: BTreeMap<String, BTreeMap<String, f64>>,
    /// Parameters in which experiments of one cell differ.
    pub mixed: Vec<String>,
}

type Cells<'a> = BTreeMap<(String, String), Vec<(&'a ResultLine, f64)>>;

impl Pivot {
    /// Computes the medians of the results in `lines`, which were read from `dir`.
    ///
    /// # Errors
    ///
    /// If no result has a parameter, a value or the metric; the error lists the known ones.
    pub fn new(mut options: PivotOptions, mut lines: Vec<ResultLine>, dir: &Path) -> Result<Self> {
        for name in std::iter::once(&options.x).chain(&options.by) {
            check_parameter(dir, &lines, name)?;
        }
        let only = options.only.iter().map(|word| {
            word.split_once('=').ok_or_else(|| usage(format!("--only {word}: expected NAME=VALUE")))
        });
        for (name, value) in only.collect::<Result<Vec<_>>>()? {
            check_parameter(dir, &lines, name)?;
            let known = values(&lines, name);
            lines.retain(|line| parameter(line, name).is_some_and(|known| known == value));
            if lines.is_empty() {
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                return Err(usage(format!(
                    "--only {name}={value}: no result has this value; '{name}' is {known}"
                )));
            }
        }
        // Headings name the workload that the metric is taken from.
        let workload = lines.iter().find_map(|line| workload_of(line, &options.y));
        if let Some(workload) = workload {
            options.y = format!("{workload}/{}", options.y);
        }
        let mut cells: Cells<'_> = BTreeMap::new();
        for line in &lines {
            let Some(x) = parameter(line, &options.x) else { continue };
            let by = match &options.by {
                Some(by) => parameter(line, by),
                None => Some(options.y.clone()),
            };
            let Some(value) = metric(line, &options.y) else { continue };
            cells.entry((by.unwrap_or_else(|| "-".into()), x)).or_default().push((line, value));
        }
        if cells.is_empty() {
            let names: BTreeSet<String> = lines.iter().flat_map(metrics).collect();
            let meant = did_you_mean(&options.y, names.iter().map(String::as_str));
            let all = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(usage(format!(
                "no result has a metric '{}'{meant}\nknown metrics: {all}",
                options.y
            )));
        }
        let mixed = mixed_parameters(&cells);
        let columns: BTreeSet<&String> = cells.keys().map(|(_, x)| x).collect();
        let mut columns: Vec<String> = columns.into_iter().cloned().collect();
        columns.sort_by(|a, b| number(a).total_cmp(&number(b)).then_with(|| a.cmp(b)));
        let mut rows: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for ((by, x), values) in cells {
            let values = values.into_iter().map(|(_, value)| value).collect();
            rows.entry(by).or_default().insert(x, median(values));
        }
        Ok(Self { options, columns, rows, mixed })
    }

    /// Returns the options from which the pivot was computed.
    pub fn options(&self) -> &PivotOptions {
        &self.options
    }

    /// Writes the medians as CSV.
    ///
    /// # Errors
    ///
    /// If `out` cannot be written.
    pub fn csv(&self, out: &mut dyn Write) -> io::Result<()> {
        let head = std::iter::once(self.options.by.as_deref().unwrap_or(""));
        let head: Vec<String> =
            head.chain(self.columns.iter().map(String::as_str)).map(quoted).collect();
        writeln!(out, "{}", head.join(","))?;
        for (name, values) in &self.rows {
            let cell = |column: &String| values.get(column).map_or(String::new(), f64::to_string);
            let cells: Vec<String> = self.columns.iter().map(cell).collect();
            writeln!(out, "{},{}", quoted(name), cells.join(","))?;
        }
        Ok(())
    }

    /// Returns the medians as a picture, with a logarithmic vertical axis if `is_logarithmic`.
    pub fn plot(&self, is_logarithmic: bool) -> Plot {
        let are_numbers = self.columns.iter().all(|column| number(column).is_finite());
        let position =
            |at: usize, column: &str| if are_numbers { number(column) } else { at as f64 };
        let curve = |(name, values): (&String, &BTreeMap<String, f64>)| {
            let columns = self.columns.iter().enumerate();
            let point = |(at, column): (usize, &String)| {
                values.get(column).map(|value| (position(at, column), *value))
            };
            Curve {
                name: name.clone(),
                points: columns.filter_map(point).collect(),
                stroke: Stroke::Solid,
            }
        };
        Plot {
            title: format!("{} over {}", self.options.y, self.options.x),
            x_label: self.options.x.clone(),
            y_label: self.options.y.clone(),
            y_scale: if is_logarithmic { Scale::Logarithmic } else { Scale::Linear },
            x_names: if are_numbers { Vec::new() } else { self.columns.clone() },
            curves: self.rows.iter().map(curve).collect(),
            bands: Vec::new(),
            strips: Vec::new(),
        }
    }
}

/// Checks that some result has a parameter.
fn check_parameter(dir: &Path, lines: &[ResultLine], name: &str) -> Result<()> {
    if lines.iter().any(|line| parameter(line, name).is_some()) {
        return Ok(());
    }
    let known: BTreeSet<&str> =
        lines.iter().flat_map(|line| line.parameters.keys().map(String::as_str)).collect();
    let known: Vec<&str> = known.into_iter().chain(OWN).collect();
    let meant = did_you_mean(name, known.iter().copied());
    let dir = dir.display();
    let all = known.join(", ");
    Err(usage(format!(
        "no result in {dir} has a parameter '{name}'{meant}\nknown parameters: {all}"
    )))
}

/// Returns the parameters in which experiments of one cell differ.
fn mixed_parameters(cells: &Cells<'_>) -> Vec<String> {
    let mut differ = BTreeSet::new();
    for lines in cells.values() {
        let all = |line: &&ResultLine| {
            let mut all = line.parameters.clone();
            all.insert("by".into(), line.by.clone());
            all.insert("engine".into(), line.engine.clone());
            all
        };
        let parameters: Vec<BTreeMap<String, String>> =
            lines.iter().map(|(line, _)| all(line)).collect();
        let names: BTreeSet<&String> = parameters.iter().flat_map(BTreeMap::keys).collect();
        for name in names {
            let first = parameters.first().and_then(|one| one.get(name));
            if parameters.iter().any(|one| one.get(name) != first) {
                differ.insert(name.clone());
            }
        }
    }
    differ.into_iter().collect()
}

/// Fields of every result that count as parameters.
const OWN: [&str; 3] = ["by", "engine", "round"];

/// Returns the values of a parameter.
fn values(lines: &[ResultLine], name: &str) -> BTreeSet<String> {
    lines.iter().filter_map(|line| parameter(line, name)).collect()
}

/// Returns the names of all metrics of an experiment: numbers in its rows and in nested objects.
fn metrics(line: &ResultLine) -> Vec<String> {
    fn below(prefix: &str, value: &Value, names: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                let inner = if prefix.is_empty() { String::new() } else { format!("{prefix}.") };
                fields
                    .iter()
                    .for_each(|(name, value)| below(&format!("{inner}{name}"), value, names));
            }
            Value::Number(_) => names.push(prefix.to_owned()),
            _ => {}
        }
    }
    let mut names = vec!["seconds".to_owned()];
    line.results.iter().for_each(|row| below("", row, &mut names));
    names
}

/// Returns a parameter of an experiment, or its `by`, `round` or `engine`.
fn parameter(line: &ResultLine, name: &str) -> Option<String> {
    match name {
        "by" => Some(line.by.clone()),
        "engine" => Some(line.engine.clone()),
        "round" => Some(line.round.to_string()),
        _ => line.parameters.get(name).cloned(),
    }
}

/// Returns a metric of an experiment, from the workload named before `/` or the last that has it.
fn metric(line: &ResultLine, name: &str) -> Option<f64> {
    let (workload, path) = match name.rsplit_once('/') {
        Some((workload, path)) => (Some(workload), path),
        None => (None, name),
    };
    let value = |row: &Value| {
        let found = path.split('.').try_fold(row, |value, key| value.get(key))?;
        found.as_f64()
    };
    let is_meant = |row: &&Value| {
        workload
            .is_none_or(|workload| row.get("workload").and_then(Value::as_str) == Some(workload))
    };
    let own = (path == "seconds" && workload.is_none()).then_some(line.seconds);
    own.or_else(|| line.results.iter().rev().filter(is_meant).find_map(value))
}

/// Returns the workload that a metric without one is taken from, if the experiment has several.
fn workload_of(line: &ResultLine, name: &str) -> Option<String> {
    if name.contains('/') || name == "seconds" {
        return None;
    }
    let workloads = || line.results.iter().rev().filter_map(|row| row.get("workload")?.as_str());
    let named = |workload: &str| metric(line, &format!("{workload}/{name}"));
    let found = workloads().find(|workload| named(workload).is_some())?;
    (workloads().count() > 1).then(|| found.to_owned())
}

/// Parses a value for sorting; values that are not numbers sort last.
fn number(text: &str) -> f64 {
    let count = quantity::count(text).map(|count| count as f64);
    let bytes = || quantity::bytes(text).map(|bytes| bytes as f64);
    text.parse().ok().or_else(|| count.ok()).or_else(|| bytes().ok()).unwrap_or(f64::INFINITY)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2).copied().unwrap_or(f64::NAN);
    let lower = values.get(values.len().saturating_sub(1) / 2).copied().unwrap_or(upper);
    f64::midpoint(lower, upper)
}

fn quoted(text: &str) -> String {
    let is_plain = !text.contains([',', '"', '\n']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_come_from_the_named_workload_or_the_last_that_has_them() {
        let line = ResultLine {
            schema: 1,
            key: "k".into(),
            engine: "0".into(),
            program: String::new(),
            by: "engine".into(),
            round: 2,
            parameters: BTreeMap::new(),
            operations: 1,
            seconds: 2.5,
            results: vec![
                serde_json::json!({"workload": "fillrandom", "write_amplification": 3.0,
                                   "latency_micros": {"p99": 7.0}}),
                serde_json::json!({"workload": "readrandom", "write_amplification": null,
                                   "latency_micros": {"p99": 9.0}}),
            ],
            environment: None,
        };
        assert_eq!(metric(&line, "write_amplification"), Some(3.0));
        assert_eq!(metric(&line, "latency_micros.p99"), Some(9.0));
        assert_eq!(metric(&line, "fillrandom/latency_micros.p99"), Some(7.0));
        assert_eq!(metric(&line, "seconds"), Some(2.5));
        let taken = |name: &str| workload_of(&line, name);
        assert_eq!(taken("write_amplification").as_deref(), Some("fillrandom"));
        assert_eq!(taken("latency_micros.p99").as_deref(), Some("readrandom"));
        assert_eq!((taken("seconds"), taken("fillrandom/ops"), taken("speed")), (None, None, None));
        assert_eq!(metric(&line, "speed"), None);
        assert_eq!(parameter(&line, "round"), Some("2".into()));
    }

    #[test]
    fn columns_sort_by_the_numbers_they_stand_for() {
        assert!(number("2") < number("10") && number("100K") < number("1M"));
        assert!(number("64KiB") < number("1MiB") && number("1MiB") < number("leveling"));
        assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), 2.5);
        assert_eq!(quoted("T=4, x"), "\"T=4, x\"");
    }
}
