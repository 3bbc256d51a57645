//! `terrane checkpoint`: copies a database.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use serde::Serialize;
use terrane_control::{Reply, Request};

use crate::database::{copy, unexpected};
use crate::exit::Exit;
use crate::{open, output};
use terrane_lab::output::json::{SCHEMA, write_line};

/// Copy a database to another directory
///
/// The copy shares tables by hard links if the file system supports them, so it takes little space
/// and time. If another process has the database open, that process makes the copy. A database that
/// cannot be written, such as one on a mounted snapshot of a volume, is opened for reading. Ctrl-C
/// cancels the copy.
#[derive(Debug, Clone, Args)]
pub(crate) struct CheckpointArgs {
    /// The directory of the database
    db: PathBuf,

    /// The directory of the copy, which must be empty or not exist
    dir: PathBuf,

    /// Copy from a snapshot of a volume that was taken while the database was in use
    #[arg(long)]
    after_power_loss: bool,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonCheckpoint {
    schema: u32,
    path: String,
    seconds: f64,
}

impl CheckpointArgs {
    /// Copies the database.
    pub(crate) fn run(&self) -> Result<Exit> {
        let dir = std::path::absolute(&self.dir)
            .with_context(|| format!("cannot find {}", self.dir.display()))?;
        let options = open::options_of(self.after_power_loss);
        let reply = copy(&options, &self.db, &Request::Checkpoint { dir })?;
        let Reply::Checkpointed { seconds, .. } = reply else { return Err(unexpected(&reply)) };
        let path = self.dir.display();
        if self.json {
            let copied = JsonCheckpoint { schema: SCHEMA, path: path.to_string(), seconds };
            write_line(&mut output::stdout(), &copied)?;
        } else {
            let _ = writeln!(io::stderr(), "wrote checkpoint {path}");
        }
        Ok(Exit::Done)
    }
}
