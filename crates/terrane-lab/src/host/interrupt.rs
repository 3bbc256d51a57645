//! Handles Ctrl-C and SIGTERM: runs the action that the command registered, removes temporary directories and exits,
//! or, in the interactive shell, cancels the current command.
//!
//! The handler runs on its own thread while the other threads continue. It first marks the process
//! as ending, so that errors caused by removed files are not reported (`is_ending`).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

static HANDLER: Once = Once::new();
static TO_REMOVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static BEFORE_END: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);
static IS_ENDING: AtomicBool = AtomicBool::new(false);
static CANCELS: AtomicBool = AtomicBool::new(false);
static IS_CANCELLED: AtomicBool = AtomicBool::new(false);

/// The exit code of an interrupted process, as shells report it after Ctrl-C.
pub const INTERRUPTED: i32 = 130;

/// A running thread may create another file while its directory is being removed.
const REMOVE_TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

fn install() {
    HANDLER.call_once(|| {
        // If no handler can be installed, Ctrl-C ends the process by default.
        let _ = ctrlc::set_handler(|| {
            let cancels = CANCELS.load(Ordering::SeqCst);
            // A second Ctrl-C ends the process even if commands can be cancelled.
            if !cancels || IS_CANCELLED.swap(true, Ordering::SeqCst) {
                end();
            }
        });
    });
}

fn end() {
    IS_ENDING.store(true, Ordering::SeqCst);
    let action = BEFORE_END.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(action) = action {
        action();
    }
    let paths = TO_REMOVE.lock().unwrap_or_else(PoisonError::into_inner);
    paths.iter().for_each(|path| remove(path));
    std::process::exit(INTERRUPTED);
}

/// Removes a directory and its contents, retrying if other threads still create files in it.
pub fn remove(dir: &Path) {
    for _ in 0..REMOVE_TRIES {
        match std::fs::remove_dir_all(dir) {
            Ok(()) => return,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(_) => std::thread::sleep(BETWEEN_TRIES),
        }
    }
}

/// Removes a database that is closed, and the files of its log in `log_dir`, which may be elsewhere.
pub fn remove_database(dir: &Path, log_dir: &Path) {
    remove(dir);
    let is_of_log =
        |name: &str| name.ends_with(".log") || matches!(name, "LOCK" | "DATABASE" | "DATABASE.new");
    for entry in std::fs::read_dir(log_dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_of_log) {
            // If a file remains, the next database to use the directory reports it.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Registers a directory to be removed on interruption, until [`keep`] is called.
pub fn remove_when_interrupted(dir: &Path) {
    install();
    TO_REMOVE.lock().unwrap_or_else(PoisonError::into_inner).push(dir.to_owned());
}

/// Unregisters a directory that must be kept or has been removed.
pub fn keep(dir: &Path) {
    TO_REMOVE.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| path != dir);
}

/// Runs `action` on the thread of the handler before a signal ends the process.
pub fn before_end(action: impl FnOnce() + Send + 'static) {
    install();
    *BEFORE_END.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(action));
}

/// Blocks if the process is ending, so that the caller does not report errors caused by the
/// cleanup.
pub fn wait_if_ending() {
    while IS_ENDING.load(Ordering::SeqCst) {
        std::thread::sleep(BETWEEN_TRIES);
    }
}

/// While this value exists, Ctrl-C cancels the current command instead of ending the process.
#[derive(Debug)]
pub struct Cancellable(());

impl Cancellable {
    /// Starts to cancel on Ctrl-C.
    pub fn begin() -> Self {
        install();
        IS_CANCELLED.store(false, Ordering::SeqCst);
        CANCELS.store(true, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Cancellable {
    fn drop(&mut self) {
        CANCELS.store(false, Ordering::SeqCst);
    }
}

/// Returns true if Ctrl-C was pressed since the last [`Cancellable`] was created.
pub fn is_cancelled() -> bool {
    IS_CANCELLED.load(Ordering::Relaxed)
}
