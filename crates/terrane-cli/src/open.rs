//! Opens databases and keyspaces for commands.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Result, anyhow};
use terrane::{
    Db, Error, ErrorKind, Event, Keyspace, KeyspaceOptions, LoggedEvent, OpenMode, Options, inspect,
};

/// The default keyspace, which every database has.
pub(crate) const DEFAULT_KEYSPACE: &str = "default";

/// Returns true if a directory holds a database, intact or damaged.
pub(crate) fn is_database(dir: &Path) -> bool {
    match inspect::manifest(dir) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Io),
    }
}

/// Returns options that open a database of any application, although its functions are unknown.
pub(crate) fn options() -> Options {
    Options::new().unknown_functions().on_event(warn_of_limits)
}

/// Warns if the memory budget exceeds what the operating system allows the process.
fn warn_of_limits(event: &LoggedEvent) {
    if let Event::MemoryBudgetTooLarge { .. } = event.event {
        let _ = writeln!(io::stderr(), "warning: {}", event.event);
    }
}

/// Returns [`options`], for a snapshot of a volume in use if `after_power_loss`.
pub(crate) fn options_of(after_power_loss: bool) -> Options {
    if after_power_loss { options().after_power_loss() } else { options() }
}

/// Opens an existing database for writing.
pub(crate) fn existing(dir: &Path) -> Result<Db> {
    existing_with(&options(), dir)
}

/// Opens an existing database for writing, with options.
pub(crate) fn existing_with(options: &Options, dir: &Path) -> Result<Db> {
    Ok(options.clone().open_mode(OpenMode::MustExist).open(dir)?)
}

/// Returns whether an error says that this process may not write the files of a database, which it may be
/// able to read.
pub(crate) fn is_write_refused(error: &anyhow::Error) -> bool {
    let Some(Error::Io(failure)) = error.downcast_ref() else { return false };
    matches!(
        failure.source.kind(),
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
    )
}

/// Opens an existing database for reading only.
pub(crate) fn read_only(dir: &Path) -> Result<Db> {
    read_only_with(&options(), dir)
}

/// Opens an existing database for reading only, with options.
pub(crate) fn read_only_with(options: &Options, dir: &Path) -> Result<Db> {
    Ok(options.clone().open_mode(OpenMode::MustExist).open_read_only(dir)?)
}

/// Opens an existing keyspace.
pub(crate) fn keyspace(db: &Db, name: &str) -> Result<Keyspace> {
    let names = db.keyspaces();
    if !names.iter().any(|known| known == name) {
        let known = names.join(", ");
        let path = db.path().display();
        return Err(anyhow!("no keyspace '{name}' in {path}; existing keyspaces: {known}"));
    }
    Ok(db.keyspace(name, KeyspaceOptions::new())?)
}

/// Returns the names of all keyspaces except the given keyspace.
pub(crate) fn other_keyspaces(db: &Db, name: &str) -> Vec<String> {
    db.keyspaces().into_iter().filter(|other| other != name).collect()
}
