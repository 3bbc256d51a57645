//! `terrane backup list`.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_backup::{Backup, Origin};

use super::common::{RepositoryArg, warn};
use crate::exit::Exit;
use crate::output;
use crate::table::{Align, lines, table};
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// List the backups of a repository, those of each database and history in the order of their writes
///
/// The name of a backup has its time in UTC, its position among the backups of its database in the order of
/// creation, and the number of the database. A database that was restored and then written has another
/// history than its original. The exit code is 4 if a
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
    ordinal: u64,
    history: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<&'a Origin>,
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
            ordinal: backup.ordinal,
            history: &backup.history,
            origin: backup.origin.as_ref(),
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
            table_of(&catalog.backups).try_for_each(|line| writeln!(out, "{line}"))?;
        }
        out.flush()?;
        warn(&catalog.notices());
        match catalog.unreadable.into_iter().next() {
            Some((_, error)) => Err(error.into()),
            None => Ok(Exit::Done),
        }
    }
}

/// Returns the lines of a table of backups. Only a database with several histories needs their numbers.
fn table_of(backups: &[Backup]) -> impl Iterator<Item = String> + use<> {
    let has_histories = backups.iter().any(|backup| backup.origin.is_some());
    let mut columns = vec![
        ("backup", Align::Left),
        ("sequence", Align::Right),
        ("files", Align::Right),
        ("size", Align::Right),
    ];
    if has_histories {
        columns.push(("history", Align::Left));
    }
    let mut rows = table(&columns);
    for backup in backups {
        let files = human::count(backup.files.len() as u64);
        let (sequence, bytes) = (human::count(backup.sequence), human::bytes(backup.bytes));
        let mut row = vec![backup.name.clone(), sequence, files, bytes];
        if has_histories {
            row.push(backup.history.clone());
        }
        rows.add_row(row);
    }
    lines(&rows)
}
