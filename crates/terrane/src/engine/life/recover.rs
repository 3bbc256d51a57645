//! Replays the log into memtables.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use super::assembly::{Engine, Opened};
use crate::base::error::{Error, Result};
use crate::base::event::FlushReason;
use crate::base::types::{KeyspaceId, Lsn, SeqNo};
use crate::engine::tree::{ActiveMemtable, ImmutableMemtable, Tree, new_memtable};
use crate::files::batch::Op;
use crate::files::consistency::{self, BatchCheck};
use crate::files::manifest::{Change, ManifestState, RecoveredState};
use crate::files::wal::{
    LogConfig, LogEnvironment, LogWriter, Recovery, Replayed, segment_file_number,
};
use crate::options::LogMode;

impl Engine {
    /// Replays the log and begins a new segment. Returns the log files that are no longer needed.
    pub(super) fn recover(&self, recovery: Recovery, opened: &mut Opened) -> Result<Vec<PathBuf>> {
        let (context, catalog) = (&self.context, &self.catalog);
        let state = catalog.manifest_state()?;
        let newest_segment = recovery.newest_segment;
        let mut unused = recovery.unused.clone();
        let (replayed, last_seq) = self.replay(recovery, &state, state.required_segment, true)?;
        opened.replayed_batches = replayed.batches;
        opened.dropped_records = replayed.dropped_records;
        unused.extend(replayed.passed.iter().map(|file| file.path.clone()));
        let environment = || LogEnvironment {
            storage: Arc::clone(&context.storage),
            clock: Arc::clone(&context.clock),
            counters: Arc::clone(&context.counters),
            dir: context.log_dir.clone(),
            segments: Arc::clone(&context.log_segments),
            database: state.database,
            is_mapped: context.settings.log_mode == LogMode::Mapped,
            lock: self.lock.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        };
        let config = LogConfig {
            segment_bytes: context.settings.log_segment_bytes(),
            // A reused file would keep deleted data beyond its deadline.
            reuses_files: context.settings.delete_persistence_micros().is_none(),
            may_be_linked: state
                .keyspaces
                .values()
                .any(|keyspace| keyspace.value_files.values().any(|file| file.is_segment)),
            retention: context.settings.log_retention(),
            retained_from: opened.retained_from,
        };
        let flushed = state.keyspaces.values().map(|keyspace| keyspace.flushed).max();
        let flushed = flushed.unwrap_or_default();
        let sync = self.pipeline.log_sync();
        let log = context.with_reserve(|| {
            let sync = Arc::clone(&sync);
            LogWriter::begin(environment(), config, sync, &replayed, newest_segment, flushed)
        })?;
        let segment = log.segment();
        let begins = config.retention.is_some() && config.retained_from.is_none();
        let changes_from = begins.then(|| Change::ChangesFrom(log.changes_from()));
        // The log frees the files that it keeps, and may reuse them.
        let in_use = log.files();
        unused.retain(|path| !in_use.contains(path));
        self.pipeline.start(log, last_seq + 1);
        // All writes of a tree without replayed entries are in tables, so the tree needs no record
        // before the end of the replayed log.
        let idle = catalog.idle_positions();
        let mut guard = catalog.lock_manifest();
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        let mut changes = vec![Change::RequiredSegment(segment), Change::LastSeq(last_seq)];
        let change = |(keyspace, upto)| Change::Flushed { keyspace, upto };
        changes.extend(idle.into_iter().map(change));
        changes.extend(changes_from);
        catalog.commit(manifest, changes)?;
        drop(guard);
        catalog.note_manifest_version();
        catalog.release_log();
        Ok(unused)
    }

    /// Replays the log of a database that another process may be writing.
    pub(super) fn recover_read_only(
        &self,
        found: &RecoveredState,
        opened: &mut Opened,
    ) -> Result<Replayed> {
        let context = &self.context;
        let (storage, state) = (&*context.storage, &found.state);
        let from = state.log_needed_from(Lsn(0));
        let recovery = Recovery::open_shared(storage, &context.log_dir, state.database, from)?;
        let (replayed, _) = self.replay(recovery, state, state.required_segment, false)?;
        opened.replayed_batches = replayed.batches;
        opened.dropped_records = replayed.dropped_records;
        Ok(replayed)
    }

    /// Inserts the log records into memtables. If `may_flush`, flushes memtables that fill up.
    fn replay(
        &self,
        recovery: Recovery,
        state: &ManifestState,
        required: u64,
        may_flush: bool,
    ) -> Result<(Replayed, SeqNo)> {
        let context = &self.context;
        let from = state.log_needed_from(Lsn(0));
        let mut last_seq = state.last_seq;
        let mut is_synced = false;
        let mut ahead_from = None;
        let mut written: Vec<Arc<Tree>> = Vec::new();
        let now = context.clock.now_micros();
        let times = match context.settings.delete_persistence_micros() {
            Some(_) => recovery.times(),
            None => Vec::new(),
        };
        let check = BatchCheck::new(&context.dir, state);
        let (storage, dir, boot) = (&*context.storage, &context.log_dir, context.kept_boot);
        let mut replayed = recovery.replay(storage, boot, dir, from, required, |batch| {
            let lsn = batch.lsn;
            if !may_flush {
                // The log prefix ends before the first batch that is newer than the manifest.
                if ahead_from.is_none() && check.is_ahead(storage, &batch)? {
                    ahead_from = Some(lsn);
                }
                if ahead_from.is_some() {
                    return Ok(());
                }
            }
            // A memtable is replaced before a batch, never within one, because the operations of a
            // batch share a position. Only a tree of the previous batch can have become full.
            for tree in std::mem::take(&mut written).into_iter().filter(|_| may_flush) {
                let has_records = self.replay_target(state, tree.id, lsn).is_some();
                if !has_records || !self.is_full_before(&tree, lsn) {
                    continue;
                }
                // A table must not become durable before the log records it was built from.
                if !std::mem::replace(&mut is_synced, true) {
                    self.sync_replayed()?;
                }
                self.replace_replayed(&tree, lsn, last_seq);
                self.flush_replayed(&tree)?;
            }
            let next = check.visit(&batch, |keyspace, seq, op| {
                let Some(tree) = self.catalog.tree(keyspace) else { return };
                let active = self.insert_replayed(&tree, op, (seq, batch.seq), lsn);
                if !times.is_empty() {
                    active.note_entry(|| time_at(&times, lsn).min(now));
                }
                if written.last().is_none_or(|last| last.id != tree.id) {
                    written.push(tree);
                }
            })?;
            last_seq = last_seq.max(next.saturating_sub(1));
            self.pipeline.set_visible(last_seq);
            Ok(())
        })?;
        consistency::check_end(state, &replayed, &context.log_dir)?;
        if let Some(end) = ahead_from {
            replayed.end_at(end);
        }
        self.pipeline.set_visible(last_seq);
        self.note_values();
        Ok((replayed, last_seq))
    }

    /// Inserts an operation of a batch, whose first sequence number is `first`, at a log position. Returns
    /// the memtable.
    fn insert_replayed(
        &self,
        tree: &Tree,
        op: &Op<'_>,
        (seq, first): (SeqNo, SeqNo),
        lsn: Lsn,
    ) -> Arc<ActiveMemtable> {
        if tree.state().active.is_unwritten() {
            self.begin_replayed(tree, lsn);
        }
        if matches!(op, Op::PutExpiring { .. }) {
            tree.usage().note_expiring();
        }
        let active = Arc::clone(&tree.state().active);
        self.writer.replay_one(&active.memtable, op, seq, first);
        active
    }

    /// Flushes the oldest memtable of a tree. On a full disk it stays in memory, because a database that
    /// could not be opened could not be freed of data.
    fn flush_replayed(&self, tree: &Arc<Tree>) -> Result<()> {
        let is_filled = !self.context.reserve.is_released();
        let flush = || self.jobs.flusher.flush_oldest(std::slice::from_ref(tree));
        let mut flushed = flush();
        // The failure has released the reserve.
        if flushed.as_ref().is_err_and(Error::is_out_of_space) && is_filled {
            flushed = flush();
        }
        match flushed {
            Err(Error::DiskFull(_)) => Ok(()),
            flushed => flushed,
        }
    }

    /// Makes memtables to which nothing was replayed note the places of values from now on.
    fn note_values(&self) {
        for tree in self.catalog.trees().values() {
            let in_log = self.context.values_in_log(&tree.design());
            let active = Arc::clone(&tree.state().active);
            if in_log.is_none() || active.is_unwritten() || !active.memtable.is_empty() {
                continue;
            }
            tree.replace(|mut state| {
                let (memtable, begins) = (Arc::clone(&state.active.memtable), state.active.begins);
                state.active = Arc::new(ActiveMemtable::new(memtable, begins).noting(in_log));
                state
            });
        }
    }

    /// Gives a tree without entries a memtable for records from `lsn` on.
    fn begin_replayed(&self, tree: &Tree, lsn: Lsn) {
        let memtable = new_memtable(&tree.design(), &self.context.memtables, None);
        tree.replace(|mut state| {
            state.active = Arc::new(ActiveMemtable::new(memtable, lsn));
            state
        });
    }

    /// Returns the tree of an operation, unless it was dropped or its tables contain the operation.
    fn replay_target(&self, state: &ManifestState, id: KeyspaceId, lsn: Lsn) -> Option<Arc<Tree>> {
        let keyspace = state.keyspaces.get(&id)?;
        if lsn < keyspace.flushed { None } else { self.catalog.tree(id) }
    }

    /// Returns true if the records before `lsn` have filled the memtable of a tree.
    fn is_full_before(&self, tree: &Arc<Tree>, lsn: Lsn) -> bool {
        let state = tree.state();
        // The operations of a batch share a position, and stay in one memtable.
        state.active.memtable.filled_bytes() as u64 >= self.writer.memtable_bytes_max(tree)
            && state.active.begins != lsn
    }

    /// Makes all log files durable. Nothing is appended to them during replay.
    fn sync_replayed(&self) -> Result<()> {
        let (storage, dir) = (&self.context.storage, &self.context.log_dir);
        let names = storage.list(dir);
        for name in names.map_err(|error| Error::io("list", dir, error))? {
            if segment_file_number(&name).is_some() {
                let path = dir.join(name);
                let synced = storage.open_segment(&path).and_then(|file| file.syncer().sync());
                synced.map_err(|error| Error::io("sync", &path, error))?;
            }
        }
        Ok(())
    }

    fn replace_replayed(&self, tree: &Arc<Tree>, lsn: Lsn, last_seq: SeqNo) {
        let before = Arc::clone(&tree.state().active.memtable);
        let memtable = new_memtable(&tree.design(), &self.context.memtables, Some(&before));
        tree.replace(|mut state| {
            let next = Arc::new(ActiveMemtable::new(memtable, lsn));
            let before = state.replace_active(next, &self.context.memtables);
            let reason = FlushReason::Recovery;
            let immutable = ImmutableMemtable::new(&before, lsn, last_seq, reason);
            state.immutables.insert(0, Arc::new(immutable));
            state
        });
        debug_assert!(self.context.is_inline() || self.pipeline.visible() >= last_seq);
    }
}

/// Returns the time at which the log began the segment that contains a position.
fn time_at(times: &[(Lsn, u64)], lsn: Lsn) -> u64 {
    let after = times.partition_point(|(base, _)| *base <= lsn);
    times.get(after.saturating_sub(1)).map_or(0, |(_, micros)| *micros)
}
