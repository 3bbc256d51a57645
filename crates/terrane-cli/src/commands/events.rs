//! `terrane events`: the flushes, compactions, stalls and errors of a database.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use serde::Serialize;
use terrane::inspect::{self, JobReport};
use terrane_control::{Item, Reply, Request};

use crate::database::{Database, served, unexpected};
use crate::events::JsonEvent;
use crate::exit::Exit;
use crate::open;
use crate::output::{self, Text};
use crate::time::utc;
use terrane_lab::input::quantity::count_in;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Show flushes, compactions, stalls and errors of a database
///
/// If the process that has the database open serves a control socket, these are its events since it
/// opened the database, at most the last thousand. Otherwise they are the compactions that the
/// files record.
#[derive(Debug, Clone, Args)]
pub(crate) struct EventsArgs {
    /// The directory of the database
    db: PathBuf,

    /// The number of past events to show [default: all; with --follow, 10]
    #[arg(long, value_name = "COUNT", value_parser = count_in::<u64>(0..=u64::MAX))]
    last: Option<u64>,

    /// Also show events as they happen, until Ctrl-C
    #[arg(long, short)]
    follow: bool,

    /// Print a JSON object per line
    #[arg(long)]
    json: bool,
}

/// Past events that `--follow` shows first.
const LAST_DEFAULT: u64 = 10;

/// A compaction recorded in the files, in the form of its end event.
#[derive(Serialize)]
struct JsonPastJob<'a> {
    schema: u32,
    text: String,
    event: &'static str,
    at_micros: u64,
    keyspace: &'a str,
    what: &'a str,
    why: &'a str,
    tables_rewritten: u64,
    tables_moved: u64,
    predicted_bytes: u64,
    read_bytes: u64,
    written_bytes: u64,
    took_micros: u64,
}

impl EventsArgs {
    /// Prints the events.
    pub(crate) fn run(&self) -> Result<Exit> {
        let mut out = output::text_or_json(self.json);
        match served(&self.db) {
            Some(client) => self.of_process(&mut Database::Served(Box::new(client)), &mut out)?,
            None => self.of_files(&mut out)?,
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn of_process(&self, database: &mut Database, out: &mut Text) -> Result<()> {
        let last = self.last.or(self.follow.then_some(LAST_DEFAULT));
        let request = Request::Events { last, follow: self.follow };
        let mut is_any = false;
        let reply = database.ask_each(&request, &mut |item| {
            let Item::Event(event) = item else { return Ok(()) };
            is_any = true;
            if self.json {
                write_line(out, &JsonEvent::of(event))?;
            } else {
                writeln!(out, "{} {}", utc(event.at_micros), event.text)?;
            }
            Ok(out.flush()?)
        })?;
        let Reply::Ended { missed } = reply else { return Err(unexpected(&reply)) };
        if missed > 0 {
            let missed = human::counted(missed, "event");
            let _ = writeln!(io::stderr(), "{missed} came too quickly to be shown");
        }
        if !is_any && !self.json {
            let _ = writeln!(io::stderr(), "no events since the database was opened");
        }
        Ok(())
    }

    fn of_files(&self, out: &mut Text) -> Result<()> {
        let dir = self.db.display();
        // Reports the problem with the directory, if it holds no database.
        open::read_only(&self.db)?;
        if self.follow {
            return Err(anyhow!(
                "no process serves {dir}, so there are no events to follow; without --follow, the past \
                 compactions are shown"
            ));
        }
        let jobs = inspect::jobs(&self.db)?;
        let last = self.last.map_or(usize::MAX, |last| usize::try_from(last).unwrap_or(usize::MAX));
        for job in jobs.iter().skip(jobs.len().saturating_sub(last)) {
            if self.json {
                write_line(out, &JsonPastJob::of(job))?;
            } else {
                writeln!(out, "{} {}", utc(job.ended_micros), sentence(job))?;
            }
        }
        if !self.json {
            let _ = writeln!(
                io::stderr(),
                "no process serves {dir}: these are the compactions that its files record"
            );
        }
        Ok(())
    }
}

fn sentence(job: &JobReport) -> String {
    let took = human::duration(Duration::from_micros(job.took_micros));
    let (read, written) = (human::bytes(job.read_bytes), human::bytes(job.written_bytes));
    format!(
        "{}: compacted {}, {read} read, {written} written, in {took}, because of {}",
        job.keyspace, job.what, job.why
    )
}

impl<'a> JsonPastJob<'a> {
    fn of(job: &'a JobReport) -> Self {
        Self {
            schema: SCHEMA,
            text: sentence(job),
            event: "job-ended",
            at_micros: job.ended_micros,
            keyspace: &job.keyspace,
            what: &job.what,
            why: &job.why,
            tables_rewritten: job.tables_rewritten,
            tables_moved: job.tables_moved,
            predicted_bytes: job.predicted_bytes,
            read_bytes: job.read_bytes,
            written_bytes: job.written_bytes,
            took_micros: job.took_micros,
        }
    }
}
