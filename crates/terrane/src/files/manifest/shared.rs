//! Loads a manifest that a writer may be changing.

use std::path::Path;
use std::time::Duration;

use super::file::LoadedManifest;
use super::load::load;
use crate::base::error::Result;
use crate::files::shared_read::may_be_change;
use crate::files::storage::Storage;

/// How often the manifest is read again.
const REREADS: u32 = 5;

const PAUSE: Duration = Duration::from_millis(1);

/// Reads the manifest as [`load`] does, and reads it again if a writer may have been replacing it or
/// appending to it: if the file that `CURRENT` names is gone, or only one of two copies of an edit was
/// complete. The result excludes an incomplete edit, because it is not durable yet.
pub(crate) fn load_shared(storage: &dyn Storage, dir: &Path) -> Result<LoadedManifest> {
    for _ in 0..REREADS {
        match load(storage, dir) {
            Ok(loaded) if loaded.healed == 0 => return Ok(loaded),
            Err(error) if !may_be_change(&error) => return Err(error),
            _ => std::thread::sleep(PAUSE),
        }
    }
    load(storage, dir)
}
