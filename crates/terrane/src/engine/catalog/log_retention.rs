//! Frees the part of the log that no tree needs.
//!
//! The needed part of the log begins at the smallest position up to which a tree is flushed. A
//! flush advances its tree's position. A tree whose memtables are empty (an idle tree) needs no
//! part of the log, and an edit records this.
//!
//! With `delete_persistence`, deleted data must leave the log in time. A segment ends, even if it
//! is not full, when its first record reaches the maximum age of a memtable: a tenth of the
//! persistence time. Aged memtables are replaced only after that, so the new memtables need no part
//! of the segment. A segment that no tree needs is freed even if no flush follows. It is therefore
//! gone within two tenths of the persistence time plus the duration of a flush. Freed files are
//! removed and not reused, because a reused file keeps old records until they are overwritten.
//! Closing the database frees the part of the log whose entries are in tables. After a crash, the
//! next opening flushes the log.
//!
//! With `keep_changes`, the log keeps segments that no tree needs for readers of changes, up to the
//! limits ([`crate::files::wal::LogRetention`]).

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::Catalog;
use crate::base::error::Result;
use crate::base::types::{KeyspaceId, Lsn};
use crate::engine::pipeline::ChangeLog;
use crate::engine::tree::Tree;
use crate::files::manifest::{Change, ManifestState};
use crate::files::wal::{Ending, LogWriter};

/// If at most this many trees are idle, an edit records their positions regardless of the cost.
const FEW_IDLE: usize = 8;

/// The idle ones among at most this many trees are determined after every job.
const FEW_TREES: usize = 64;

/// If more trees are idle, an edit records their positions only if one of them lags by at least
/// this many bytes for each tree above that number.
const LOG_BYTES_PER_IDLE: u64 = 1 << 10;

/// The log keeps only a short segment if no log record is needed and the size of the log files
/// times this number exceeds the size of the tables.
const IDLE_SHARE: u64 = 16;

/// How long to wait after a failure to free a segment.
const RETRY_AFTER: Duration = Duration::from_millis(50);

impl Catalog {
    /// Returns the trees whose memtables are empty, each with the end of the log as its position,
    /// because these trees need no part of the log.
    pub(crate) fn idle_positions(&self) -> Vec<(KeyspaceId, Lsn)> {
        let writer = self.pipeline.lock();
        let Some(log) = &writer.log else { return Vec::new() };
        let upto = log.end();
        let trees = self.trees();
        // While a write to a tree is in the log but not in the memtable yet, the tree's last
        // sequence number is not visible.
        let visible = self.pipeline.visible();
        // A write whose logging failed has set a sequence number that was never assigned.
        let assigned = writer.next_seq - 1;
        let is_idle = |tree: &&Arc<Tree>| {
            tree.last_seq().min(assigned) <= visible && tree.state().is_flushed()
        };
        let idle = trees.values().filter(is_idle);
        idle.map(|tree| (tree.id, upto)).collect()
    }

    /// Returns the positions of idle trees, unless they can hardly be worth recording: looking at
    /// very many trees after every job would take longer than the job.
    pub(super) fn idle_positions_if_due(&self) -> Vec<(KeyspaceId, Lsn)> {
        let end = self.pipeline.log_end();
        let trees = self.trees().len();
        // Relaxed: two threads may determine the positions concurrently.
        let progress = end.0.saturating_sub(self.idle_since.load(Ordering::Relaxed));
        let worth = trees as u64 * LOG_BYTES_PER_IDLE;
        let worth = worth.min(self.context.settings.log_bytes_max() / 8);
        if trees > FEW_TREES && progress < worth {
            return Vec::new();
        }
        self.idle_since.store(end.0, Ordering::Relaxed);
        self.idle_positions()
    }

    /// Stores that idle trees need no part of the log, so that the next opening does not replay it.
    pub(crate) fn store_idle_positions(&self) -> Result<()> {
        let idle = self.idle_positions();
        let mut guard = self.lock_manifest();
        let Some(manifest) = guard.as_mut() else { return Ok(()) };
        let (changes, _) = outdated(idle, manifest.state());
        if changes.is_empty() {
            return Ok(());
        }
        self.commit(manifest, changes)?;
        drop(guard);
        self.note_manifest_version();
        Ok(())
    }

    /// Frees the part of the log that no tree needs, unless a reader may need it.
    pub(crate) fn release_log(&self) {
        // Closing waits for this, because the next opening may reuse the names of freed files.
        let _caller = self.context.signals.enter_caller();
        // Another process that has taken over the directory may be using the log files.
        if self.context.health.check_synced().is_err() {
            return;
        }
        let (needed, bytes_max) = {
            let guard = self.lock_manifest();
            let Some(manifest) = guard.as_ref().filter(|manifest| !manifest.is_doubtful()) else {
                return;
            };
            let state = manifest.state();
            (state.log_needed_from(Lsn(0)), state.table_bytes() / IDLE_SHARE)
        };
        // The manifest is read first. A reader that takes its lock after this check reads this
        // manifest or a newer one, and needs no part of the log before `needed`.
        if self.keep_log_for_readers() {
            return;
        }
        let is_long = |log: &LogWriter| log.end() <= needed && log.is_long();
        if self.release_segments(needed, bytes_max)
            && self.pipeline.end_segment_if(Ending::Idle, is_long)
        {
            // The current segment alone was large relative to the database. It is freed once the
            // manifest says that no tree needs it, including its last record, which only links it
            // to the next segment.
            if self.store_idle_positions().is_ok() {
                self.release_log();
            }
        }
    }

    /// Frees the segments before `needed`. If the log is idle and exceeds `bytes_max`, also frees
    /// all free segments and returns true.
    fn release_segments(&self, needed: Lsn, bytes_max: u64) -> bool {
        let (is_oversized, released) = {
            let mut writer = self.pipeline.lock();
            let Some(log) = writer.log.as_mut() else { return false };
            let is_oversized = log.is_oversized(needed, bytes_max);
            if is_oversized {
                log.keep_no_free_segments();
            }
            (is_oversized, log.release(needed))
        };
        self.remove_files(released.removed);
        self.pipeline.clean_segments(released.reused);
        is_oversized
    }

    /// Ends the current log segment if its first record is too old.
    pub(crate) fn end_aged_segment(&self) {
        let is_due =
            |log: &LogWriter| self.time_to_segment_end(log).is_some_and(|left| left.is_zero());
        self.pipeline.end_segment_if(Ending::Aged, is_due);
    }

    /// Frees full segments whose records are all in tables, including segments that idle trees have
    /// not released yet.
    pub(crate) fn release_idle_log(&self) {
        let oldest = self.pipeline.lock().log.as_ref().and_then(LogWriter::oldest_end);
        let Some(oldest) = oldest else { return };
        let idle = self.idle_positions();
        let mut guard = self.lock_manifest();
        let Some(manifest) = guard.as_mut() else { return };
        let keyspaces = manifest.state().keyspaces.iter();
        let holding: BTreeSet<KeyspaceId> = keyspaces
            .filter(|(_, keyspace)| keyspace.flushed < oldest)
            .map(|(id, _)| *id)
            .collect();
        let idle = idle.into_iter().filter(|(keyspace, _)| holding.contains(keyspace));
        let changes: Vec<Change> =
            idle.map(|(keyspace, upto)| Change::Flushed { keyspace, upto }).collect();
        if changes.len() < holding.len() {
            return;
        }
        let has_changed = !changes.is_empty();
        if has_changed && self.commit(manifest, changes).is_err() {
            return;
        }
        drop(guard);
        if has_changed {
            self.note_manifest_version();
        }
        self.release_log();
    }

    /// Frees segments that were kept for readers of changes until they expired.
    pub(crate) fn release_expired_log(&self) {
        if ChangeLog::of(&self.pipeline).time_to_expiry().is_some_and(|left| left.is_zero()) {
            self.release_log();
        }
    }

    /// Returns the time until a segment must end or be freed, or a removal must be retried.
    pub(crate) fn time_to_log_work(&self) -> Option<Duration> {
        let expiry =
            ChangeLog::of(&self.pipeline).time_to_expiry().map(|left| left.max(RETRY_AFTER));
        [self.time_to_aged_log_work(), expiry].into_iter().flatten().min()
    }

    fn time_to_aged_log_work(&self) -> Option<Duration> {
        let age = Duration::from_micros(self.context.settings.memtable_age_micros()?);
        let writer = self.pipeline.lock();
        let log = writer.log.as_ref()?;
        let is_left = log.oldest_end().is_some() || self.has_failed_removals();
        let left = [self.time_to_segment_end(log), is_left.then_some(age)];
        left.into_iter().flatten().min().map(|left| left.max(RETRY_AFTER))
    }

    fn time_to_segment_end(&self, log: &LogWriter) -> Option<Duration> {
        let age = self.context.settings.memtable_age_micros()?;
        let elapsed = self.context.clock.now_micros().saturating_sub(log.holds_since()?);
        Some(Duration::from_micros(age.saturating_sub(elapsed)))
    }
}

/// Returns the changes by which idle trees release the log, if enough log has been written since
/// such changes were last recorded. Otherwise, with ten thousand idle trees, every flush would
/// record more about them than about itself. Delaying the changes is safe, because replay skips
/// records that are in tables. The delay lengthens the log by at most an eighth of its size limit.
pub(super) fn worth_recording(
    idle: Vec<(KeyspaceId, Lsn)>,
    state: &ManifestState,
    log_bytes_max: u64,
) -> Vec<Change> {
    let (changes, behind) = outdated(idle, state);
    let cost = changes.len().saturating_sub(FEW_IDLE) as u64 * LOG_BYTES_PER_IDLE;
    if behind < cost.min(log_bytes_max / 8) { Vec::new() } else { changes }
}

/// Returns the changes for idle trees whose recorded position lags, and the largest such lag in
/// bytes.
fn outdated(idle: Vec<(KeyspaceId, Lsn)>, state: &ManifestState) -> (Vec<Change>, u64) {
    let (mut changes, mut most) = (Vec::new(), 0);
    for (keyspace, upto) in idle {
        let recorded = state.keyspaces.get(&keyspace).map(|state| state.flushed);
        let Some(recorded) = recorded else { continue };
        if recorded < upto {
            most = most.max(upto.0 - recorded.0);
            changes.push(Change::Flushed { keyspace, upto });
        }
    }
    (changes, most)
}
