//! Log segments from which values of memtables are read.
//!
//! A memtable need not copy a large value that is in the log: its entry points to the value in the
//! segment, as an entry of a table points into a value file. The segment has the number of a value
//! file from then on, and a flush that keeps its values where they are gives it that name.
//!
//! 1. A segment of which a memtable has a [`LoggedFile`] is never overwritten, because the log does not
//!    reuse its file. The log may remove its name, so the file stays open.
//! 2. An entry that points into a segment is inserted after the segment is added to the
//!    [`LoggedFiles`] of its tree, and the memtable keeps the [`LoggedFile`] as long as it exists.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::ValueFile;
use crate::base::error::{Error, Result};
use crate::files::table::TableEnvironment;
use crate::files::value_pointer::ValueFileName;

/// A log segment that memtables of one tree refer to.
#[derive(Debug)]
pub(crate) struct LoggedFile {
    name: ValueFileName,
    log_path: Arc<Path>,
    file: Arc<ValueFile>,
}

impl LoggedFile {
    /// Its name as a value file.
    pub(crate) fn name(&self) -> ValueFileName {
        self.name
    }

    /// The path of the segment.
    pub(crate) fn log_path(&self) -> &Path {
        &self.log_path
    }

    fn is_at(&self, log_path: &Path) -> bool {
        *self.log_path == *log_path
    }
}

/// The log segments that memtables of one tree refer to.
#[derive(Debug, Default)]
pub(crate) struct LoggedFiles {
    files: Mutex<Vec<Weak<LoggedFile>>>,
    /// A name that no file has yet.
    spare: Mutex<Option<ValueFileName>>,
    /// True once a segment was added.
    has_any: AtomicBool,
}

impl LoggedFiles {
    fn lock(&self) -> MutexGuard<'_, Vec<Weak<LoggedFile>>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if an entry of a memtable may point into a segment.
    #[inline]
    pub(crate) fn may_be_used(&self) -> bool {
        // Acquire: whoever sees an entry sees that its segment was added before (2).
        self.has_any.load(Ordering::Acquire)
    }

    /// Provides the name of the next segment, unless there is one.
    pub(crate) fn provide_name(&self, next: impl FnOnce() -> ValueFileName) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.is_none() {
            *spare = Some(next());
        }
    }

    /// Returns the segment at `log_path`, and adds it if it is not there: with the name `known`, or the
    /// one that was provided. Returns `None` if there is no name, or the file cannot be opened.
    pub(crate) fn get_or_add(
        &self,
        log_path: &Arc<Path>,
        known: Option<ValueFileName>,
        environment: &Arc<TableEnvironment>,
    ) -> Option<Arc<LoggedFile>> {
        let mut files = self.lock();
        if let Some(file) = files.iter().filter_map(Weak::upgrade).find(|one| one.is_at(log_path)) {
            return Some(file);
        }
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let name = known.or(*spare)?;
        let file = ValueFile::of_segment(name, log_path, environment).ok()?;
        if known.is_none() {
            *spare = None;
        }
        let logged = Arc::new(LoggedFile { name, log_path: Arc::clone(log_path), file });
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&logged));
        self.has_any.store(true, Ordering::Release);
        Some(logged)
    }

    /// Returns the name of the segment at `log_path`, if memtables refer to it.
    pub(crate) fn name_of(&self, log_path: &Path) -> Option<ValueFileName> {
        let files = self.lock();
        let mut files = files.iter().filter_map(Weak::upgrade);
        files.find(|file| file.is_at(log_path)).map(|file| file.name)
    }

    /// Returns the segment with the number of a value file.
    pub(super) fn find(&self, number: u64) -> Option<Arc<ValueFile>> {
        let files = self.lock();
        let mut files = files.iter().filter_map(Weak::upgrade);
        files.find(|file| file.name.number == number).map(|file| Arc::clone(&file.file))
    }
}

impl ValueFile {
    /// Opens a log segment that memtables refer to.
    fn of_segment(
        name: ValueFileName,
        log_path: &Path,
        environment: &Arc<TableEnvironment>,
    ) -> Result<Arc<Self>> {
        let len = environment.storage.len(log_path);
        let len = len.map_err(|error| Error::io("check", log_path, error))?;
        let file = Self::kept_open(name, len, log_path, environment);
        file.open()?;
        Ok(file)
    }
}
