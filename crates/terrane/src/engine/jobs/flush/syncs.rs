//! Syncs the files of several flushes at the same time.
//!
//! On most file systems a sync commits a journal and empties the cache of the device, both for all
//! files, and syncs that wait meanwhile share the next commit. So a few threads sync many small files
//! several times as fast as one.

use std::panic;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Builder};

use crate::base::error::Result;
use crate::files::table::UnsyncedFile;

/// The maximum number of threads, with the caller's.
const THREADS_MAX: usize = 8;

/// Makes files durable. If `is_inline`, the caller syncs one after the other.
///
/// # Errors
/// The failure of any sync.
pub(super) fn sync_all(files: Vec<UnsyncedFile>, is_inline: bool) -> Result<()> {
    let helpers = if is_inline { 0 } else { files.len().min(THREADS_MAX).saturating_sub(1) };
    let files = Mutex::new(files.into_iter());
    let next = || files.lock().unwrap_or_else(PoisonError::into_inner).next();
    let sync = || std::iter::from_fn(next).try_for_each(UnsyncedFile::sync);
    thread::scope(|scope| {
        // Without a thread, the others sync its files.
        let begin = |_| Builder::new().name("terrane-sync".into()).spawn_scoped(scope, sync).ok();
        let helpers: Vec<_> = (0..helpers).map_while(begin).collect();
        let own = sync();
        let join = |helper: thread::ScopedJoinHandle<'_, Result<()>>| {
            helper.join().unwrap_or_else(|failure| panic::resume_unwind(failure))
        };
        helpers.into_iter().map(join).fold(own, Result::and)
    })
}
