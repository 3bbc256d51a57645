//! `terrane inspect deletes`: deletes that are not persistent yet, and how long earlier ones took.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::inspect::{self, DeletesReport, KeyspaceDeletes};

use crate::exit::Exit;
use crate::output;
use crate::terminal::Paint;
use crate::time::{now_micros, utc};
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Show the persistence of deletes: the oldest tombstone, deletes in the log, the longest time to
/// persistence, and deletes later than the option delete_persistence allows
#[derive(Debug, Clone, Args)]
pub(crate) struct DeletesArgs {
    /// The directory of the database
    path: PathBuf,

    /// Print a JSON object
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
    /// Prints the report.
    pub(super) fn run(&self) -> Result<Exit> {
        let report = inspect::deletes(&self.path)?;
        let now = now_micros();
        let mut out = BufWriter::new(output::text_or_json(self.json));
        if self.json {
            write_line(&mut out, &JsonDeletes::of(&report, now))?;
        } else {
            let text = DeletesText { report: &report, now };
            text.tables(&mut out, Paint::stdout())?;
            text.log(&mut out)?;
            text.times(&mut out)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

fn oldest(keyspace: &KeyspaceDeletes) -> Option<(u64, usize, u64)> {
    keyspace.tables.first().copied()
}

impl JsonDeletes {
    fn of(report: &DeletesReport, now: u64) -> Self {
        let all = || report.keyspaces.iter();
        Self {
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
            violations: report.violations(now),
        }
    }
}

/// Prints the report as text.
struct DeletesText<'a> {
    report: &'a DeletesReport,
    now: u64,
}

impl DeletesText<'_> {
    fn age(&self, since: u64) -> String {
        human::duration(Duration::from_micros(self.now.saturating_sub(since)))
    }

    fn tables(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        for keyspace in &self.report.keyspaces {
            let points = human::counted(keyspace.tombstones, "tombstone");
            let ranges = human::counted(keyspace.range_tombstones, "range tombstone");
            let tables = human::counted(keyspace.tables.len() as u64, "table");
            let name = paint.bold(&keyspace.keyspace);
            writeln!(out, "keyspace {name}: {points}, {ranges} in {tables}")?;
            if let Some((table, level, since)) = oldest(keyspace) {
                let (age, since) = (self.age(since), utc(since));
                writeln!(
                    out,
                    "  the oldest is {age} old, since {since}, in table {table} of level {level}"
                )?;
            }
            if let Some((file, since)) = keyspace.value_files.first() {
                let files = human::counted(keyspace.value_files.len() as u64, "value file");
                let (age, since) = (self.age(*since), utc(*since));
                writeln!(
                    out,
                    "  dead values in {files}, the oldest {age} old, since {since}, in value file {file}"
                )?;
            }
        }
        Ok(())
    }

    fn log(&self, out: &mut dyn Write) -> io::Result<()> {
        let log = &self.report.log;
        let writes = human::counted(log.iter().map(|file| file.batches).sum(), "write");
        let deletes = human::counted(log.iter().map(|file| file.deletes).sum(), "delete");
        let files = human::counted(log.len() as u64, "file");
        writeln!(out, "the log: {writes} with {deletes} in {files}")?;
        if let Some(file) = log.first() {
            let (age, begun) = (self.age(file.begun_micros), utc(file.begun_micros));
            writeln!(out, "  the oldest, {}, started {age} ago, {begun}", file.name)?;
        }
        Ok(())
    }

    fn times(&self, out: &mut dyn Write) -> io::Result<()> {
        let time = |micros: Option<u64>, none: &str| {
            micros.map_or_else(
                || none.to_owned(),
                |micros| human::duration(Duration::from_micros(micros)),
            )
        };
        let within = time(self.report.threshold_micros, "no limit set");
        writeln!(out, "limit: {within}")?;
        let longest = time(self.report.worst_micros, "none recorded");
        writeln!(out, "longest so far: {longest}")?;
        let violations = match self.report.violations(self.now) {
            0 => "none".into(),
            some => human::counted(some as u64, "file"),
        };
        writeln!(out, "violations: {violations}")
    }
}
