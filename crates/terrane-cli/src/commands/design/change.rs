//! `terrane design set`: gives a database another design, tells first what that will cost, and how
//! far it is while it waits.
//!
//! A tree between two designs is a valid tree of both, so to cancel is to set the design back that
//! was there before: what was rewritten stays.

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
use terrane_lab::interrupt::{Cancellable, is_cancelled};
use terrane_lab::json::{SCHEMA, write_line};
use terrane_lab::quantity::rate;
use terrane_lab::spec;
use terrane_lab::{human, progress};

/// How often progress is looked at, and a wish to cancel.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What is changed, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct SetArgs {
    /// The directory of the database
    db: PathBuf,

    /// The design, or @FILE with one as TOML
    #[arg(required_unless_present = "undo", conflicts_with = "undo")]
    design: Option<String>,

    /// Set the design that was there before the last change
    #[arg(long)]
    undo: bool,

    /// The keyspace
    #[arg(long, value_name = "NAME", default_value = open::DEFAULT_KEYSPACE)]
    keyspace: String,

    /// Only tell what the change would cost
    #[arg(long)]
    dry_run: bool,

    /// Do not end before the tree satisfies the design; Ctrl-C sets the design back
    #[arg(long, conflicts_with = "dry_run")]
    converge: bool,

    /// Bytes a second that compactions may read and write again, such as 50MiB, for the time that is
    /// told [default: what the last ones did]
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

/// How fast compactions are taken to be.
#[derive(Debug, Clone, Copy)]
enum Rate {
    Budget(f64),
    /// That of so many compactions.
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
    /// Tells what it costs, and does it.
    pub(super) fn run(&self, json: bool) -> Result<Exit> {
        if self.dry_run {
            let db = Db::open_read_only(&self.db)?;
            let keyspace = open::keyspace(&db, &self.keyspace)?;
            let design = self.wanted(&keyspace)?;
            let forecast = keyspace.forecast(&design)?;
            self.tell(&design, &forecast, false, json)?;
            return Ok(Exit::Done);
        }
        let db = open::existing(&self.db)?;
        let done =
            open::keyspace(&db, &self.keyspace).and_then(|keyspace| self.set(&db, &keyspace, json));
        // A wait that was cancelled has closed it.
        let closed = db.close();
        let exit = done?;
        if exit == Exit::Done {
            closed?;
        }
        Ok(exit)
    }

    /// The design that is asked for.
    fn wanted(&self, keyspace: &Keyspace) -> Result<Design> {
        match &self.design {
            Some(text) => spec::parse(text),
            None => keyspace.design_before().ok_or_else(|| {
                anyhow!(
                    "there is nothing to undo: keyspace '{}' never had another design",
                    self.keyspace
                )
            }),
        }
    }

    fn set(&self, db: &Db, keyspace: &Keyspace, json: bool) -> Result<Exit> {
        let (design, before) = (self.wanted(keyspace)?, keyspace.design());
        let forecast = keyspace.forecast(&design)?;
        if !json {
            self.tell(&design, &forecast, false, json)?;
        }
        // From here on Ctrl-C cancels, and does not end the program between two steps.
        let cancellable = self.converge.then(Cancellable::begin);
        keyspace.set_design(design.clone())?;
        let is_cancelled = cancellable.is_some() && !converge(db, &forecast)?;
        if is_cancelled {
            keyspace.set_design(before)?;
            // Gives up what is being merged.
            db.clone().close()?;
        }
        if json {
            self.tell(&design, &forecast, is_cancelled, json)?;
        } else if is_cancelled {
            let _ = writeln!(
                io::stderr(),
                "cancelled: the design is the one from before; what was rewritten stays"
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

    fn tell(
        &self,
        design: &Design,
        forecast: &Forecast,
        is_cancelled: bool,
        json: bool,
    ) -> Result<()> {
        let mut out = io::stdout().lock();
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
            // Most of what is dropped may be in the last run.
            writeln!(
                out,
                "what is overwritten or deleted is dropped on the way: that is not known before"
            )?;
        }
        Ok(())
    }
}

/// What it takes, and how long.
fn cost(forecast: &Forecast, rate: Rate) -> String {
    if forecast.jobs == 0 {
        return "the tree satisfies the design as it is: nothing to rewrite\n".into();
    }
    let at_least = if forecast.is_complete { "" } else { "more than " };
    let text = format!(
        "{at_least}{}: {} to rewrite, about {}, {} that only change place; {} more space at the peak\n",
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
        return text + "how long that takes is not known: nothing was merged yet; see --budget\n";
    };
    let time = Duration::from_secs_f64(forecast.seconds_at(bytes_per_second).min(1e9));
    let (time, speed) = (human::duration(time), human::bytes(bytes_per_second as u64));
    let of = match rate {
        Rate::Measured(_, jobs) => {
            format!("as {} did it, one at a time", human::counted(jobs as u64, "compaction"))
        }
        _ => "the budget".to_owned(),
    };
    text + &format!("about {time} at {speed} a second, {of}\n")
}

/// Waits until the tree satisfies its design; false if that was cancelled.
fn converge(db: &Db, forecast: &Forecast) -> Result<bool> {
    let before = db.stats().compaction_bytes_read;
    let bar = progress::bytes(forecast.bytes_rewritten, "rewriting");
    // One that is cancelled ends when the database is closed.
    let waiting = {
        let db = db.clone();
        std::thread::spawn(move || db.wait_for_compactions())
    };
    while !waiting.is_finished() {
        if is_cancelled() {
            bar.finish_and_clear();
            return Ok(false);
        }
        let done = db.stats().compaction_bytes_read - before;
        bar.set_position(done.min(forecast.bytes_rewritten));
        std::thread::sleep(LOOK_EVERY);
    }
    bar.finish_and_clear();
    waiting.join().map_err(|_| anyhow!("the wait for compactions panicked"))??;
    Ok(true)
}
