//! `terrane design set`: gives a database another design, and tells first what that will cost.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::policy::{Amplification, Forecast};
use terrane::{Db, Keyspace};

use super::spec;
use crate::json::{SCHEMA, write_line};
use crate::{human, open};

/// What is changed, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct SetArgs {
    /// The directory of the database
    db: PathBuf,

    /// The design, or @FILE with one as TOML
    design: String,

    /// The keyspace
    #[arg(long, value_name = "NAME", default_value = open::DEFAULT_KEYSPACE)]
    keyspace: String,

    /// Only tell what the change would cost
    #[arg(long)]
    dry_run: bool,

    /// Do not end before the tree satisfies the design
    #[arg(long, conflicts_with = "dry_run")]
    converge: bool,
}

#[derive(Serialize)]
struct JsonForecast<'a> {
    schema: u32,
    keyspace: &'a str,
    is_done: bool,
    jobs: u64,
    tables_rewritten: u64,
    tables_moved: u64,
    bytes_rewritten: u64,
    peak_extra_bytes: u64,
    runs_before: u64,
    runs_after: u64,
    blocks_per_missing_key_before: f64,
    blocks_per_missing_key_after: f64,
    space_amplification_before: f64,
    space_amplification_after: f64,
    is_complete: bool,
}

impl SetArgs {
    /// Tells what it costs, and does it.
    pub(super) fn run(&self, json: bool) -> Result<()> {
        let design = spec::parse(&self.design)?;
        if self.dry_run {
            let db = Db::open_read_only(&self.db)?;
            let forecast = open::keyspace(&db, &self.keyspace)?.forecast(&design)?;
            return self.tell(&forecast, json);
        }
        let db = open::existing(&self.db)?;
        let done = open::keyspace(&db, &self.keyspace).and_then(|keyspace: Keyspace| {
            let forecast = keyspace.forecast(&design)?;
            keyspace.set_design(design)?;
            if self.converge {
                db.wait_for_compactions()?;
            }
            self.tell(&forecast, json)
        });
        let closed = db.close();
        done?;
        Ok(closed?)
    }

    fn tell(&self, forecast: &Forecast, json: bool) -> Result<()> {
        let mut out = io::stdout().lock();
        let Forecast { before, after, .. } = forecast;
        if json {
            let line = JsonForecast {
                schema: SCHEMA,
                keyspace: &self.keyspace,
                is_done: !self.dry_run,
                jobs: forecast.jobs,
                tables_rewritten: forecast.tables_rewritten,
                tables_moved: forecast.tables_moved,
                bytes_rewritten: forecast.bytes_rewritten,
                peak_extra_bytes: forecast.peak_extra_bytes,
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
        if forecast.jobs == 0 {
            writeln!(out, "the tree satisfies the design as it is: nothing to rewrite")?;
        } else {
            let at_least = if forecast.is_complete { "" } else { "more than " };
            writeln!(
                out,
                "{at_least}{}: {} to rewrite, {} at most, {} that only change place; {} more space at the peak",
                human::counted(forecast.jobs, "compaction"),
                human::counted(forecast.tables_rewritten, "table"),
                human::bytes(forecast.bytes_rewritten),
                human::count(forecast.tables_moved),
                human::bytes(forecast.peak_extra_bytes),
            )?;
        }
        let line = |name: &str, of: &dyn Fn(&Amplification) -> String| {
            format!("{name}: {} before, {} after", of(before), of(after))
        };
        writeln!(out, "{}", line("sorted runs", &|one| one.runs.to_string()))?;
        writeln!(
            out,
            "{}",
            line("blocks read for a missing key", &|one| format!(
                "{:.3}",
                one.blocks_per_missing_key
            ))
        )?;
        let space = |one: &Amplification| format!("{:.2}", one.space);
        writeln!(out, "{}", line("space amplification, at most", &space))?;
        Ok(())
    }
}
