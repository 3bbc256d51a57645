//! `terrane checkpoint`: makes a second database of the same contents.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use crate::exit::Exit;
use crate::open;
use terrane_lab::progress;

/// Make a second database of the same contents in another directory.
///
/// Tables are shared by hard links where the file system can do that, so that it costs little
/// space and time.
#[derive(Debug, Clone, Args)]
pub(crate) struct CheckpointArgs {
    /// The directory of the database
    db: PathBuf,

    /// The directory of the new one, which must not exist or be empty
    dir: PathBuf,
}

impl CheckpointArgs {
    /// Makes the second database.
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
