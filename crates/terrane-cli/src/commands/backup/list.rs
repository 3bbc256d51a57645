//! `terrane backup list`.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_backup::Backup;

use super::common::RepositoryArg;
use crate::exit::Exit;
use crate::output;
use crate::table::{Align, lines, table};
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// List the backups of a repository, oldest first
///
/// The name of a backup has its time in UTC and the number of its database. The exit code is 4 if a
/// manifest cannot be read.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    repository: RepositoryArg,

    /// List the backups of this database only; the first digits of its number suffice
    #[arg(long, value_name = "NUMBER")]
    database: Option<String>,

    /// Print a JSON object for each backup
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonBackup<'a> {
    #[serde(rename = "schema")]
    json_schema: u32,
    backup: &'a str,
    database: &'a str,
    path: &'a str,
    time: &'a str,
    sequence: u64,
    files: usize,
    bytes: u64,
    keyspaces: Vec<&'a str>,
}

impl<'a> JsonBackup<'a> {
    fn of(backup: &'a Backup) -> Self {
        Self {
            json_schema: SCHEMA,
            backup: &backup.name,
            database: &backup.database,
            path: &backup.path,
            time: &backup.time,
            sequence: backup.sequence,
            files: backup.files.len(),
            bytes: backup.bytes,
            keyspaces: backup.keyspaces.iter().map(|keyspace| keyspace.name.as_str()).collect(),
        }
    }
}

impl ListArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let repository = self.repository.open()?;
        let mut catalog = terrane_backup::list(&*repository)?;
        if let Some(database) = &self.database {
            catalog.keep_database(database, &repository.location())?;
        }
        let mut out = output::text_or_json(self.json);
        if self.json {
            for backup in &catalog.backups {
                write_line(&mut out, &JsonBackup::of(backup))?;
            }
        } else if catalog.backups.is_empty() {
            writeln!(out, "no backups in {}", repository.location())?;
        } else {
            let columns = [
                ("backup", Align::Left),
                ("sequence", Align::Right),
                ("files", Align::Right),
                ("size", Align::Right),
            ];
            let mut rows = table(&columns);
            for backup in &catalog.backups {
                let files = human::count(backup.files.len() as u64);
                let (sequence, bytes) = (human::count(backup.sequence), human::bytes(backup.bytes));
                rows.add_row([backup.name.clone(), sequence, files, bytes]);
            }
            lines(&rows).try_for_each(|line| writeln!(out, "{line}"))?;
        }
        out.flush()?;
        match catalog.unreadable.into_iter().next() {
            Some((_, error)) => Err(error.into()),
            None => Ok(Exit::Done),
        }
    }
}
