//! What Ctrl-C and SIGTERM do: remove what was made for a while, and end; or, where a person is
//! at work in the shell, cancel what is going on.
//!
//! The handler runs on a thread of its own, while the rest of the program goes on. So the first
//! thing it does is to say that the program is ending: errors that come from files being removed
//! are then of no interest ([`is_ending`]).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

static HANDLER: Once = Once::new();
static TO_REMOVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static IS_ENDING: AtomicBool = AtomicBool::new(false);
static CANCELS: AtomicBool = AtomicBool::new(false);
static IS_CANCELLED: AtomicBool = AtomicBool::new(false);

/// The exit code of an interrupted process: what a shell reports after Ctrl-C.
pub const INTERRUPTED: i32 = 130;

/// A thread that makes files may make one more while its directory is removed.
const REMOVE_TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

fn install() {
    HANDLER.call_once(|| {
        // Without a handler Ctrl-C ends the program as it always did.
        let _ = ctrlc::set_handler(|| {
            let cancels = CANCELS.load(Ordering::SeqCst);
            // Who asks twice wants to be gone.
            if !cancels || IS_CANCELLED.swap(true, Ordering::SeqCst) {
                end();
            }
        });
    });
}

fn end() {
    IS_ENDING.store(true, Ordering::SeqCst);
    let paths = TO_REMOVE.lock().unwrap_or_else(PoisonError::into_inner);
    paths.iter().for_each(|path| remove(path));
    std::process::exit(INTERRUPTED);
}

/// Removes a directory with everything in it, also while files are still being made there.
pub fn remove(dir: &Path) {
    for _ in 0..REMOVE_TRIES {
        match std::fs::remove_dir_all(dir) {
            Ok(()) => return,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
            Err(_) => std::thread::sleep(BETWEEN_TRIES),
        }
    }
}

/// From now on, until [`keep`], a directory is removed if the program is interrupted.
pub fn remove_when_interrupted(dir: &Path) {
    install();
    TO_REMOVE.lock().unwrap_or_else(PoisonError::into_inner).push(dir.to_owned());
}

/// A directory is not to be removed any more, or was removed.
pub fn keep(dir: &Path) {
    TO_REMOVE.lock().unwrap_or_else(PoisonError::into_inner).retain(|path| path != dir);
}

/// Waits for the end if the program was interrupted, so that nothing is said about errors that
/// only come from that.
pub fn wait_if_ending() {
    while IS_ENDING.load(Ordering::SeqCst) {
        std::thread::sleep(BETWEEN_TRIES);
    }
}

/// Something that Ctrl-C cancels, instead of ending the program, for as long as this exists.
#[derive(Debug)]
pub struct Cancellable(());

impl Cancellable {
    /// Begins it.
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

/// Whether Ctrl-C was pressed since the last [`Cancellable`] began.
pub fn is_cancelled() -> bool {
    IS_CANCELLED.load(Ordering::Relaxed)
}
