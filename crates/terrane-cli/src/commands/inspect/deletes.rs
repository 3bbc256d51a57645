//! `terrane inspect deletes`: deletes that are not persistent yet, and how long others took.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::inspect;

use crate::exit::Exit;
use crate::human;
use crate::json::{SCHEMA, write_line};
use crate::terminal::Paint;
use crate::time::utc;

/// How deletes fare: the oldest tombstone, what the log holds, the longest a delete took to be
/// persistent, and those that have taken longer than the option delete_persistence allows.
#[derive(Debug, Clone, Args)]
pub(crate) struct DeletesArgs {
    /// The directory of the database
    path: PathBuf,

    /// Write an object for programs
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonDeletes {
    schema: u32,
    threshold_micros: Option<u64>,
    worst_micros: Option<u64>,
    oldest_tombstone_micros: Option<u64>,
    tombstones: u64,
    range_tombstones: u64,
    log_files: usize,
    log_writes: u64,
    log_deletes: u64,
    log_begun_micros: Option<u64>,
    violations: usize,
}

impl DeletesArgs {
    /// Writes it.
    pub(super) fn run(&self) -> Result<Exit> {
        let report = inspect::deletes(&self.path)?;
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = since_epoch.map_or(0, |time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
        let violations = report.violations(now);
        let mut out = BufWriter::new(io::stdout().lock());
        let oldest = |keyspace: &inspect::KeyspaceDeletes| keyspace.tables.first().copied();
        if self.json {
            let all = || report.keyspaces.iter();
            let line = JsonDeletes {
                schema: SCHEMA,
                threshold_micros: report.threshold_micros,
                worst_micros: report.worst_micros,
                oldest_tombstone_micros: all().filter_map(oldest).map(|(_, _, since)| since).min(),
                tombstones: all().map(|keyspace| keyspace.tombstones).sum(),
                range_tombstones: all().map(|keyspace| keyspace.range_tombstones).sum(),
                log_files: report.log.len(),
                log_writes: report.log.iter().map(|file| file.batches).sum(),
                log_deletes: report.log.iter().map(|file| file.deletes).sum(),
                log_begun_micros: report.log.first().map(|file| file.begun_micros),
                violations,
            };
            write_line(&mut out, &line)?;
            out.flush()?;
            return Ok(Exit::Done);
        }
        let paint = Paint::stdout();
        let time = |micros: Option<u64>, none: &str| {
            micros.map_or_else(
                || none.to_owned(),
                |micros| human::duration(Duration::from_micros(micros)),
            )
        };
        for keyspace in &report.keyspaces {
            let points = human::counted(keyspace.tombstones, "tombstone");
            let ranges = human::counted(keyspace.range_tombstones, "range tombstone");
            let tables = human::counted(keyspace.tables.len() as u64, "table");
            writeln!(
                out,
                "keyspace {}: {points}, {ranges} in {tables}",
                paint.bold(&keyspace.keyspace)
            )?;
            if let Some((table, level, since)) = oldest(keyspace) {
                let age = time(Some(now.saturating_sub(since)), "");
                writeln!(
                    out,
                    "  the oldest is {age} old, since {}, in table {table} of level {level}",
                    utc(since)
                )?;
            }
        }
        let writes = human::counted(report.log.iter().map(|file| file.batches).sum(), "write");
        let deletes = human::counted(report.log.iter().map(|file| file.deletes).sum(), "delete");
        let files = human::counted(report.log.len() as u64, "file");
        writeln!(out, "the log: {writes} with {deletes} in {files}")?;
        if let Some(file) = report.log.first() {
            writeln!(
                out,
                "  the oldest file was begun {} ago, {}: {}",
                time(Some(now.saturating_sub(file.begun_micros)), ""),
                utc(file.begun_micros),
                file.name
            )?;
        }
        writeln!(
            out,
            "to be persistent within: {}",
            time(report.threshold_micros, "no time was set")
        )?;
        writeln!(out, "longest so far: {}", time(report.worst_micros, "none was remembered"))?;
        writeln!(
            out,
            "violations: {}",
            if violations == 0 { "none".into() } else { human::counted(violations as u64, "file") }
        )?;
        out.flush()?;
        Ok(Exit::Done)
    }
}
