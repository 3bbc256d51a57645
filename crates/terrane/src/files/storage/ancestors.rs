//! Makes the path to a new directory durable.

use std::io::ErrorKind;
use std::path::Path;

use super::Storage;
use crate::base::error::{Error, Result};

/// Syncs all directories above `dir`, so that a power failure loses no name on the path to `dir`.
///
/// Directories that existed before are synced as well, because an interrupted earlier call may have
/// created them. Directories that cannot be synced are skipped: the process may not read them, or
/// their file system does not sync directories.
pub(crate) fn sync_ancestors(storage: &dyn Storage, dir: &Path) -> Result<()> {
    for ancestor in dir.ancestors().skip(1) {
        // The parent of a relative path of one part.
        let is_working_dir = ancestor.as_os_str().is_empty();
        let ancestor = if is_working_dir { Path::new(".") } else { ancestor };
        match storage.sync_dir(ancestor) {
            Err(error) if !is_refusal(error.kind()) => {
                return Err(Error::io("sync", ancestor, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns true for errors that mean the system cannot sync a directory, and false if a sync was
/// tried and failed.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::Unsupported
            | ErrorKind::InvalidInput
            | ErrorKind::NotFound
    )
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::files::storage::{Crash, Fault, FaultStorage, MemoryStorage, Operation, Survival};

    #[test]
    fn every_directory_of_a_path_becomes_durable() {
        for dir in ["db", "./db", "a/b/db", "a/../db", "/db", "/a/b/db", "."] {
            let (storage, dir) = (MemoryStorage::new(1), Path::new(dir));
            storage.create_dir_all(dir).unwrap();
            sync_ancestors(&storage, dir).unwrap();
            let lost = Crash::Power(Survival { percent: 0, seed: 1 });
            let image = storage.crash_point().image(lost);
            assert!(image.list(dir).is_ok(), "{}", dir.display());
        }
    }

    #[test]
    fn a_failed_sync_is_an_error_and_a_refused_one_is_not() {
        let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
        storage.create_dir_all(Path::new("a/b/db")).unwrap();
        let fails = |error, after| {
            storage.set(Some(Fault {
                operation: Some(Operation::SyncDir),
                path_contains: String::new(),
                after,
                is_permanent: false,
                error,
            }));
            let failed = sync_ancestors(&storage, Path::new("a/b/db")).is_err();
            assert_eq!(storage.fired(), 1);
            failed
        };
        for after in 0..3 {
            assert!(fails(ErrorKind::Other, after));
            assert!(fails(ErrorKind::StorageFull, after));
            assert!(!fails(ErrorKind::PermissionDenied, after));
            assert!(!fails(ErrorKind::InvalidInput, after));
        }
    }
}
