//! A report of measured or simulated figures: what `bench --out` and `simulate --out` leave.
//!
//! | file | contents |
//! |---|---|
//! | `report.html` | the setting, the verdict and the plots |
//! | `NAME.svg` | one plot |
//! | `report.jsonl` | the lines of `--json` |
//! | `report.csv` | every number in these lines, one per line |
//! | `environment.json` | machine, commit, command, date, seed |

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use super::csv::quoted;
use super::page::setting_rows;
use super::run_page::{Block, Figure, RunPage};
use crate::host::Environment;
use crate::output::json;

/// The fields of a line that say what its numbers are about.
const NAMES: [&str; 4] = ["design", "workload", "phase", "repetition"];

/// Figures with their setting and verdict.
#[derive(Debug, Clone, Default)]
pub struct FigureReport {
    /// The title.
    pub title: String,
    /// The setting of the run, in sentences.
    pub about: Vec<String>,
    /// The verdict, in sentences.
    pub verdict: Vec<String>,
    /// The plots.
    pub figures: Vec<Figure>,
    /// The lines of `--json`.
    pub lines: Vec<Value>,
}

impl FigureReport {
    /// Creates the directory of a report, before anything is measured.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn prepare(dir: &Path) -> Result<()> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))
    }

    /// Writes all files of the report; returns the path of the page. `explorer` is the page of the explorer.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, dir: &Path, environment: &Environment, explorer: &str) -> Result<PathBuf> {
        Self::prepare(dir)?;
        let put = |name: &str, text: &str| {
            let path = dir.join(name);
            fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
            anyhow::Ok(path)
        };
        for figure in &self.figures {
            put(&format!("{}.svg", figure.name()), figure.svg())?;
        }
        let mut lines = Vec::new();
        for line in &self.lines {
            json::write_line(&mut lines, line)?;
        }
        put("report.jsonl", &String::from_utf8_lossy(&lines))?;
        put("report.csv", &self.csv())?;
        put("environment.json", &(serde_json::to_string_pretty(environment)? + "\n"))?;
        put("report.html", &self.page(environment).html(explorer)?)
    }

    fn page(&self, environment: &Environment) -> RunPage {
        let setting = setting_rows(environment).into_iter();
        let setting = setting.map(|(name, value)| (name.to_owned(), value)).collect();
        let mut page = RunPage::new(&*self.title, setting);
        self.about.iter().for_each(|line| page.text(line));
        if !self.verdict.is_empty() {
            page.heading("Verdict");
        }
        self.verdict.iter().for_each(|line| page.text(line));
        for figure in &self.figures {
            page.add(Block::Figure(Box::new(figure.clone())));
        }
        page
    }

    /// Returns every number in the lines of JSON, one per line of CSV.
    fn csv(&self) -> String {
        let mut text = NAMES.join(",") + ",index,metric,value\n";
        for line in &self.lines {
            write_numbers(&mut text, line, "", &[const { String::new() }; NAMES.len()], "");
        }
        text
    }
}

/// Writes the numbers in a value. A list element is identified by its own name, or else by its
/// index.
fn write_numbers(
    text: &mut String,
    value: &Value,
    path: &str,
    names: &[String; NAMES.len()],
    index: &str,
) {
    match value {
        Value::Object(fields) => {
            let mut names = names.clone();
            for (name, given) in NAMES.iter().zip(&mut names) {
                match fields.get(*name) {
                    Some(Value::String(word)) => given.clone_from(word),
                    Some(Value::Number(number)) => *given = number.to_string(),
                    _ => {}
                }
            }
            let is_number = |name: &str| name != "schema" && name != "repetition";
            for (name, value) in fields.iter().filter(|(name, _)| is_number(name)) {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                write_numbers(text, value, &path, &names, index);
            }
        }
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                let index = match index {
                    "" => number.to_string(),
                    outer => format!("{outer}.{number}"),
                };
                write_numbers(text, value, path, names, &index);
            }
        }
        Value::Number(number) => {
            let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{},{index},{},{number}", names.join(","), quoted(path));
        }
        Value::Bool(_) | Value::Null | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::output::plot::{Curve, Plot, Scale, Stroke};

    #[test]
    fn a_report_has_a_page_plots_data_and_the_setting() {
        let plot = Plot {
            title: "Writes".into(),
            x_label: "minutes".into(),
            y_label: "writes/s".into(),
            y_scale: Scale::Linear,
            x_names: Vec::new(),
            curves: vec![Curve {
                name: "x".into(),
                points: vec![(1.0, 2.0)],
                stroke: Stroke::Solid,
            }],
            bands: Vec::new(),
            strips: Vec::new(),
        };
        let report = FigureReport {
            title: "a < b".into(),
            about: vec!["two designs".into()],
            verdict: vec!["tiering writes 2× less".into()],
            figures: vec![Figure::of_plot("writes", &plot)],
            lines: vec![
                json!({"schema": 1, "design": "tiering, T=4", "workload": "fill", "repetition": 2,
                       "seconds": 1.5, "work": {"levels": [3, 4]}, "cause": null}),
                json!({"design": "x", "phases": [{"phase": "running", "runs": 2}]}),
            ],
        };
        let dir = tempfile::tempdir().unwrap();
        let environment = Environment {
            machine: "two cores".into(),
            command: "terrane bench".into(),
            ..Environment::of_run(dir.path(), 1)
        };
        let page = report.write(&dir.path().join("new"), &environment, "<body></body>").unwrap();
        let page = fs::read_to_string(page).unwrap();
        for part in [
            "a \\u003c b",
            "two cores",
            "terrane bench",
            "2× less",
            "\"y_label\":\"writes/s\"",
            "\\u003csvg",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        let read = |name: &str| fs::read_to_string(dir.path().join("new").join(name)).unwrap();
        assert_eq!(
            read("report.csv"),
            "design,workload,phase,repetition,index,metric,value\n\
             \"tiering, T=4\",fill,,2,,seconds,1.5\n\
             \"tiering, T=4\",fill,,2,0,work.levels,3\n\
             \"tiering, T=4\",fill,,2,1,work.levels,4\n\
             x,,running,,0,phases.runs,2\n"
        );
        assert_eq!(read("report.jsonl").lines().count(), 2);
        assert!(read("writes.svg").contains("<svg") && read("environment.json").contains("two"));
    }
}
