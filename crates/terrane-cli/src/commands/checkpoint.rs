//! `terrane checkpoint`: copies a database.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::Args;
use serde::Serialize;

use crate::exit::Exit;
use crate::open;
use crate::output;
use terrane_lab::json::{SCHEMA, write_line};
use terrane_lab::progress;

/// Copy a database to another directory
///
/// The copy shares tables by hard links if the file system supports them, so it takes little space
/// and time.
#[derive(Debug, Clone, Args)]
pub(crate) struct CheckpointArgs {
    /// The directory of the database
    db: PathBuf,

    /// The directory of the copy, which must be empty or not exist
    dir: PathBuf,

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
        let db = open::existing(&self.db)?;
        let begun = Instant::now();
        let spinner = progress::spinner("copying");
        let copied = db.checkpoint(&self.dir);
        spinner.finish_and_clear();
        let closed = db.close();
        copied?;
        closed?;
        let path = self.dir.display();
        if self.json {
            let seconds = begun.elapsed().as_secs_f64();
            let copied = JsonCheckpoint { schema: SCHEMA, path: path.to_string(), seconds };
            write_line(&mut output::stdout(), &copied)?;
        } else {
            let _ = writeln!(io::stderr(), "wrote checkpoint {path}");
        }
        Ok(Exit::Done)
    }
}
