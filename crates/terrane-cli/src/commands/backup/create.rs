//! `terrane backup create`.

use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_backup::{CheckpointWith, CreateOptions, Created, ReadBack};

use super::checkpoint;
use super::common::{Bar, RepositoryArg, warn};
use crate::exit::Exit;
use crate::{open, output};
use terrane_lab::input::quantity::rate;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, rounded, write_line};

/// Create a backup of a database
///
/// Stores the files that the repository does not have. A process that has the database open makes a
/// copy, on a request through its control socket, and continues to write. A database that cannot be
/// written, such as one on a mounted snapshot of a volume, is opened for reading. Tables are compared with
/// the checksums in the database, so a damaged table is found when it is stored; the exit code is
/// then 4.
#[derive(Debug, Clone, Args)]
pub(super) struct CreateArgs {
    /// The directory of the database
    db: PathBuf,

    #[command(flatten)]
    repository: RepositoryArg,

    /// Store at most this many bytes per second, such as 20MB/s
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    rate: Option<u64>,

    /// Read back the stored objects
    #[arg(long)]
    verify: bool,

    /// Read back all objects of the backup, and store damaged ones again
    #[arg(long)]
    verify_all: bool,

    /// Read all files of the database, even those of which the repository has a copy
    #[arg(long)]
    reread: bool,

    /// A directory for the temporary checkpoint, on the file system of the database unless that is
    /// read-only; elsewhere all tables are copied [default: the parent directory of the database]
    #[arg(long, value_name = "DIR")]
    temporary: Option<PathBuf>,

    /// The database is in a snapshot of a volume that was taken while it was in use
    #[arg(long)]
    after_power_loss: bool,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonCreated<'a> {
    schema: u32,
    backup: &'a str,
    database: &'a str,
    time: &'a str,
    sequence: u64,
    history: &'a str,
    files: usize,
    bytes: u64,
    stored_files: u64,
    stored_bytes: u64,
    read_bytes: u64,
    seconds: f64,
}

impl CreateArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let repository = self.repository.open()?;
        let begun = Instant::now();
        let opening = open::options_of(self.after_power_loss);
        let source = CheckpointWith::new(&self.db, |dir| checkpoint::make(&self.db, &opening, dir));
        let created = {
            let bar = Bar::begin("backing up");
            let options = self.options().on_progress(bar.callback());
            terrane_backup::create(&source, &*repository, &options)?
        };
        warn(&created.notices);
        self.print(&created, begun.elapsed().as_secs_f64())?;
        Ok(Exit::Done)
    }

    fn options(&self) -> CreateOptions {
        let mut options = CreateOptions::new();
        if let Some(rate) = self.rate {
            options = options.rate(rate);
        }
        if self.verify_all {
            options = options.read_back(ReadBack::All);
        } else if self.verify {
            options = options.read_back(ReadBack::New);
        }
        if self.reread {
            options = options.reread();
        }
        match &self.temporary {
            Some(dir) => options.temporary(dir),
            None => options,
        }
    }

    fn print(&self, created: &Created, seconds: f64) -> Result<()> {
        let backup = &created.backup;
        let mut out = output::text_or_json(self.json);
        if self.json {
            let json = JsonCreated {
                schema: SCHEMA,
                backup: &backup.name,
                database: &backup.database,
                time: &backup.time,
                sequence: backup.sequence,
                history: &backup.history,
                files: backup.files.len(),
                bytes: backup.bytes,
                stored_files: created.stored_files,
                stored_bytes: created.stored_bytes,
                read_bytes: created.read_bytes,
                seconds: rounded(seconds),
            };
            write_line(&mut out, &json)?;
        } else {
            writeln!(out, "backup {}", backup.name)?;
            let (files, bytes) =
                (human::counted(backup.files.len() as u64, "file"), human::bytes(backup.bytes));
            let (new, stored) =
                (human::count(created.stored_files), human::bytes(created.stored_bytes));
            let time = human::seconds(seconds);
            writeln!(out, "{files} ({bytes}), {new} of them new ({stored}), in {time}")?;
        }
        out.flush()?;
        Ok(())
    }
}
