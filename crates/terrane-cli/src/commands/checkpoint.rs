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
    /// Makes the copy.
    pub(crate) fn run(&self) -> Result<Exit> {
        let db = open::existing(&self.db)?;
        let spinner = progress::spinner("copying");
        let made = db.checkpoint(&self.dir);
        spinner.finish_and_clear();
        let closed = db.close();
        made?;
        closed?;
        let _ = writeln!(io::stderr(), "made {}", self.dir.display());
        Ok(Exit::Done)
    }
}
