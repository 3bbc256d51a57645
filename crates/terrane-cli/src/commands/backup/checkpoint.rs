//! The checkpoint of a backup: made by this process, or by the process that has the database open.

use std::path::Path;

use terrane::Options;
use terrane_backup::CheckpointError;
use terrane_control::{Client, Interest, Item, Progress, Request, Watch};

use crate::open;
use terrane_lab::host::interrupt::is_cancelled;

/// Makes a checkpoint in an absolute directory. This process opens the database only for the
/// checkpoint. If another process has it open, that process makes the checkpoint when asked through
/// its control socket. If this process may not write the files, it opens them for reading.
pub(super) fn make(db: &Path, options: &Options, dir: &Path) -> Result<(), CheckpointError> {
    let error = match open::existing_with(options, db) {
        Ok(db) => {
            let made = db.checkpoint(dir);
            let closed = db.close();
            return Ok(made.and(closed)?);
        }
        Err(error) => error,
    };
    let is_write_refused = open::is_write_refused(&error);
    // Keep the type of an engine error, which determines the exit code.
    let error = error.downcast::<terrane::Error>()?;
    let is_locked = matches!(error, terrane::Error::Locked { .. });
    if (is_locked || is_write_refused)
        && let Some(mut client) = Client::connect(db)?
    {
        client.ask(&Request::Checkpoint { dir: dir.to_owned() }, &mut Person)?;
        return Ok(());
    }
    if is_write_refused {
        return Ok(open::read_only_with(options, db)?.checkpoint(dir)?);
    }
    Err(error.into())
}

/// The person at the terminal, who can only interrupt.
struct Person;

impl Watch for Person {
    fn item(&mut self, _: Item) {}

    fn progress(&mut self, _: &Progress) {}

    fn interest(&mut self) -> Interest {
        if is_cancelled() { Interest::Cancelled } else { Interest::Waiting }
    }
}
