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
//! 3. A flush gives a segment its name at most once, because a removal of an earlier link may be pending.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;

use super::ValueFile;
use crate::files::value_pointer::ValueFileName;

/// A log segment that memtables of one tree refer to.
#[derive(Debug)]
pub(crate) struct LoggedFile {
    name: ValueFileName,
    /// Whether a flush has given the segment the name.
    is_named: AtomicBool,
    /// Whether a value could not be read, so that the values must stay where they are.
    is_unreadable: AtomicBool,
    log_path: Arc<Path>,
    file: Arc<ValueFile>,
}

impl LoggedFile {
    /// A segment at `log_path`, which a flush `is_named` or may name.
    pub(crate) fn new(
        name: ValueFileName,
        is_named: bool,
        log_path: &Arc<Path>,
        file: Arc<ValueFile>,
    ) -> Arc<Self> {
        let log_path = Arc::clone(log_path);
        let (is_named, is_unreadable) = (AtomicBool::new(is_named), AtomicBool::new(false));
        Arc::new(Self { name, is_named, is_unreadable, log_path, file })
    }

    /// Its name as a value file.
    pub(crate) fn name(&self) -> ValueFileName {
        self.name
    }

    /// The path of the segment.
    pub(crate) fn log_path(&self) -> &Path {
        &self.log_path
    }
}

/// The log segments that memtables of one tree refer to.
#[derive(Debug, Default)]
pub(crate) struct LoggedFiles {
    files: ArcSwap<Vec<Weak<LoggedFile>>>,
    /// Held while a segment is added.
    adding: Mutex<()>,
    /// True once a segment was added.
    has_any: AtomicBool,
    /// The number of segments with a value that a flush could not read.
    unreadable: AtomicUsize,
}

impl LoggedFiles {
    /// Returns true if an entry of a memtable may point into a segment.
    #[inline]
    pub(crate) fn may_be_used(&self) -> bool {
        // Acquire: whoever sees an entry also sees its segment here (2). Most trees never have any.
        self.has_any.load(Ordering::Acquire)
            && self.files.load().iter().any(|file| file.strong_count() > 0)
    }

    fn find_by(&self, is_it: impl Fn(&LoggedFile) -> bool) -> Option<Arc<LoggedFile>> {
        if !self.has_any.load(Ordering::Acquire) {
            return None;
        }
        self.files.load().iter().filter_map(Weak::upgrade).find(|file| is_it(file))
    }

    /// Returns the segment at `log_path`. If there is none yet, adds the one that `open` returns.
    pub(crate) fn get_or_add(
        &self,
        log_path: &Path,
        open: impl FnOnce() -> Option<Arc<LoggedFile>>,
    ) -> Option<Arc<LoggedFile>> {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = self.find_by(|file| file.log_path() == log_path) {
            return Some(file);
        }
        let added = open()?;
        let mut files: Vec<_> = (**self.files.load()).clone();
        files.retain(|file| file.strong_count() > 0);
        files.push(Arc::downgrade(&added));
        self.files.store(Arc::new(files));
        self.has_any.store(true, Ordering::Release);
        Some(added)
    }

    /// Returns the name of the segment at `log_path`, if memtables refer to it, for a flush that gives the
    /// segment this name. Returns it once (3).
    pub(crate) fn take_name(&self, log_path: &Path) -> Option<ValueFileName> {
        let file = self.find_by(|file| file.log_path() == log_path)?;
        // Relaxed: a tree has one flush at a time.
        (!file.is_named.swap(true, Ordering::Relaxed)).then_some(file.name)
    }

    /// Notes that a flush could not read a value of the segment with this number.
    pub(crate) fn note_unreadable(&self, number: u64) {
        // Relaxed, here and below: a tree has one flush at a time.
        let file = self.find_by(|file| file.name.number == number);
        if file.is_some_and(|file| !file.is_unreadable.swap(true, Ordering::Relaxed)) {
            self.unreadable.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns how many segments had a value that a flush could not read.
    pub(crate) fn unreadable(&self) -> usize {
        self.unreadable.load(Ordering::Relaxed)
    }

    /// Returns true if a flush could not read a value of the segment at `log_path`.
    pub(crate) fn is_unreadable(&self, log_path: &Path) -> bool {
        let file = self.find_by(|file| file.log_path() == log_path);
        file.is_some_and(|file| file.is_unreadable.load(Ordering::Relaxed))
    }

    /// Returns the segment with the number of a value file.
    pub(super) fn find(&self, number: u64) -> Option<Arc<ValueFile>> {
        let file = self.find_by(|file| file.name.number == number)?;
        Some(Arc::clone(&file.file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::buffer::BufferPool;
    use crate::files::storage::{Access, MemoryStorage, Storage};
    use crate::files::table::TableEnvironment;

    #[test]
    fn segments_are_listed_while_memtables_have_them_and_named_once() {
        let storage = Arc::new(MemoryStorage::new(1));
        let path: Arc<Path> = Path::new("1.log").into();
        storage.create_segment(&path, 4096).unwrap();
        let reader = storage.open(&path, Access::Buffered).unwrap();
        let environment = TableEnvironment::alone(storage, Access::Buffered, BufferPool::new(0));
        let environment = Arc::new(environment);
        let open = |number: u64| {
            let name = ValueFileName { number, writer: 7 };
            let reader = Arc::clone(&reader);
            let file = ValueFile::of_segment(name, 4096, &path, reader, &environment);
            Some(LoggedFile::new(name, false, &path, file))
        };
        let files = LoggedFiles::default();
        assert!(!files.may_be_used() && files.take_name(&path).is_none());
        let first = files.get_or_add(&path, || open(3)).unwrap();
        let again = files.get_or_add(&path, || open(4)).unwrap();
        assert_eq!((first.name().number, again.name().number), (3, 3));
        assert!(files.may_be_used() && files.find(3).is_some() && files.find(4).is_none());
        assert_eq!(files.take_name(&path).map(|name| name.number), Some(3));
        assert_eq!(files.take_name(&path), None, "an earlier link may not be removed yet");
        drop((first, again));
        assert!(!files.may_be_used() && files.find(3).is_none());
        let other = files.get_or_add(&path, || open(5)).unwrap();
        assert_eq!((other.name().number, other.log_path()), (5, &*path));
    }
}
