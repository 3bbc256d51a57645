//! `terrane backup unlock`.

use std::io::Write;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_backup::{RepositoryLock, Unlock};

use super::common::RepositoryArg;
use crate::exit::Exit;
use crate::output;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Remove the locks of processes that no longer exist
///
/// Every operation removes stale locks itself, half an hour after their process last renewed them.
/// A lock remains if the clock of its machine was ahead, or if it cannot be read: --all removes it.
/// Use --all only if no process uses the repository; a process that does stops within a minute.
#[derive(Debug, Clone, Args)]
pub(super) struct UnlockArgs {
    #[command(flatten)]
    repository: RepositoryArg,

    /// Remove all locks, even those of processes that may be running
    #[arg(long)]
    all: bool,

    /// Print a JSON object for each lock
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonLock<'a> {
    schema: u32,
    lock: &'a str,
    holder: &'a str,
    is_removed: bool,
}

impl UnlockArgs {
    pub(super) fn run(&self) -> Result<Exit> {
        let repository = self.repository.open()?;
        let which = if self.all { Unlock::All } else { Unlock::Stale };
        let locks = terrane_backup::unlock(&*repository, which)?;
        let mut out = output::text_or_json(self.json);
        for RepositoryLock { object, holder, is_removed, .. } in &locks {
            let is_removed = *is_removed;
            if self.json {
                let json = JsonLock { schema: SCHEMA, lock: object, holder, is_removed };
                write_line(&mut out, &json)?;
            } else {
                let what = if is_removed { "removed" } else { "kept   " };
                writeln!(out, "{what} {object} of {holder}")?;
            }
        }
        if locks.is_empty() && !self.json {
            writeln!(out, "no locks in {}", repository.location())?;
        }
        out.flush()?;
        Ok(Exit::Done)
    }
}
