//! `terrane repair`: salvages the readable part of a damaged database into a new one.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::inspect;

use crate::exit::{Exit, usage};
use crate::output;
use crate::problems::{JsonProblem, write_problems};
use terrane_lab::human;
use terrane_lab::json::{SCHEMA, write_line};
use terrane_lab::progress;

const EXAMPLES: &str = "\
Examples:
  terrane verify ./db            (lists the damage)
  terrane repair ./db            (writes ./db.repaired)
  terrane verify ./db.repaired   (then replace ./db by it)";

/// Salvage the readable part of a damaged database into a new one, and list the rest
///
/// The damaged database is not changed. The newest readable version of each key is kept. The exit
/// code is 4 if anything could not be read.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RepairArgs {
    /// The directory of the damaged database
    db: PathBuf,

    /// The directory of the new database, which must be empty or not exist [default: DB.repaired]
    target: Option<PathBuf>,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonRepair {
    schema: u32,
    target: String,
    tables: u64,
    log_operations: u64,
    keys: u64,
    problems: Vec<JsonProblem>,
}

impl RepairArgs {
    /// Salvages the database.
    pub(crate) fn run(&self) -> Result<Exit> {
        let target = self.target()?;
        let spinner = progress::spinner("repairing");
        let repaired = inspect::repair(&self.db, &target);
        spinner.finish_and_clear();
        let report = repaired?;
        let mut out = output::text_or_json(self.json);
        if self.json {
            let repair = JsonRepair {
                schema: SCHEMA,
                target: target.display().to_string(),
                tables: report.tables,
                log_operations: report.log_operations,
                keys: report.keys,
                problems: report.problems.iter().map(JsonProblem::of).collect(),
            };
            write_line(&mut out, &repair)?;
        } else {
            write_problems(&mut out, &report.problems)?;
            let keys = human::counted(report.keys, "key");
            let tables = human::counted(report.tables, "table");
            let operations = human::counted(report.log_operations, "operation");
            let target = target.display();
            writeln!(
                out,
                "salvaged {keys} from {tables} and {operations} of the log into {target}"
            )?;
        }
        out.flush()?;
        Ok(if report.problems.is_empty() { Exit::Done } else { Exit::CorruptionFound })
    }

    fn target(&self) -> Result<PathBuf> {
        if let Some(target) = &self.target {
            return Ok(target.clone());
        }
        let mut name = self.db.file_name().map(ToOwned::to_owned).ok_or_else(|| {
            usage(format!(
                "{} has no name to derive the target from; name the target directory",
                self.db.display()
            ))
        })?;
        name.push(".repaired");
        Ok(self.db.with_file_name(name))
    }
}
