//! `terrane inspect jobs`: the last compactions of a database, and their reasons.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::inspect::{self, JobReport};

use crate::exit::Exit;
use crate::output;
use crate::terminal::Paint;
use crate::time::utc;
use terrane_lab::input::quantity::count_in;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Show the last compactions of a database, with their reasons, inputs and costs
#[derive(Debug, Clone, Args)]
pub(crate) struct JobsArgs {
    /// The directory of the database
    path: PathBuf,

    /// The number of compactions to show
    #[arg(long, value_name = "COUNT", value_parser = count_in::<usize>(0..=u64::MAX))]
    last: Option<usize>,

    /// Print a JSON object per line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonJob<'a> {
    schema: u32,
    keyspace: &'a str,
    ended_micros: u64,
    took_micros: u64,
    what: &'a str,
    why: &'a str,
    tables_rewritten: u64,
    tables_moved: u64,
    predicted_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
    deletes_persistent_after_micros: Option<u64>,
}

impl JobsArgs {
    /// Prints the compactions.
    pub(super) fn run(&self) -> Result<Exit> {
        let jobs = inspect::jobs(&self.path)?;
        let mut out = BufWriter::new(output::text_or_json(self.json));
        let paint = Paint::stdout();
        if jobs.is_empty() && !self.json {
            let _ = writeln!(io::stderr(), "no compaction has run yet");
        }
        let skipped = self.last.map_or(0, |last| jobs.len().saturating_sub(last));
        for job in jobs.iter().skip(skipped) {
            if self.json {
                write_line(&mut out, &JsonJob::of(job))?;
                continue;
            }
            let (when, what) = (utc(job.ended_micros), &job.what);
            writeln!(out, "{} {}: {what}", paint.bold(&when), job.keyspace)?;
            writeln!(out, "  because of {}", job.why)?;
            writeln!(out, "  {}", cost(job))?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}

fn cost(job: &JobReport) -> String {
    let moved = human::counted(job.tables_moved, "table");
    if job.tables_rewritten == 0 {
        return format!("{moved} moved without reading");
    }
    let (read, written) = (human::bytes(job.read_bytes), human::bytes(job.written_bytes));
    let predicted = human::bytes(job.predicted_bytes);
    let took = human::duration(Duration::from_micros(job.took_micros));
    let mut text = format!(
        "{} merged: {read} read, {written} written of {predicted} predicted, in {took}",
        human::counted(job.tables_rewritten, "table")
    );
    if job.tables_moved > 0 {
        text += &format!("; {moved} moved without reading");
    }
    if let Some(micros) = job.persisted_micros {
        let age = human::duration(Duration::from_micros(micros));
        text += &format!("; its deletes are persistent, the oldest after {age}");
    }
    text
}

impl<'a> JsonJob<'a> {
    fn of(job: &'a JobReport) -> Self {
        Self {
            schema: SCHEMA,
            keyspace: &job.keyspace,
            ended_micros: job.ended_micros,
            took_micros: job.took_micros,
            what: &job.what,
            why: &job.why,
            tables_rewritten: job.tables_rewritten,
            tables_moved: job.tables_moved,
            predicted_bytes: job.predicted_bytes,
            read_bytes: job.read_bytes,
            written_bytes: job.written_bytes,
            deletes_persistent_after_micros: job.persisted_micros,
        }
    }
}
