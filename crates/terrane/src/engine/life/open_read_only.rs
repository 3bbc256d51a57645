//! Opens a database for reading, even while a writer changes it.
//!
//! The opening shows the database at one moment after the call began: the trees of the manifest,
//! with a prefix of the log that contains every earlier write to them. A keyspace that the writer
//! creates or drops meanwhile may appear in its earlier state.

use std::path::Path;

use super::assembly::{Engine, Opened, OpenedFiles, Places};
use super::log_home::hold_log_dir;
use super::open::{check_mode, hold, is_missing, missing, settings};
use crate::base::error::{Error, Result};
use crate::files::consistency;
use crate::files::log_directory;
use crate::files::manifest;
use crate::files::shared_read::read_shared;
use crate::files::storage::HeldDir;
use crate::files::wal::LogNotes;
use crate::options::{OpenMode, Options};

/// Opens a database for reading. Reads see the state at the time of opening.
pub(crate) fn open_read_only(options: &Options, dir: &Path) -> Result<(Engine, Opened)> {
    let held = hold(&options.components.storage, dir)?;
    read_shared(&*held.storage, &held.path, || try_open(options, &held))
}

/// Opens the parts in the order that [`crate::files::shared_read`] requires.
fn try_open(options: &Options, held: &HeldDir) -> Result<(Engine, Opened)> {
    let dir = &*held.path;
    let log_dir = log_directory::find(&*held.storage, dir)?;
    let storage = &hold_log_dir(&held.storage, &log_dir)?;
    let places = Places { storage, dir, log_dir: &log_dir };
    let storage = &**storage;
    let notes = LogNotes::read(storage, &log_dir).map_err(|error| match error {
        Error::Io(failure) if is_missing(&failure, dir) => missing(dir),
        other => other,
    })?;
    let loaded = manifest::load_shared(storage, dir)?;
    check_mode(OpenMode::MustExist, loaded.edits.is_empty(), dir)?;
    let found = manifest::replay(&loaded, dir)?;
    consistency::check_manifest(&notes, &found, dir)?;
    consistency::check_files(storage, dir, &found.state)?;
    let settings = settings(options, dir, &found.state, false)?;
    let mut opened = Opened { healed: found.healed, ..Opened::default() };
    let mut parts = Engine::assemble(options, settings, places, &found.state, None, None)?;
    // Opens the tables now, because a writer may remove their files once this opening is done.
    for tree in parts.catalog.trees().values() {
        let version = &tree.state().version;
        for table in version.tables().values() {
            table.properties()?;
        }
        for file in version.values().files().values() {
            file.open()?;
        }
    }
    let replayed = parts.recover_read_only(&found, &mut opened)?;
    consistency::check_ingests(storage, dir, &found.state, parts.pipeline.visible())?;
    parts.catalog.resize_cache();
    parts.context.health.make_read_only();
    parts.opened_files = Some(OpenedFiles { found, replayed });
    Ok((parts, opened))
}
