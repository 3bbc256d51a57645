//! `terrane backup prune`.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_backup::{PruneOptions, Pruned, Retention};

use super::common::{RepositoryArg, warn};
use crate::exit::{Exit, usage};
use crate::output;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Remove old backups, and the objects that no backup needs any longer
///
/// Prints the list of removals; --yes makes them. A backup is kept if any rule keeps it. Rules
/// apply separately to each database, to each of its directories and to each of its histories, so
/// --keep-last 3 keeps three of each. The last backups are those with the most writes. Hours, days and weeks are in UTC, and only those with a backup count. No backup can be
/// created meanwhile.
#[derive(Debug, Clone, Args)]
pub(super) struct PruneArgs {
    #[command(flatten)]
    repository: RepositoryArg,

    /// Keep the last N backups
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep_last: u32,

    /// Keep the last backup of each of the last N hours
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep_hourly: u32,

    /// Keep the last backup of each of the last N days
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep_daily: u32,

    /// Keep the last backup of each of the last N weeks
    #[arg(long, value_name = "N", default_value_t = 0)]
    keep_weekly: u32,

    /// Remove backups of this database only; the first digits of its number suffice
    #[arg(long, value_name = "NUMBER")]
    database: Option<String>,

    /// Remove all backups of this history too, which a restore abandoned; the first digits of its number
    /// suffice
    #[arg(long, value_name = "NUMBER")]
    remove_history: Option<String>,

    /// Remove damaged manifests too; their backups are lost
    #[arg(long)]
    remove_damaged: bool,

    /// Remove, instead of printing the list of removals
    #[arg(long)]
    yes: bool,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonPruned<'a> {
    schema: u32,
    is_done: bool,
    removed: Vec<&'a str>,
    kept: Vec<JsonKept<'a>>,
    damaged: &'a [String],
    objects: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct JsonKept<'a> {
    backup: &'a str,
    rules: &'a [&'static str],
}

impl PruneArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let retention = Retention::last(self.keep_last)
            .hourly(self.keep_hourly)
            .daily(self.keep_daily)
            .weekly(self.keep_weekly);
        if retention.keeps_nothing() {
            return Err(usage(
                "no rule keeps any backup; use --keep-last, --keep-daily or another",
            ));
        }
        let repository = self.repository.open()?;
        let mut options = PruneOptions::new(retention);
        if let Some(database) = &self.database {
            options = options.database(database);
        }
        if let Some(history) = &self.remove_history {
            options = options.remove_history(history);
        }
        if self.remove_damaged {
            options = options.remove_damaged();
        }
        let pruned = if self.yes {
            terrane_backup::prune(&*repository, &options)?
        } else {
            terrane_backup::plan_prune(&*repository, &options)?
        };
        warn(&pruned.notices);
        let mut out = output::text_or_json(self.json);
        if self.json {
            write_line(&mut out, &self.json(&pruned))?;
        } else {
            self.print(&mut out, &pruned)?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }

    fn json<'a>(&self, pruned: &'a Pruned) -> JsonPruned<'a> {
        let kept = pruned.kept.iter();
        JsonPruned {
            schema: SCHEMA,
            is_done: self.yes,
            removed: pruned.removed.iter().map(|backup| backup.name.as_str()).collect(),
            kept: kept.map(|(backup, rules)| JsonKept { backup: &backup.name, rules }).collect(),
            damaged: &pruned.damaged,
            objects: pruned.objects,
            bytes: pruned.bytes,
        }
    }

    fn print(&self, out: &mut dyn Write, pruned: &Pruned) -> std::io::Result<()> {
        for (backup, rules) in &pruned.kept {
            let rules = if rules.is_empty() { "other database".into() } else { rules.join(", ") };
            writeln!(out, "keep    {}  {rules}", backup.name)?;
        }
        for backup in &pruned.removed {
            writeln!(out, "remove  {}", backup.name)?;
        }
        for object in &pruned.damaged {
            writeln!(out, "remove  {object}, which is damaged")?;
        }
        let removed = (pruned.removed.len() + pruned.damaged.len()) as u64;
        let (backups, objects) =
            (human::counted(removed, "backup"), human::counted(pruned.objects, "object"));
        let bytes = human::bytes(pruned.bytes);
        if self.yes {
            writeln!(out, "removed {backups} and {objects} ({bytes})")
        } else {
            writeln!(out, "would remove {backups} and {objects} ({bytes}); --yes removes them")
        }
    }
}
