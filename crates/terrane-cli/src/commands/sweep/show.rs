//! Tables and pictures of the results of a sweep: one figure over one parameter, a line for each
//! value of another one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde_json::Value;

use super::results::{self, Line};
use crate::exit::{Exit, usage};
use crate::human;
use crate::near::did_you_mean;
use crate::plot::{Curve, Plot, Scale, Stroke};
use crate::quantity;
use crate::table::{Align, lines, table};

/// Show a figure of a sweep over a parameter, as a table, CSV or a picture
#[derive(Debug, Clone, Args)]
pub(super) struct ShowArgs {
    /// The directory of the results
    dir: PathBuf,

    /// The parameter that columns are of
    #[arg(long, value_name = "PARAMETER")]
    x: String,

    /// The figure: a field of the rows of `terrane bench --json`, such as write_amplification,
    /// latency_micros.p99 or, of one workload, readrandom/ops_per_second; of several workloads that
    /// have it the last one counts
    #[arg(long, value_name = "FIGURE")]
    y: String,

    /// The parameter that lines are of
    #[arg(long, value_name = "PARAMETER")]
    by: Option<String>,

    /// Only experiments with a parameter of this value; may be given several times
    #[arg(long, value_name = "NAME=VALUE")]
    only: Vec<String>,

    /// Write CSV
    #[arg(long)]
    csv: bool,

    /// Write a picture to a file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,

    /// Divide the vertical axis of the picture by powers of ten
    #[arg(long, requires = "svg")]
    log: bool,
}

/// Medians by line and column.
struct Pivot {
    columns: Vec<String>,
    rows: BTreeMap<String, BTreeMap<String, f64>>,
}

impl ShowArgs {
    /// Shows it.
    pub(super) fn run(&self) -> Result<Exit> {
        let mut found = results::read(&self.dir)?;
        if found.is_empty() {
            let dir = self.dir.display();
            anyhow::bail!(
                "{dir} holds no results; it is the directory that --out of a sweep named"
            );
        }
        for name in std::iter::once(&self.x).chain(&self.by) {
            self.check_parameter(&found, name)?;
        }
        let only = self.only.iter().map(|word| {
            word.split_once('=')
                .ok_or_else(|| usage(format!("--only {word}: NAME=VALUE is expected")))
        });
        for (name, value) in only.collect::<Result<Vec<_>>>()? {
            self.check_parameter(&found, name)?;
            let known = values(&found, name);
            found.retain(|line| parameter(line, name).is_some_and(|known| known == value));
            if found.is_empty() {
                let known = known.into_iter().collect::<Vec<_>>().join(", ");
                return Err(usage(format!(
                    "--only {name}={value}: no result has this value; '{name}' is {known}"
                )));
            }
        }
        let pivot = self.pivot(&found)?;
        let mut out = io::stdout().lock();
        if self.csv {
            pivot.csv(&mut out, self)?;
        } else {
            pivot.table(&mut out, self)?;
        }
        if let Some(path) = &self.svg {
            fs::write(path, pivot.plot(self).svg())
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Exit::Done)
    }

    fn pivot(&self, found: &[Line]) -> Result<Pivot> {
        let mut cells: BTreeMap<(String, String), Vec<(&Line, f64)>> = BTreeMap::new();
        for line in found {
            let Some(x) = parameter(line, &self.x) else { continue };
            let by = self.by.as_ref().map_or(Some(self.y.clone()), |by| parameter(line, by));
            let Some(value) = figure(line, &self.y) else { continue };
            cells.entry((by.unwrap_or_else(|| "-".into()), x)).or_default().push((line, value));
        }
        if cells.is_empty() {
            let names: BTreeSet<String> = found.iter().flat_map(figures).collect();
            let meant = did_you_mean(&self.y, names.iter().map(String::as_str));
            let all = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            return Err(usage(format!(
                "no result has a figure '{}'{meant}\nthere are {all}",
                self.y
            )));
        }
        self.warn_of_mixtures(&cells);
        let columns: BTreeSet<&String> = cells.keys().map(|(_, x)| x).collect();
        let mut columns: Vec<String> = columns.into_iter().cloned().collect();
        columns.sort_by(|a, b| number(a).total_cmp(&number(b)).then_with(|| a.cmp(b)));
        let mut rows: BTreeMap<String, BTreeMap<String, f64>> = BTreeMap::new();
        for ((by, x), values) in cells {
            let values = values.into_iter().map(|(_, value)| value).collect();
            rows.entry(by).or_default().insert(x, median(values));
        }
        Ok(Pivot { columns, rows })
    }

    /// A parameter that results have, of which there may be several kinds.
    fn check_parameter(&self, found: &[Line], name: &str) -> Result<()> {
        if found.iter().any(|line| parameter(line, name).is_some()) {
            return Ok(());
        }
        let known: BTreeSet<&str> =
            found.iter().flat_map(|line| line.parameters.keys().map(String::as_str)).collect();
        let known: Vec<&str> = known.into_iter().chain(OWN).collect();
        let meant = did_you_mean(name, known.iter().copied());
        let dir = self.dir.display();
        let all = known.join(", ");
        Err(usage(format!("no result in {dir} has a parameter '{name}'{meant}\nthere are {all}")))
    }

    /// A cell of experiments that differ in something else too is a mixture.
    fn warn_of_mixtures(&self, cells: &BTreeMap<(String, String), Vec<(&Line, f64)>>) {
        let mut differ = BTreeSet::new();
        for lines in cells.values() {
            let all = |line: &&Line| {
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
        if !differ.is_empty() {
            let names: Vec<String> = differ.into_iter().collect();
            let _ = writeln!(
                io::stderr(),
                "note: medians are over experiments that differ in {}; see --by and --only",
                names.join(", ")
            );
        }
    }
}

/// What every result has beside its parameters.
const OWN: [&str; 3] = ["by", "engine", "round"];

/// The values that a parameter has.
fn values(found: &[Line], name: &str) -> BTreeSet<String> {
    found.iter().filter_map(|line| parameter(line, name)).collect()
}

/// The names of all figures of an experiment: numbers in its rows, and in objects within them.
fn figures(line: &Line) -> Vec<String> {
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

/// A parameter of an experiment; `by`, `round` and `engine` are some too.
fn parameter(line: &Line, name: &str) -> Option<String> {
    match name {
        "by" => Some(line.by.clone()),
        "engine" => Some(line.engine.clone()),
        "round" => Some(line.round.to_string()),
        _ => line.parameters.get(name).cloned(),
    }
}

/// A figure of an experiment: of the last workload that has it, or of the one that is named.
fn figure(line: &Line, name: &str) -> Option<f64> {
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

/// Values that are no numbers stand behind those that are.
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

impl Pivot {
    fn table(&self, out: &mut dyn Write, args: &ShowArgs) -> io::Result<()> {
        let corner = format!("{} \\ {}", args.by.as_deref().unwrap_or(""), args.x);
        let mut headers = vec![(corner.as_str(), Align::Left)];
        headers.extend(self.columns.iter().map(|column| (column.as_str(), Align::Right)));
        let mut table = table(&headers);
        for (name, values) in &self.rows {
            let cell = |column: &String| {
                values.get(column).map_or("-".to_owned(), |value| human::number(*value))
            };
            table.add_row(std::iter::once(name.clone()).chain(self.columns.iter().map(cell)));
        }
        writeln!(out, "{}", args.y)?;
        for line in lines(&table) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn csv(&self, out: &mut dyn Write, args: &ShowArgs) -> io::Result<()> {
        let head = std::iter::once(args.by.as_deref().unwrap_or(""));
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

    fn plot(&self, args: &ShowArgs) -> Plot {
        let are_numbers = self.columns.iter().all(|column| number(column).is_finite());
        let place = |at: usize, column: &str| if are_numbers { number(column) } else { at as f64 };
        let curve = |(name, values): (&String, &BTreeMap<String, f64>)| {
            let columns = self.columns.iter().enumerate();
            let point = |(at, column): (usize, &String)| {
                values.get(column).map(|value| (place(at, column), *value))
            };
            Curve {
                name: name.clone(),
                points: columns.filter_map(point).collect(),
                stroke: Stroke::Solid,
            }
        };
        Plot {
            title: format!("{} over {}", args.y, args.x),
            x_label: args.x.clone(),
            y_label: args.y.clone(),
            y_scale: if args.log { Scale::Logarithmic } else { Scale::Linear },
            x_names: if are_numbers { Vec::new() } else { self.columns.clone() },
            curves: self.rows.iter().map(curve).collect(),
            bands: Vec::new(),
        }
    }
}

fn quoted(text: &str) -> String {
    let is_plain = !text.contains([',', '"', '\n']);
    if is_plain { text.to_owned() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_the_last_workload_that_has_them_or_of_the_one_named() {
        let line = Line {
            schema: 1,
            key: "k".into(),
            engine: "0".into(),
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
        };
        assert_eq!(figure(&line, "write_amplification"), Some(3.0));
        assert_eq!(figure(&line, "latency_micros.p99"), Some(9.0));
        assert_eq!(figure(&line, "fillrandom/latency_micros.p99"), Some(7.0));
        assert_eq!(figure(&line, "seconds"), Some(2.5));
        assert_eq!(figure(&line, "speed"), None);
        assert_eq!(parameter(&line, "round"), Some("2".into()));
    }

    #[test]
    fn values_are_in_the_order_of_what_they_stand_for() {
        assert!(number("2") < number("10") && number("100K") < number("1M"));
        assert!(number("64KiB") < number("1MiB") && number("1MiB") < number("leveling"));
        assert_eq!(median(vec![3.0, 1.0, 2.0, 10.0]), 2.5);
        assert_eq!(quoted("T=4, x"), "\"T=4, x\"");
    }
}
