//! Opens databases and keyspaces for commands.

use std::path::Path;

use anyhow::{Result, anyhow};
use terrane::{Db, ErrorKind, Keyspace, KeyspaceOptions, OpenMode, Options, inspect};

/// The keyspace that every database has.
pub(crate) const DEFAULT_KEYSPACE: &str = "default";

/// Whether there is a database in a directory, whole or damaged.
pub(crate) fn is_there(dir: &Path) -> bool {
    match inspect::manifest(dir) {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::Invalid | ErrorKind::Io),
    }
}

/// Opens a database that is there, for writing.
pub(crate) fn existing(dir: &Path) -> Result<Db> {
    Ok(Options::new().open_mode(OpenMode::MustExist).open(dir)?)
}

/// A keyspace that is there.
pub(crate) fn keyspace(db: &Db, name: &str) -> Result<Keyspace> {
    let names = db.keyspaces();
    if !names.iter().any(|known| known == name) {
        let known = names.join(", ");
        let path = db.path().display();
        return Err(anyhow!("{path} has no keyspace '{name}'; there are: {known}"));
    }
    Ok(db.keyspace(name, KeyspaceOptions::new())?)
}

/// The names of the keyspaces but for one.
pub(crate) fn other_keyspaces(db: &Db, name: &str) -> Vec<String> {
    db.keyspaces().into_iter().filter(|other| other != name).collect()
}
