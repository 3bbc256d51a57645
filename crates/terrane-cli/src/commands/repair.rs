//! `terrane repair`: salvages the readable part of a damaged database into a new one.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::{Serialize, Serializer};
use terrane::inspect::{self, LostRange};

use crate::exit::{Exit, usage};
use crate::output;
use crate::problems::{JsonProblem, write_problems};
use terrane_lab::host::progress;
use terrane_lab::input::kv_literal;
use terrane_lab::output::human;
use terrane_lab::output::json::{JsonBytes, SCHEMA, write_line};

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
    lost: Vec<JsonLost>,
}

/// A range of keys that may be missing or old in the new database.
#[derive(Serialize)]
struct JsonLost {
    keyspace: String,
    first: JsonKey,
    /// Null if the range has no end.
    last: Option<JsonKey>,
    path: String,
}

/// A key, as in the lines of `load`.
struct JsonKey(Vec<u8>);

impl Serialize for JsonKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        JsonBytes(&self.0).serialize(serializer)
    }
}

impl JsonLost {
    fn of(lost: &LostRange) -> Self {
        Self {
            keyspace: lost.keyspace.clone(),
            first: JsonKey(lost.first.clone()),
            last: lost.last.clone().map(JsonKey),
            path: lost.path.display().to_string(),
        }
    }
}

/// The most ranges to print; --json has all.
const RANGES_PRINTED_MAX: usize = 20;

fn write_lost(out: &mut dyn Write, lost: &[LostRange]) -> std::io::Result<()> {
    for one in lost.iter().take(RANGES_PRINTED_MAX) {
        let last = one.last.as_deref().map_or_else(|| "the end".to_owned(), kv_literal::print);
        let (keyspace, first) = (&one.keyspace, kv_literal::print(&one.first));
        writeln!(out, "keyspace {keyspace}: keys from {first} to {last} may be missing or old")?;
    }
    match lost.len().saturating_sub(RANGES_PRINTED_MAX) {
        0 => Ok(()),
        more => writeln!(out, "and {}; --json lists all", human::counted(more as u64, "range")),
    }
}

impl RepairArgs {
    /// Salvages the database.
    pub(crate) fn run(&self) -> Result<Exit> {
        let target = self.target()?;
        let bar = progress::bytes(0, "repairing");
        let repaired = inspect::repair_with_progress(&self.db, &target, &mut |progress| {
            bar.set_length(progress.total_bytes);
            bar.set_position(progress.done_bytes);
        });
        bar.finish_and_clear();
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
                lost: report.lost.iter().map(JsonLost::of).collect(),
            };
            write_line(&mut out, &repair)?;
        } else {
            write_problems(&mut out, &report.problems)?;
            write_lost(&mut out, &report.lost)?;
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
