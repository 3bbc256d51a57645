//! `terrane design set`: forecasts the cost of a change of design, makes it, and shows its progress.
//!
//! A tree between two designs is valid under both, so cancelling only restores the previous design;
//! rewritten tables stay.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::inspect;
use terrane::policy::{Amplification, Forecast};
use terrane_control::{DesignForecast, Reply, Request};

use crate::database::{Database, unexpected};
use crate::exit::Exit;
use crate::open;
use crate::output;
use terrane_lab::input::quantity::rate;
use terrane_lab::input::spec;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

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
    design: &'a str,
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
        let design = self.design.as_deref().map(spec::parse).transpose()?;
        let design = design.map(|design| design.to_string());
        if self.dry_run {
            let forecast = self.forecast(&mut Database::to_view(&self.db)?, design)?;
            self.print(&forecast, false, json)?;
            return Ok(Exit::Done);
        }
        let mut database = Database::to_change(&self.db)?;
        let done = self.set(&mut database, design, json);
        // Closing aborts the compactions that a cancelled wait left running.
        let closed = database.close();
        let exit = done?;
        if exit == Exit::Done {
            closed?;
        }
        Ok(exit)
    }

    fn forecast(
        &self,
        database: &mut Database,
        design: Option<String>,
    ) -> Result<Box<DesignForecast>> {
        let keyspace = self.keyspace.clone();
        match database.ask(&Request::Forecast { keyspace, design })? {
            Reply::Forecast(forecast) => Ok(forecast),
            other => Err(unexpected(&other)),
        }
    }

    fn set(&self, database: &mut Database, design: Option<String>, json: bool) -> Result<Exit> {
        let forecast = self.forecast(database, design)?;
        if !json {
            self.print(&forecast, false, json)?;
        }
        let (keyspace, converge) = (self.keyspace.clone(), self.converge);
        let design = Some(forecast.design.clone());
        let reply = database.ask(&Request::SetDesign { keyspace, design, converge })?;
        let Reply::DesignSet { is_cancelled, .. } = reply else { return Err(unexpected(&reply)) };
        if json {
            self.print(&forecast, is_cancelled, json)?;
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

    fn print(&self, answer: &DesignForecast, is_cancelled: bool, json: bool) -> Result<()> {
        let mut out = output::text();
        let DesignForecast { design, forecast, .. } = answer;
        let Forecast { before, after, .. } = forecast;
        let rate = self.rate();
        if json {
            let bytes_per_second = rate.bytes_per_second();
            let line = JsonForecast {
                schema: SCHEMA,
                keyspace: &self.keyspace,
                design,
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
        // A sum of rounded parts may be slightly negative, and would be printed as -0.000.
        let blocks = |one: &Amplification| {
            let blocks = one.blocks_per_missing_key;
            format!("{:.3}", if blocks < 0.0005 { 0.0 } else { blocks })
        };
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
