//! What Ctrl-C and SIGTERM do to a load.
//!
//! The handler of signals runs on its own thread. It waits until the load neither writes nor has unwritten entries,
//! reports, closes the database, and ends the process. The lock of the progress is held except while the load waits
//! for input; a load that waits on a pipe can therefore be interrupted too.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use terrane::Db;
use terrane_lab::host::interrupt;
use terrane_lab::output::human;

/// What was loaded.
#[derive(Debug)]
struct Progress {
    entries: u64,
    /// The line to go on with, if the file has lines.
    next_line: Option<u64>,
    /// The load has ended and reported itself.
    is_over: bool,
}

static PROGRESS: Mutex<Progress> =
    Mutex::new(Progress { entries: 0, next_line: None, is_over: false });

fn lock() -> MutexGuard<'static, Progress> {
    PROGRESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A load that an interruption lets finish its current write.
pub(super) struct Interruptible {
    /// Absent only while the load waits for input.
    progress: Option<MutexGuard<'static, Progress>>,
}

impl Interruptible {
    /// Begins a load of a file.
    pub(super) fn begin(db: &Db, file: &Path, is_sorted: bool) -> Self {
        let (db, file) = (db.clone(), file.display().to_string());
        interrupt::before_end(move || {
            let progress = lock();
            if progress.is_over {
                return;
            }
            let text = report(&progress, &file, is_sorted);
            let closed = if is_sorted { Ok(()) } else { db.close() };
            let failed = closed.err().map_or(String::new(), |error| format!("; {error}"));
            let _ = writeln!(io::stderr(), "{text}{failed}");
        });
        Self { progress: Some(lock()) }
    }

    /// Waits for input; all entries before it are written.
    pub(super) fn wait<T>(
        &mut self,
        entries: u64,
        next_line: Option<u64>,
        wait: impl FnOnce() -> T,
    ) -> T {
        if let Some(mut progress) = self.progress.take() {
            (progress.entries, progress.next_line) = (entries, next_line);
        }
        let waited = wait();
        // The handler reports and ends the process, so this thread must not continue.
        interrupt::wait_if_ending();
        self.progress = Some(lock());
        waited
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        if let Some(progress) = &mut self.progress {
            progress.is_over = true;
        }
    }
}

fn report(progress: &Progress, file: &str, is_sorted: bool) -> String {
    if is_sorted {
        return format!("interrupted while loading {file}, so no entry was loaded");
    }
    let loaded = human::counted(progress.entries, "entry");
    let next =
        progress.next_line.map_or(String::new(), |line| format!("; go on with --from-line {line}"));
    format!("interrupted while loading {file}; loaded {loaded}{next}")
}
