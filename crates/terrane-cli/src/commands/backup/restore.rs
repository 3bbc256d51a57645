//! `terrane backup restore`.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_backup::{RestoreOptions, Restored, Which};

use super::common::{Bar, RepositoryArg, time, warn};
use crate::exit::Exit;
use crate::output;
use crate::problems::{JsonProblem, write_problems};
use terrane_lab::input::quantity::rate;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, rounded, write_line};

/// Restore a backup into a new directory
///
/// Restores the newest backup, unless --backup or --at choose another: the one with the most writes of the
/// history that was continued last, whatever the clock said. Every file is compared with
/// its hash while it is copied, and finally the database is opened for reading. If the restore is
/// interrupted, the same command continues it; the directory cannot be opened until then.
#[derive(Debug, Clone, Args)]
pub(super) struct RestoreArgs {
    #[command(flatten)]
    repository: RepositoryArg,

    /// The directory of the restored database, which must be empty or not exist
    dir: PathBuf,

    /// Restore this backup; the beginning of its name suffices
    #[arg(long, value_name = "NAME", conflicts_with = "at")]
    backup: Option<String>,

    /// Restore the newest backup from this time or before, in UTC
    #[arg(long, value_name = "TIME", value_parser = time)]
    at: Option<u64>,

    /// Choose among the backups of this database only; the first digits of its number suffice
    #[arg(long, value_name = "NUMBER")]
    database: Option<String>,

    /// Copy at most this many bytes per second, such as 20MB/s
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    rate: Option<u64>,

    /// Check the restored database as 'terrane verify' does, which reads all of it again
    #[arg(long)]
    verify: bool,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonRestored<'a> {
    schema: u32,
    backup: &'a str,
    time: &'a str,
    sequence: u64,
    history: &'a str,
    path: String,
    files: usize,
    bytes: u64,
    copied_bytes: u64,
    kept_bytes: u64,
    /// Null without --verify.
    problems: Option<Vec<JsonProblem>>,
    seconds: f64,
}

impl RestoreArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let repository = self.repository.open()?;
        let begun = Instant::now();
        let restored = {
            let bar = Bar::begin("restoring");
            let options = self.options().on_progress(bar.callback());
            terrane_backup::restore(&*repository, &self.which(), &self.dir, &options)?
        };
        let seconds = begun.elapsed().as_secs_f64();
        for object in &restored.skipped {
            let _ = writeln!(io::stderr(), "warning: {object} is newer, and cannot be read");
        }
        warn(&restored.notices);
        let mut out = output::text_or_json(self.json);
        if self.json {
            write_line(&mut out, &self.json(&restored, seconds))?;
        } else {
            self.print(&mut out, &restored, seconds)?;
        }
        out.flush()?;
        let problems = restored.verification.map(|found| found.problems).unwrap_or_default();
        Ok(if problems.is_empty() { Exit::Done } else { Exit::CorruptionFound })
    }

    fn which(&self) -> Which {
        match (&self.backup, self.at) {
            (Some(name), _) => Which::Named(name.clone()),
            (None, Some(micros)) => Which::At(micros),
            (None, None) => Which::Latest,
        }
    }

    fn options(&self) -> RestoreOptions {
        let mut options = RestoreOptions::new();
        if let Some(rate) = self.rate {
            options = options.rate(rate);
        }
        if let Some(database) = &self.database {
            options = options.database(database);
        }
        if self.verify { options.verify() } else { options }
    }

    fn json<'a>(&self, restored: &'a Restored, seconds: f64) -> JsonRestored<'a> {
        let backup = &restored.backup;
        let problems = restored.verification.as_ref();
        JsonRestored {
            schema: SCHEMA,
            backup: &backup.name,
            time: &backup.time,
            sequence: backup.sequence,
            history: &backup.history,
            path: self.dir.display().to_string(),
            files: backup.files.len(),
            bytes: backup.bytes,
            copied_bytes: restored.copied_bytes,
            kept_bytes: restored.kept_bytes,
            problems: problems.map(|found| found.problems.iter().map(JsonProblem::of).collect()),
            seconds: rounded(seconds),
        }
    }

    fn print(&self, out: &mut dyn Write, restored: &Restored, seconds: f64) -> Result<()> {
        let backup = &restored.backup;
        if let Some(found) = &restored.verification {
            write_problems(out, &found.problems)?;
        }
        writeln!(out, "restored {}", backup.name)?;
        let files = human::counted(backup.files.len() as u64, "file");
        let (bytes, time) = (human::bytes(backup.bytes), human::seconds(seconds));
        let kept = match restored.kept_bytes {
            0 => String::new(),
            kept => format!(", {} of them copied before", human::bytes(kept)),
        };
        writeln!(out, "{files} ({bytes}){kept}, in {time}")?;
        Ok(())
    }
}
