//! `terrane checkpoint`: copies a database.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::exit::Exit;
use crate::open;
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
}

impl CheckpointArgs {
    /// Copies the database.
    pub(crate) fn run(&self) -> Result<Exit> {
        let db = open::existing(&self.db)?;
        let spinner = progress::spinner("copying");
        let copied = db.checkpoint(&self.dir);
        spinner.finish_and_clear();
        let closed = db.close();
        copied?;
        closed?;
        let _ = writeln!(io::stderr(), "wrote checkpoint {}", self.dir.display());
        Ok(Exit::Done)
    }
}
