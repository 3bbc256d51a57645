//! A checkpoint of a database that is open for reading.
//!
//! It has the contents that the opening shows: the trees of the manifest, and the part of the log that was
//! replayed. Nothing but the copy is written, so the source may be on a read-only file system, such as a
//! mounted snapshot of a volume.
//!
//! A writer may have the database open, and may have replaced files since the opening. The names of tables
//! and value files are never used again, so a file that still has its name is the one that the opening
//! read. The file of a segment may be reused, so the copy of the log is replayed, and must end where the
//! log ended.

use super::target::Target;
use super::{Cut, write_manifest};
use crate::base::cancel::Cancel;
use crate::base::error::{Error, Result};
use crate::base::types::Lsn;
use crate::engine::life::assembly::{Engine, OpenedFiles};
use crate::files::shared_read::{READERS, may_be_change};
use crate::files::storage::HeldDir;
use crate::files::wal::{LogCopy, Recovery, ReplayedFile};

impl Engine {
    /// Copies the files of an opening for reading.
    pub(super) fn copy_opened(
        &self,
        files: &OpenedFiles,
        target: &Target,
        cancel: Option<&Cancel>,
    ) -> Result<()> {
        let dir = &*self.context.dir;
        // Keeps a writer from removing files. Without the lock, the copy fails if one is gone.
        let _lock = self.context.storage.lock_shared(&dir.join(READERS));
        let segment = |file: &ReplayedFile| LogCopy { path: file.path.clone(), bytes: file.bytes };
        let cut = Cut {
            state: files.found.state.clone(),
            version: files.found.version,
            _versions: Vec::new(),
            log: files.replayed.files.iter().map(segment).collect(),
        };
        let copied = self.copy(&cut, target, cancel);
        copied.and_then(|()| self.check_copied_log(files, target)).map_err(|error| {
            if may_be_change(&error) {
                Error::Changed { path: dir.into(), tries: 1 }
            } else {
                error
            }
        })?;
        write_manifest(&cut, target)
    }

    fn check_copied_log(&self, files: &OpenedFiles, target: &Target) -> Result<()> {
        let HeldDir { path, storage } = target.dir();
        let (state, boot) = (&files.found.state, self.context.kept_boot);
        let (from, required) = (state.log_needed_from(Lsn(0)), state.required_segment);
        let copy = Recovery::open(&**storage, path, state.database)?;
        let replayed = copy.replay(&**storage, boot, path, from, required, |_| Ok(()))?;
        let (end, expected) = (replayed.end, files.replayed.end);
        if end == expected {
            return Ok(());
        }
        let detail = format!("its copy ends at position {end}, but the log ended at {expected}");
        Err(replayed.ends_too_early(&self.context.log_dir, detail))
    }
}
