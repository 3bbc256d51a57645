//! `terrane verify`: checks every checksum, every order and every reference of a database.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::inspect;

use crate::exit::Exit;
use crate::output;
use crate::problems::{JsonProblem, write_problems};
use terrane_lab::host::progress;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Check all files of a database
///
/// This checks the manifest, the order of runs and tables, the length and the checksums of every
/// table, the order of its entries, its index and its filter, every separated value, and the log.
/// It changes nothing. The database may be in use; files that it replaces during the check are
/// skipped. The exit code is 4 if anything is wrong.
#[derive(Debug, Clone, Args)]
pub(crate) struct VerifyArgs {
    /// The directory of the database
    db: PathBuf,

    /// Check a snapshot of a volume that was taken while the database was in use
    #[arg(long)]
    after_power_loss: bool,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonVerification {
    schema: u32,
    tables: u64,
    table_bytes: u64,
    entries: u64,
    value_files: u64,
    value_bytes: u64,
    values: u64,
    log_writes: u64,
    problems: Vec<JsonProblem>,
}

impl VerifyArgs {
    /// Checks the database.
    pub(crate) fn run(&self) -> Result<Exit> {
        let bar = progress::bytes(0, "verifying");
        let mut report = |progress: inspect::Progress| {
            bar.set_length(progress.total_bytes);
            bar.set_position(progress.done_bytes);
        };
        let verified = if self.after_power_loss {
            inspect::verify_after_power_loss(&self.db, &mut report)
        } else {
            inspect::verify(&self.db, &mut report)
        };
        bar.finish_and_clear();
        let found = verified?;
        let mut out = output::text_or_json(self.json);
        if self.json {
            let verification = JsonVerification {
                schema: SCHEMA,
                tables: found.tables,
                table_bytes: found.table_bytes,
                entries: found.entries,
                value_files: found.value_files,
                value_bytes: found.value_bytes,
                values: found.values,
                log_writes: found.log_writes,
                problems: found.problems.iter().map(JsonProblem::of).collect(),
            };
            write_line(&mut out, &verification)?;
        } else {
            write_problems(&mut out, &found.problems)?;
            let (tables, bytes) =
                (human::counted(found.tables, "table"), human::bytes(found.table_bytes));
            let entries = human::counted(found.entries, "entry");
            let writes = human::counted(found.log_writes, "write");
            let verdict = if found.problems.is_empty() {
                "ok".to_owned()
            } else {
                human::counted(found.problems.len() as u64, "problem")
            };
            writeln!(
                out,
                "{verdict}: {tables} ({bytes}) with {entries}, {}{writes} in the log",
                value_files(&found)
            )?;
        }
        out.flush()?;
        Ok(if found.problems.is_empty() { Exit::Done } else { Exit::CorruptionFound })
    }
}

/// Returns the value files as part of a sentence; empty if there are none.
fn value_files(found: &inspect::Verification) -> String {
    if found.value_files == 0 {
        return String::new();
    }
    let files = human::counted(found.value_files, "value file");
    let (bytes, values) = (human::bytes(found.value_bytes), human::counted(found.values, "value"));
    format!("{files} ({bytes}) with {values}, ")
}
