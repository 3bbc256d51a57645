//! `terrane backup verify`.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_backup::{RepositoryVerification, VerifyOptions};

use super::common::{Bar, RepositoryArg};
use crate::exit::Exit;
use crate::output;
use crate::terminal::Paint;
use terrane_lab::input::quantity::rate;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Read all objects of a repository, and name the damaged ones with the backups that need them
///
/// This compares every object with the hash in its name, and the files of every backup with those that the
/// database's manifest in it lists. It does not look into tables: 'terrane backup
/// restore --verify' does, and 'terrane verify' on a restored database. The exit code is 4 if anything is
/// damaged.
#[derive(Debug, Clone, Args)]
pub(super) struct VerifyArgs {
    #[command(flatten)]
    repository: RepositoryArg,

    /// Verify this backup only; the beginning of its name suffices
    backup: Option<String>,

    /// Read at most this many bytes per second, such as 20MB/s
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    rate: Option<u64>,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonVerification<'a> {
    schema: u32,
    backups: u64,
    objects: u64,
    bytes: u64,
    unreferenced_objects: u64,
    unreferenced_bytes: u64,
    damaged: Vec<JsonDamaged<'a>>,
    unreadable: Vec<JsonUnreadable<'a>>,
    incomplete: Vec<JsonIncomplete<'a>>,
}

#[derive(Serialize)]
struct JsonIncomplete<'a> {
    backup: &'a str,
    what: &'a str,
}

#[derive(Serialize)]
struct JsonDamaged<'a> {
    object: &'a str,
    what: &'a str,
    files: &'a [String],
    backups: &'a [String],
}

#[derive(Serialize)]
struct JsonUnreadable<'a> {
    object: &'a str,
    what: String,
}

impl VerifyArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let repository = self.repository.open()?;
        let found = {
            let bar = Bar::begin("verifying");
            let mut options = VerifyOptions::new().on_progress(bar.callback());
            if let Some(rate) = self.rate {
                options = options.rate(rate);
            }
            if let Some(backup) = &self.backup {
                options = options.backup(backup);
            }
            terrane_backup::verify(&*repository, &options)?
        };
        let mut out = output::text_or_json(self.json);
        if self.json {
            write_line(&mut out, &json(&found))?;
        } else {
            print(&mut out, &found)?;
        }
        out.flush()?;
        Ok(if found.is_intact() { Exit::Done } else { Exit::CorruptionFound })
    }
}

fn json(found: &RepositoryVerification) -> JsonVerification<'_> {
    let damaged = found.damaged.iter().map(|damaged| JsonDamaged {
        object: &damaged.object,
        what: &damaged.what,
        files: &damaged.files,
        backups: &damaged.backups,
    });
    let unreadable = found.unreadable.iter();
    let unreadable =
        unreadable.map(|(object, error)| JsonUnreadable { object, what: error.to_string() });
    let incomplete = found.incomplete.iter();
    let incomplete =
        incomplete.map(|found| JsonIncomplete { backup: &found.backup, what: &found.what });
    JsonVerification {
        schema: SCHEMA,
        backups: found.backups,
        objects: found.objects,
        bytes: found.bytes,
        unreferenced_objects: found.unreferenced_objects,
        unreferenced_bytes: found.unreferenced_bytes,
        damaged: damaged.collect(),
        unreadable: unreadable.collect(),
        incomplete: incomplete.collect(),
    }
}

fn print(out: &mut dyn Write, found: &RepositoryVerification) -> std::io::Result<()> {
    let paint = Paint::stdout();
    for (_, error) in &found.unreadable {
        writeln!(out, "{} {error}", paint.red("problem:"))?;
    }
    for incomplete in &found.incomplete {
        writeln!(out, "{} {}: {}", paint.red("problem:"), incomplete.backup, incomplete.what)?;
    }
    for damaged in &found.damaged {
        let (object, what) = (&damaged.object, &damaged.what);
        writeln!(out, "{} {object}: {what}", paint.red("problem:"))?;
        writeln!(out, "  file {} of", damaged.files.join(", "))?;
        for backup in &damaged.backups {
            writeln!(out, "  {backup}")?;
        }
    }
    let problems = (found.damaged.len() + found.unreadable.len() + found.incomplete.len()) as u64;
    let verdict = if problems == 0 { "ok".into() } else { human::counted(problems, "problem") };
    let backups = human::counted(found.backups, "backup");
    let objects = human::counted(found.objects, "object");
    writeln!(out, "{verdict}: {backups} with {objects} ({})", human::bytes(found.bytes))?;
    if found.unreferenced_objects > 0 {
        let objects = human::counted(found.unreferenced_objects, "object");
        let bytes = human::bytes(found.unreferenced_bytes);
        writeln!(out, "{objects} ({bytes}) of no backup; 'terrane backup prune' removes them")?;
    }
    Ok(())
}
