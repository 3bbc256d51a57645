//! Refuses to create a database among files that are not its own.
//!
//! A database in a directory of documents is usually a mistake in a path. No document would be
//! lost, because the engine removes only files with names of its own, but a user who removes the
//! database would remove the documents too.

use std::io::ErrorKind;
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::engine::catalog::LOCK;
use crate::engine::context::RESERVE_FILES;
use crate::files::log_directory;
use crate::files::manifest::{CHECKPOINT, CURRENT, CURRENT_NEW, manifest_file_number};
use crate::files::shared_read::READERS;
use crate::files::storage::Storage;
use crate::files::table::TableFileId;
use crate::files::value_pointer::ValueFileName;
use crate::files::wal::segment_file_number;

/// The file in which the crate `terrane-backup` states the history of a restored database.
const BACKUP_HISTORY: &str = "HISTORY";

/// The socket that the crate `terrane-control` serves, and its name while it is incomplete.
const CONTROL_SOCKETS: [&str; 2] = ["control.sock", "control.sock.new"];

/// Fails if the directory has files, none of which belongs to a database. Ignores hidden files and
/// directories.
pub(super) fn check(storage: &dyn Storage, dir: &Path) -> Result<()> {
    if storage.len(&dir.join(CURRENT)).is_ok() {
        return Ok(());
    }
    let names = match storage.list(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        listed => listed.map_err(|error| Error::io("list", dir, error))?,
    };
    // The database's own files indicate an interrupted creation, or a database that lost files.
    let has_own = names.iter().any(|name| is_own(name));
    match names.iter().find(|name| !name.starts_with('.')) {
        Some(name) if !has_own => {
            Err(Error::OtherFiles { path: dir.into(), name: name.as_str().into() })
        }
        _ => Ok(()),
    }
}

/// Returns true if a database, its log or its checkpoint has files of this name.
pub(super) fn is_own(name: &str) -> bool {
    [LOCK, READERS, CURRENT, CURRENT_NEW, CHECKPOINT].contains(&name)
        || RESERVE_FILES.contains(&name)
        || CONTROL_SOCKETS.contains(&name)
        || name == BACKUP_HISTORY
        || log_directory::is_pointer(name)
        || manifest_file_number(name).is_some()
        || segment_file_number(name).is_some()
        || TableFileId::of_file_name(name).is_some()
        || ValueFileName::of_file_name(name).is_some()
}
