//! `terrane stats`: the numbers of the process that has a database open, or those of its files.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde_json::{Map, Value};
use terrane::policy::Admission;
use terrane::{Db, OperationCounts, Stats};
use terrane_control::{Format, Reply, Request};

use crate::database::{Database, served, unexpected};
use crate::exit::Exit;
use crate::open;
use crate::output;
use crate::statistics::JsonStoredStats;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

const NOT_STORED: &str = "\
Not in the files, but in the process that has the database open: operations
since then, latencies, cache, memory, stalls so far. This command shows them if
the process serves a control socket.";

/// Show sizes, counts and past operations of a database, even while it is open
///
/// If the process that has the database open serves a control socket, the numbers come from that
/// process. Otherwise they come from the files, without counters, latencies and memory.
#[derive(Debug, Clone, Args)]
pub(crate) struct StatsArgs {
    /// The directory of the database
    path: PathBuf,

    /// Print a JSON object
    #[arg(long, conflicts_with = "openmetrics")]
    json: bool,

    /// Print the OpenMetrics text format, for a scraper
    #[arg(long)]
    openmetrics: bool,
}

impl StatsArgs {
    /// Prints the numbers.
    pub(crate) fn run(&self) -> Result<Exit> {
        match served(&self.path) {
            Some(client) => self.of_process(&mut Database::Served(Box::new(client)))?,
            None => self.of_files()?,
        }
        Ok(Exit::Done)
    }

    /// Prints the statistics of the process that has the database open.
    fn of_process(&self, database: &mut Database) -> Result<()> {
        let format = match (self.json, self.openmetrics) {
            (true, _) => Format::Json,
            (_, true) => Format::OpenMetrics,
            _ => Format::Text,
        };
        let reply = database.ask(&Request::Stats { format })?;
        let Reply::Report { text } = reply else { return Err(unexpected(&reply)) };
        let mut out = output::text_or_json(format != Format::Text);
        if self.json {
            let mut stats: Map<String, Value> = serde_json::from_str(&text)?;
            stats.insert("schema".to_owned(), SCHEMA.into());
            stats.insert("source".to_owned(), "process".into());
            return Ok(write_line(&mut out, &stats)?);
        }
        Ok(out.write_all(text.as_bytes())?)
    }

    fn of_files(&self) -> Result<()> {
        let db = open::read_only(&self.path)?;
        let (stats, operations, stalls) = (db.stats(), db.remembered_operations(), stalls(&db)?);
        let is_data = self.json || self.openmetrics;
        let mut out = BufWriter::new(output::text_or_json(is_data));
        if self.json {
            write_line(&mut out, &JsonStoredStats::of(&stats, &operations, &stalls))?;
        } else if self.openmetrics {
            out.write_all(stats.open_metrics_stored().as_bytes())?;
        } else {
            write_text(&mut out, &stats, &operations, &stalls)?;
            writeln!(out, "\n{NOT_STORED}")?;
        }
        Ok(out.flush()?)
    }
}

/// Describes the keyspaces whose trees stall writers.
fn stalls(db: &Db) -> Result<Vec<String>> {
    let mut stalls = Vec::new();
    for name in db.keyspaces() {
        let tree = open::keyspace(db, &name)?.tree();
        match tree.admission {
            Admission::Proceed => {}
            Admission::Delay(pressure) => stalls.push(format!("{name}: delayed by {pressure}")),
            Admission::Stop(pressure) => stalls.push(format!("{name}: stopped by {pressure}")),
        }
    }
    Ok(stalls)
}

fn write_text(
    out: &mut impl Write,
    stats: &Stats,
    operations: &OperationCounts,
    stalls: &[String],
) -> Result<()> {
    let counted = human::counted;
    let mut line = |label: &str, text: String| writeln!(out, "{label:<19} {text}");
    line(
        "tables",
        format!(
            "{} in {}, {}, {}",
            human::bytes(stats.table_bytes),
            counted(stats.tables, "table"),
            counted(stats.levels, "level"),
            counted(stats.sorted_runs, "run")
        ),
    )?;
    line(
        "entries",
        format!(
            "{}, {}, {}",
            human::count(stats.table_entries),
            counted(stats.table_tombstones, "tombstone"),
            counted(stats.table_range_tombstones, "range tombstone")
        ),
    )?;
    if let Some(micros) = stats.oldest_tombstone_micros {
        let age = human::duration(Duration::from_micros(micros));
        line("oldest tombstone", format!("flushed {age} ago"))?;
    }
    if stats.value_files > 0 {
        let (all, live) = (human::bytes(stats.value_bytes), human::bytes(stats.value_live_bytes));
        let files = counted(stats.value_files, "file");
        line("separated values", format!("{all} in {files}, {live} of it live"))?;
    }
    line("log", format!("{} not in tables yet", counted(stats.replayed_writes, "write")))?;
    let &OperationCounts { writes, deletes, gets, gets_found, scans, open_micros, .. } = operations;
    line(
        "operations",
        format!(
            "{} ({}), {} ({} found), {}",
            counted(writes, "write"),
            counted(deletes, "delete"),
            counted(gets, "get"),
            human::count(gets_found),
            counted(scans, "scan")
        ),
    )?;
    let open = human::duration(Duration::from_micros(open_micros));
    line("", format!("at the last flush, in {open} of use; old ones count less"))?;
    for stall in stalls {
        line("stall", stall.clone())?;
    }
    if let Some(error) = &stats.error {
        line("error", error.to_string())?;
    }
    Ok(())
}
