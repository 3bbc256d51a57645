//! The table and value files that are open.
//!
//! A database may have more tables than its process may open files. Only a limited number of files
//! stays open, and a file that was closed is opened again by name when it is next read.
//!
//! 1. A file in use stays open, because its reader holds a reference. Each thread, including those of
//!    [`crate::files::io_threads`], may thus briefly have one more file open than the limit, and each ring of
//!    [`crate::files::io_rings`] as many as it reads blocks of different tables. Jobs that read
//!    whole tables have files of their own ([`super::sequential_file`]): up to an eighth more.
//! 2. A file can be opened again as long as its [`Table`](super::Table) exists, because a writer
//!    removes the file only after the last user has dropped an obsolete table. In a read-only opening
//!    another process removes files, so its files stay open, without a limit.
//! 3. A file is closed only if it was not used since the clock hand last passed it (CLOCK, an
//!    approximation of LRU).
//! 4. A table is in the list of open files if and only if it has a reader; both change under the
//!    lock.
//!
//! A read of an open file takes no lock. With one lock for all tables, four threads that read 745
//! tables past the block cache were 30 % slower.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwapOption;

use crate::base::fork::Owner;
use crate::files::storage::{RandomReader, is_out_of_files};

/// An open file, shared by the threads that read it.
type Reader = Arc<dyn RandomReader>;

/// The open files of all tables.
#[derive(Debug)]
pub(crate) struct OpenFiles {
    /// The process that opened the database.
    owner: Owner,
    /// The maximum number of files that stay open; `None` for no limit.
    max: Option<usize>,
    state: Mutex<State>,
    /// The number of files of jobs.
    sequential: AtomicUsize,
}

/// The most files of jobs that are open at once.
const SEQUENTIAL_MAX: usize = 64;

/// The permission to open a file of a job, which is returned when this value is dropped.
#[derive(Debug)]
pub(super) struct SequentialPermit(Arc<OpenFiles>);

impl Drop for SequentialPermit {
    fn drop(&mut self) {
        self.0.sequential.fetch_sub(1, Ordering::Relaxed);
    }
}

#[derive(Debug, Default)]
struct State {
    /// The tables whose files are open.
    slots: Vec<Arc<Slot>>,
    /// The position in `slots` of the next file that may be closed.
    hand: usize,
    /// The number of files closed to make room for other files.
    closed: u64,
}

/// The file of a table, if it is open.
#[derive(Default)]
struct Slot {
    reader: ArcSwapOption<Reader>,
    /// True if the file was used since the hand last passed it.
    was_used: AtomicBool,
    /// The position in `State::slots` while the file is open.
    place: AtomicUsize,
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Slot({:?})", self.reader.load())
    }
}

/// The file of one table, or of values, which is closed when this value is dropped.
pub(crate) struct TableReader {
    files: Arc<OpenFiles>,
    slot: Arc<Slot>,
}

/// How many files are open, and how many were closed to make room for others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenFileCounts {
    pub(crate) open: u64,
    pub(crate) closed: u64,
}

impl TableReader {
    /// A file that is not open yet.
    pub(crate) fn new(files: &Arc<OpenFiles>) -> Self {
        Self { files: Arc::clone(files), slot: Arc::default() }
    }

    /// Calls `read` with the file, which is opened first unless it is open.
    ///
    /// # Errors
    /// `open` fails. If the process has too many open files, other files are closed and `open` is
    /// repeated first.
    pub(crate) fn with<T>(
        &self,
        open: impl Fn() -> io::Result<Reader>,
        read: impl FnOnce(&Reader) -> T,
    ) -> io::Result<T> {
        let reader = self.slot.reader.load();
        if let Some(reader) = &*reader {
            self.slot.mark_used();
            return Ok(read(reader));
        }
        Ok(read(&*self.files.open(&self.slot, open)?))
    }
}

impl Drop for TableReader {
    fn drop(&mut self) {
        if !self.files.owner.is_this_process() {
            // The lock may be held for ever.
            return;
        }
        let closed = self.files.lock().remove(&self.slot);
        drop(closed);
    }
}

impl Slot {
    fn mark_used(&self) {
        // Relaxed: the mark is a hint. It is stored only if it changes, so that threads that read the
        // same table share the cache line.
        if !self.was_used.load(Ordering::Relaxed) {
            self.was_used.store(true, Ordering::Relaxed);
        }
    }
}

impl OpenFiles {
    /// Keeps at most `max` files open, or all of them.
    pub(crate) fn new(max: Option<usize>) -> Arc<Self> {
        let (owner, state) = (Owner::this_process(), Mutex::default());
        Arc::new(Self { owner, max, state, sequential: AtomicUsize::new(0) })
    }

    /// Permits a job to open a file of its own, unless many are open: up to an eighth of the limit.
    pub(super) fn permit_sequential(self: &Arc<Self>) -> Option<SequentialPermit> {
        let most = self.max.map_or(SEQUENTIAL_MAX, |max| (max / 8).clamp(1, SEQUENTIAL_MAX));
        // Relaxed: no other memory access depends on the number.
        let open = self.sequential.fetch_add(1, Ordering::Relaxed);
        let permit = SequentialPermit(Arc::clone(self));
        (open < most).then_some(permit)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a file. If two threads open the same file at once, both get the same one.
    #[cold]
    fn open(
        &self,
        slot: &Arc<Slot>,
        open: impl Fn() -> io::Result<Reader>,
    ) -> io::Result<Arc<Reader>> {
        let reader = loop {
            match open() {
                Ok(reader) => break Arc::new(reader),
                Err(error) if !is_out_of_files(&error) => return Err(error),
                Err(error) => {
                    // Closes half of the files, because the rest of the program needs descriptors
                    // too.
                    let open = self.lock().slots.len();
                    let closed = self.max.map(|_| self.lock().close_down_to(open / 2));
                    if closed.is_none_or(|closed| closed.is_empty()) {
                        return Err(self.explain(&error));
                    }
                }
            }
        };
        let mut state = self.lock();
        let reader = state.insert(slot, reader);
        let closed = self.max.map(|max| state.close_down_to(max));
        // The files are closed after the lock is released.
        drop(state);
        drop(closed);
        Ok(reader)
    }

    pub(crate) fn counts(&self) -> OpenFileCounts {
        let state = self.lock();
        OpenFileCounts { open: state.slots.len() as u64, closed: state.closed }
    }

    /// Adds advice on getting more files to an error of the operating system.
    fn explain(&self, error: &io::Error) -> io::Error {
        let text = match self.max {
            Some(max) => format!("or lower the option `open_files`, which allows {max} here"),
            None => "because a read-only opening keeps every table open".to_owned(),
        };
        let text = format!("{error}; raise the limit of the process (`ulimit -n`), {text}");
        io::Error::new(error.kind(), text)
    }
}

impl State {
    /// Adds a file and returns it, or returns the reader that another thread has just added.
    fn insert(&mut self, slot: &Arc<Slot>, reader: Arc<Reader>) -> Arc<Reader> {
        slot.mark_used();
        if let Some(reader) = slot.reader.load_full() {
            return reader;
        }
        slot.reader.store(Some(Arc::clone(&reader)));
        // Relaxed, as everywhere: the lock protects the place.
        slot.place.store(self.slots.len(), Ordering::Relaxed);
        self.slots.push(Arc::clone(slot));
        reader
    }

    fn remove(&mut self, slot: &Slot) -> Option<Arc<Reader>> {
        let reader = slot.reader.swap(None)?;
        let place = slot.place.load(Ordering::Relaxed);
        self.slots.swap_remove(place);
        if let Some(moved) = self.slots.get(place) {
            moved.place.store(place, Ordering::Relaxed);
        }
        Some(reader)
    }

    /// Removes files until at most `max` are left, and returns them.
    fn close_down_to(&mut self, max: usize) -> Vec<Arc<Reader>> {
        let mut closed = Vec::new();
        while self.slots.len() > max {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let slot = Arc::clone(&self.slots[self.hand]);
            if slot.was_used.swap(false, Ordering::Relaxed) {
                self.hand += 1;
            } else {
                // The last file takes this place, and the hand stays.
                closed.extend(self.remove(&slot));
            }
        }
        self.closed += closed.len() as u64;
        closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[derive(Debug)]
    struct Numbered(u64);

    impl RandomReader for Numbered {
        fn read_at(&self, offset: u64, _: &mut [u8]) -> io::Result<()> {
            assert_eq!(offset, self.0);
            Ok(())
        }
    }

    /// Returns this many tables.
    fn tables(files: &Arc<OpenFiles>, count: usize) -> Vec<TableReader> {
        (0..count).map(|_| TableReader::new(files)).collect()
    }

    fn read(tables: &[TableReader], number: usize) -> io::Result<()> {
        let open = || -> io::Result<Reader> { Ok(Arc::new(Numbered(number as u64))) };
        tables[number].with(open, |reader| reader.read_at(number as u64, &mut []))?
    }

    fn is_open(table: &TableReader) -> bool {
        table.slot.reader.load().is_some()
    }

    #[test]
    fn few_files_stay_open_and_those_in_use_longest() {
        let files = OpenFiles::new(Some(10));
        let mut tables = tables(&files, 1105);
        for round in 0..1000 {
            read(&tables, round % 5).unwrap();
            read(&tables, 5 + round).unwrap();
            assert!(files.counts().open <= 10);
            let open = tables.iter().filter(|table| is_open(table)).count();
            assert_eq!(files.counts().open, open as u64);
        }
        assert!(tables[..5].iter().all(is_open), "they were in constant use");
        let closed = files.counts().closed;
        assert!((995..1010).contains(&closed), "{closed}");
        tables.drain(..5);
        assert_eq!(files.counts(), OpenFileCounts { open: 5, closed });
        (1000..1100).for_each(|number| read(&tables, number).unwrap());
        assert_eq!(files.counts().open, 10);
        drop(tables);
        assert_eq!(files.counts().open, 0);
    }

    #[test]
    fn two_threads_that_open_the_same_file_share_it() {
        let files = OpenFiles::new(Some(2));
        let table = TableReader::new(&files);
        let first: Reader = Arc::new(Numbered(1));
        let open = || {
            // Meanwhile another thread opens it.
            table.with(|| Ok(Arc::clone(&first)), |_| ())?;
            Ok(Arc::new(Numbered(2)) as Reader)
        };
        table.with(open, |reader| reader.read_at(1, &mut [])).unwrap().unwrap();
        assert_eq!(files.counts().open, 1);
    }

    #[test]
    fn a_file_that_is_closed_while_it_is_read_stays_open_until_then() {
        let files = OpenFiles::new(Some(1));
        let tables = tables(&files, 2);
        let first: Reader = Arc::new(Numbered(7));
        let holders = || Arc::strong_count(&first);
        tables[0]
            .with(
                || Ok(Arc::clone(&first)),
                |reader| {
                    read(&tables, 1).unwrap();
                    assert!(!is_open(&tables[0]) && holders() == 2);
                    reader.read_at(7, &mut []).unwrap();
                },
            )
            .unwrap();
        assert_eq!(holders(), 1);
    }

    /// The process had no descriptor left, and every read failed.
    #[test]
    fn files_are_closed_if_the_process_has_no_descriptor_left() {
        let no_descriptor = || io::Error::from_raw_os_error(if cfg!(unix) { 24 } else { 4 });
        let files = OpenFiles::new(Some(100));
        let many = tables(&files, 50);
        (0..40).for_each(|number| read(&many, number).unwrap());
        let calls = Cell::new(0);
        let open = || -> io::Result<Reader> {
            calls.set(calls.get() + 1);
            if files.counts().open > 10 { Err(no_descriptor()) } else { Ok(Arc::new(Numbered(40))) }
        };
        many[40].with(open, |_| ()).unwrap();
        assert_eq!((calls.get(), files.counts().open), (3, 11));
        let error = many[41].with(|| Err(no_descriptor()), |_| ()).unwrap_err().to_string();
        assert!(
            error.contains("ulimit -n") && error.contains("`open_files`, which allows 100 here"),
            "{error}"
        );
        assert_eq!(files.counts().open, 0);
        // A read-only opening closes no files, because another process may have removed them.
        let files = OpenFiles::new(None);
        let many = tables(&files, 50);
        (0..40).for_each(|number| read(&many, number).unwrap());
        let error = many[41].with(|| Err(no_descriptor()), |_| ()).unwrap_err().to_string();
        assert!(error.contains("a read-only opening keeps every table open"), "{error}");
        assert_eq!(files.counts(), OpenFileCounts { open: 40, closed: 0 });
        let error = many[42].with(|| Err(io::ErrorKind::NotFound.into()), |_| ()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn jobs_open_few_files_of_their_own() {
        for (max, most) in [(Some(16), 2), (Some(1 << 20), SEQUENTIAL_MAX), (None, SEQUENTIAL_MAX)]
        {
            let files = OpenFiles::new(max);
            for _ in 0..2 {
                let permits: Vec<_> = std::iter::from_fn(|| files.permit_sequential()).collect();
                assert_eq!(permits.len(), most);
                assert!(files.permit_sequential().is_none());
            }
        }
    }
}
