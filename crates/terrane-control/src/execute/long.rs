//! Flushes, compactions and copies, which report progress and can be cancelled.

use std::ops::Bound;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use terrane::{Db, ErrorKind, Keyspace, Maintenance};

use crate::bytes::Bytes;
use crate::failure::Failure;
use crate::protocol::{Compacted, Progress, Reply};
use crate::watch::{Interest, LOOK_EVERY, Watch};

/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// Runs an operation in a thread, reports its progress, and cancels it when no client wants it any
/// longer.
pub(super) fn run<T: Send>(
    maintenance: &Maintenance,
    what: &str,
    watch: &mut dyn Watch,
    operation: impl FnOnce(&Maintenance) -> terrane::Result<T> + Send,
) -> Result<T, Failure> {
    let mut interest = Interest::Waiting;
    let done = thread::scope(|scope| {
        let (send, receive) = channel();
        let thread = scope.spawn(move || {
            // The receiver lives until the operation has ended.
            let _ = send.send(operation(maintenance));
        });
        let mut reported = Instant::now();
        loop {
            match receive.recv_timeout(LOOK_EVERY) {
                Ok(done) => return Some(done),
                Err(RecvTimeoutError::Disconnected) => {
                    // Joining the thread keeps its panic from spreading to this one.
                    let _ = thread.join();
                    return None;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if interest == Interest::Waiting {
                interest = watch.interest();
            }
            if interest != Interest::Waiting {
                maintenance.cancel();
            } else if reported.elapsed() >= REPORT_EVERY {
                reported = Instant::now();
                let (done_bytes, total_bytes) = maintenance.progress_bytes();
                let (what, jobs) = (what.to_owned(), maintenance.jobs());
                watch.progress(&Progress { what, done_bytes, total_bytes, jobs });
            }
        }
    });
    match done {
        None => Err(Failure::new(ErrorKind::Internal, format!("{what} panicked"))),
        Some(Err(_)) if interest == Interest::Closing => Err(Failure::closed()),
        Some(Err(error)) if error.kind() == ErrorKind::Closed => Err(Failure::closed()),
        Some(done) => Ok(done?),
    }
}

pub(super) fn flush(
    db: &Db,
    keyspaces: &[Keyspace],
    watch: &mut dyn Watch,
) -> Result<Reply, Failure> {
    let maintenance = Maintenance::of(db);
    maintenance.check_writable()?;
    let trees: Vec<_> = keyspaces.iter().map(Keyspace::tree).collect();
    let entries = trees.iter().map(|tree| tree.memtable_entries).sum();
    let some = trees.iter().filter(|tree| tree.memtable_entries > 0);
    let memtable_bytes = some.map(|tree| tree.memtable_bytes).sum();
    let begun = Instant::now();
    run(&maintenance, "flushing", watch, |maintenance| {
        keyspaces.iter().try_for_each(|keyspace| maintenance.flush(keyspace))
    })?;
    Ok(Reply::Flushed { entries, memtable_bytes, seconds: begun.elapsed().as_secs_f64() })
}

pub(super) fn compact(
    db: &Db,
    keyspaces: &[Keyspace],
    (from, to): (Option<&Bytes>, Option<&Bytes>),
    watch: &mut dyn Watch,
) -> Result<Reply, Failure> {
    let maintenance = Maintenance::of(db);
    maintenance.check_writable()?;
    let key = |bytes: &Bytes| bytes.0.clone();
    let range: (Bound<Vec<u8>>, Bound<Vec<u8>>) = (
        from.map_or(Bound::Unbounded, |from| Bound::Included(key(from))),
        to.map_or(Bound::Unbounded, |to| Bound::Excluded(key(to))),
    );
    // Flush first, so that the sizes before the compaction include the entries of memtables.
    run(&maintenance, "flushing", watch, |maintenance| {
        keyspaces.iter().try_for_each(|keyspace| maintenance.flush(keyspace))
    })?;
    let bytes = || keyspaces.iter().map(|one| one.tree().shape.size_bytes()).sum::<u64>();
    let (table_bytes_before, before) = (bytes(), db.stats());
    for keyspace in keyspaces {
        let what = match keyspaces.len() {
            1 => "compacting".to_owned(),
            _ => format!("compacting '{}'", keyspace.name()),
        };
        run(&maintenance, &what, watch, |maintenance| maintenance.compact_range(keyspace, &range))?;
    }
    let after = db.stats();
    let tables = keyspaces.iter().map(|one| one.tree().shape.table_count() as u64).sum();
    Ok(Reply::Compacted(Compacted {
        table_bytes_before,
        table_bytes: bytes(),
        tables,
        compaction_bytes_read: after.compaction_bytes_read - before.compaction_bytes_read,
        compaction_bytes_written: after.compaction_bytes_written - before.compaction_bytes_written,
    }))
}

pub(super) fn checkpoint(db: &Db, dir: &Path, watch: &mut dyn Watch) -> Result<Reply, Failure> {
    if !dir.is_absolute() {
        let text =
            format!("'{}' is not an absolute path; the server has another one", dir.display());
        return Err(Failure::invalid(text));
    }
    let maintenance = Maintenance::of(db);
    let begun = Instant::now();
    run(&maintenance, "copying", watch, |maintenance| maintenance.checkpoint(dir))?;
    let (bytes, _) = maintenance.progress_bytes();
    Ok(Reply::Checkpointed { bytes, seconds: begun.elapsed().as_secs_f64() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_that_panics_is_a_failure() {
        let dir = tempfile::tempdir().unwrap();
        let maintenance = Maintenance::of(&Db::open(dir.path()).unwrap());
        let panics = |_: &Maintenance| -> terrane::Result<()> { panic!("on purpose") };
        let failure = run(&maintenance, "testing", &mut Vec::new(), panics).unwrap_err();
        assert_eq!(
            (failure.kind.as_str(), failure.text.as_str()),
            ("internal", "testing panicked")
        );
    }
}
