//! `terrane design set`: forecasts the cost of a change of design, makes it, and shows its progress.
//!
//! A tree between two designs is valid under both, so cancelling only restores the previous design;
//! rewritten tables stay.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::Args;
use serde::Serialize;
use terrane::{Db, Design, Keyspace, inspect};
use terrane_policy::{Amplification, Forecast};

use crate::exit::Exit;
use crate::open;
use crate::output;
use terrane_lab::interrupt::{Cancellable, is_cancelled};
use terrane_lab::json::{SCHEMA, write_line};
use terrane_lab::quantity::rate;
use terrane_lab::spec;
use terrane_lab::{human, progress};

/// The interval at which progress and cancellation are checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Change the design of a database
#[derive(Debug, Clone, Args)]
pub(crate) struct SetArgs {
    /// The directory of the database
    db: PathBuf,

    /// The new design, or @FILE with one as TOML
    #[arg(required_unless_present = "undo", conflicts_with = "undo")]
    design: Option<String>,

    /// Restore the design from before the last change
    #[arg(long)]
    undo: bool,

    /// The keyspace
    #[arg(long, value_name = "NAME", default_value = open::DEFAULT_KEYSPACE)]
    keyspace: String,

    /// Only print what the change would cost
    #[arg(long)]
    dry_run: bool,

    /// Wait until the tree satisfies the design; Ctrl-C restores the previous one
    #[arg(long, conflicts_with = "dry_run")]
    converge: bool,

    /// The bytes per second of compactions, such as 50MiB, for the forecast of the time
    /// [default: the rate of the last compactions]
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    budget: Option<u64>,
}

#[derive(Serialize)]
struct JsonForecast<'a> {
    schema: u32,
    keyspace: &'a str,
    design: String,
    is_done: bool,
    is_cancelled: bool,
    jobs: u64,
    tables_rewritten: u64,
    tables_moved: u64,
    bytes_rewritten: u64,
    peak_extra_bytes: u64,
    bytes_per_second: Option<f64>,
    seconds: Option<f64>,
    runs_before: u64,
    runs_after: u64,
    blocks_per_missing_key_before: f64,
    blocks_per_missing_key_after: f64,
    space_amplification_before: f64,
    space_amplification_after: f64,
    is_complete: bool,
}

/// The speed that compactions are assumed to have.
#[derive(Debug, Clone, Copy)]
enum Rate {
    Budget(f64),
    /// The rate is computed from this many recent compactions.
    Measured(f64, usize),
    Unknown,
}

impl Rate {
    fn bytes_per_second(self) -> Option<f64> {
        match self {
            Self::Budget(rate) | Self::Measured(rate, _) => Some(rate),
            Self::Unknown => None,
        }
    }
}

impl SetArgs {
    /// Prints the forecast, and makes the change.
    pub(super) fn run(&self, json: bool) -> Result<Exit> {
        if self.dry_run {
            let db = open::read_only(&self.db)?;
            let keyspace = open::keyspace(&db, &self.keyspace)?;
            let design = self.wanted(&keyspace)?;
            let forecast = keyspace.forecast(&design)?;
            self.print(&design, &forecast, false, json)?;
            return Ok(Exit::Done);
        }
        let db = open::existing(&self.db)?;
        let done =
            open::keyspace(&db, &self.keyspace).and_then(|keyspace| self.set(&db, &keyspace, json));
        // A cancelled wait has closed the database already.
        let closed = db.close();
        let exit = done?;
        if exit == Exit::Done {
            closed?;
        }
        Ok(exit)
    }

    /// Returns the design that the user requested.
    fn wanted(&self, keyspace: &Keyspace) -> Result<Design> {
        match &self.design {
            Some(text) => spec::parse(text),
            None => keyspace.design_before().ok_or_else(|| {
                anyhow!("nothing to undo: keyspace '{}' never had another design", self.keyspace)
            }),
        }
    }

    fn set(&self, db: &Db, keyspace: &Keyspace, json: bool) -> Result<Exit> {
        let (design, before) = (self.wanted(keyspace)?, keyspace.design());
        let forecast = keyspace.forecast(&design)?;
        if !json {
            self.print(&design, &forecast, false, json)?;
        }
        // From here on Ctrl-C cancels instead of ending the program between two steps.
        let cancellable = self.converge.then(Cancellable::begin);
        keyspace.set_design(design.clone())?;
        let is_cancelled = cancellable.is_some() && !converge(db, &forecast)?;
        if is_cancelled {
            keyspace.set_design(before)?;
            // Closing aborts running compactions.
            db.clone().close()?;
        }
        if json {
            self.print(&design, &forecast, is_cancelled, json)?;
        } else if is_cancelled {
            let _ = writeln!(
                io::stderr(),
                "cancelled: the previous design is restored; rewritten tables stay"
            );
        }
        Ok(if is_cancelled { Exit::Interrupted } else { Exit::Done })
    }

    fn rate(&self) -> Rate {
        if let Some(bytes) = self.budget {
            return Rate::Budget(bytes as f64);
        }
        let jobs = inspect::jobs(&self.db).unwrap_or_default();
        let merges = jobs.iter().filter(|job| job.read_bytes > 0).count();
        inspect::compaction_rate(&jobs).map_or(Rate::Unknown, |rate| Rate::Measured(rate, merges))
    }

    fn print(
        &self,
        design: &Design,
        forecast: &Forecast,
        is_cancelled: bool,
        json: bool,
    ) -> Result<()> {
        let mut out = output::text();
        let Forecast { before, after, .. } = forecast;
        let rate = self.rate();
        if json {
            let bytes_per_second = rate.bytes_per_second();
            let line = JsonForecast {
                schema: SCHEMA,
                keyspace: &self.keyspace,
                design: design.to_string(),
                is_done: !self.dry_run && !is_cancelled,
                is_cancelled,
                jobs: forecast.jobs,
                tables_rewritten: forecast.tables_rewritten,
                tables_moved: forecast.tables_moved,
                bytes_rewritten: forecast.bytes_rewritten,
                peak_extra_bytes: forecast.peak_extra_bytes,
                bytes_per_second,
                seconds: bytes_per_second.map(|rate| forecast.seconds_at(rate)),
                runs_before: before.runs,
                runs_after: after.runs,
                blocks_per_missing_key_before: before.blocks_per_missing_key,
                blocks_per_missing_key_after: after.blocks_per_missing_key,
                space_amplification_before: before.space,
                space_amplification_after: after.space,
                is_complete: forecast.is_complete,
            };
            return Ok(write_line(&mut out, &line)?);
        }
        if self.undo {
            writeln!(out, "back to {design}")?;
        }
        write!(out, "{}", cost(forecast, rate))?;
        let line = |name: &str, of: &dyn Fn(&Amplification) -> String| {
            format!("{name}: {} before, {} after", of(before), of(after))
        };
        let blocks = |one: &Amplification| format!("{:.3}", one.blocks_per_missing_key);
        let space = |one: &Amplification| format!("{:.2}", one.space);
        writeln!(out, "{}", line("sorted runs", &|one| one.runs.to_string()))?;
        writeln!(out, "{}", line("blocks read for a missing key", &blocks))?;
        writeln!(out, "{}", line("space amplification, at most", &space))?;
        if forecast.bytes_rewritten > 0 {
            // The last run may hold most of the entries that are dropped.
            writeln!(
                out,
                "these are upper bounds, because compactions drop overwritten and deleted entries"
            )?;
        }
        Ok(())
    }
}

/// Formats the work and the time that a forecast predicts.
fn cost(forecast: &Forecast, rate: Rate) -> String {
    if forecast.jobs == 0 {
        return "the tree satisfies the design already: nothing to rewrite\n".into();
    }
    let at_least = if forecast.is_complete { "" } else { "more than " };
    let text = format!(
        "{at_least}{}: {} to rewrite, about {}, {} moved without rewriting; {} more space at the peak\n",
        human::counted(forecast.jobs, "compaction"),
        human::counted(forecast.tables_rewritten, "table"),
        human::bytes(forecast.bytes_rewritten),
        human::count(forecast.tables_moved),
        human::bytes(forecast.peak_extra_bytes),
    );
    if forecast.bytes_rewritten == 0 {
        return text;
    }
    let Some(bytes_per_second) = rate.bytes_per_second() else {
        return text
            + "the time is unknown because no compaction has run yet; give a rate with --budget\n";
    };
    let time = Duration::from_secs_f64(forecast.seconds_at(bytes_per_second).min(1e9));
    let (time, speed) = (human::duration(time), human::bytes(bytes_per_second as u64));
    let of = match rate {
        Rate::Measured(_, jobs) => {
            format!("the rate of the last {}", human::counted(jobs as u64, "compaction"))
        }
        _ => "the budget".to_owned(),
    };
    text + &format!("about {time} at {speed}/s, {of}\n")
}

/// Waits until the tree satisfies its design; returns false if the user cancels.
fn converge(db: &Db, forecast: &Forecast) -> Result<bool> {
    // Values that move between value files and tables are not in tables that are read.
    let moved = || {
        let stats = db.stats();
        stats.compaction_bytes_read.max(stats.compaction_bytes_written)
    };
    let before = moved();
    let bar = progress::bytes(forecast.bytes_rewritten, "rewriting");
    // If the user cancels, the wait ends when the database is closed.
    let waiting = {
        let db = db.clone();
        std::thread::spawn(move || db.wait_for_compactions())
    };
    while !waiting.is_finished() {
        if is_cancelled() {
            bar.finish_and_clear();
            return Ok(false);
        }
        let done = moved() - before;
        bar.set_position(done.min(forecast.bytes_rewritten));
        std::thread::sleep(POLL_INTERVAL);
    }
    bar.finish_and_clear();
    waiting.join().map_err(|_| anyhow!("the wait for compactions panicked"))??;
    Ok(true)
}
