//! Reads back what is in the log and not in tables.

use std::path::PathBuf;
use std::sync::Arc;

use crate::batch::Ops;
use crate::engine::life::open::{Opened, log_required};
use crate::engine::{Engine, Tree};
use crate::error::{Error, Result};
use crate::event::FlushReason;
use crate::manifest::{Change, ManifestState, RecoveredState};
use crate::options::Background;
use crate::types::{KeyspaceId, Lsn, SeqNo};
use crate::wal::{LogConfig, LogEnvironment, LogWriter, Recovery, Replayed};

impl Engine {
    /// Replays the log, and begins a new segment of it. Returns files of no use.
    pub(crate) fn recover(&self, recovery: Recovery, opened: &mut Opened) -> Result<Vec<PathBuf>> {
        let state = self.manifest_state()?;
        let newest_segment = recovery.newest_segment;
        let mut unused = recovery.unused.clone();
        let (replayed, last_seq) = self.replay(recovery, &state, state.required_segment, true)?;
        opened.replayed_batches = replayed.batches;
        opened.dropped_records = replayed.dropped_records;
        unused.extend_from_slice(&replayed.passed);
        let environment = LogEnvironment {
            storage: Arc::clone(&self.storage),
            clock: Arc::clone(&self.clock),
            counters: Arc::clone(&self.counters),
            dir: self.dir.clone(),
            database: state.database,
        };
        let config = LogConfig {
            segment_bytes: self.settings.log_segment_bytes(),
            // What was deleted must not stay in them.
            reuses_files: self.settings.delete_persistence_micros().is_none(),
        };
        let flushed = state.keyspaces.values().map(|keyspace| keyspace.flushed).max();
        let flushed = flushed.unwrap_or_default();
        let sync = Arc::clone(&self.log_sync);
        let log = LogWriter::begin(environment, config, sync, &replayed, newest_segment, flushed)?;
        let segment = log.segment();
        {
            let mut writer = self.lock_writer();
            writer.next_seq = last_seq + 1;
            writer.log = Some(log);
        }
        // What was not replayed is in tables: the log before now is not needed for it.
        let idle = self.idle_positions();
        let mut guard = self.lock_manifest();
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        let mut changes = vec![Change::RequiredSegment(segment), Change::LastSeq(last_seq)];
        let change = |(keyspace, upto)| Change::Flushed { keyspace, upto };
        changes.extend(idle.into_iter().map(change));
        self.commit(manifest, changes)?;
        drop(guard);
        self.note_manifest();
        self.release_log();
        // Files that the chain has no use for must not come back as part of it.
        unused.retain(|path| !self.log_files().contains(path));
        Ok(unused)
    }

    /// Replays the log of a database that someone else may be writing.
    pub(crate) fn recover_read_only(
        &self,
        found: &RecoveredState,
        opened: &mut Opened,
    ) -> Result<()> {
        let recovery = Recovery::open(&*self.storage, &self.dir, found.state.database)?;
        let (replayed, _) = self.replay(recovery, &found.state, log_required(found), false)?;
        opened.replayed_batches = replayed.batches;
        opened.dropped_records = replayed.dropped_records;
        Ok(())
    }

    fn manifest_state(&self) -> Result<ManifestState> {
        let guard = self.lock_manifest();
        guard.as_ref().map(|manifest| manifest.state().clone()).ok_or(Error::ReadOnly)
    }

    fn log_files(&self) -> Vec<PathBuf> {
        self.lock_writer().log.as_ref().map(LogWriter::files).unwrap_or_default()
    }

    /// Puts what the log holds into memtables; full ones are flushed on the way, if `may_flush`.
    fn replay(
        &self,
        recovery: Recovery,
        state: &ManifestState,
        required: u64,
        may_flush: bool,
    ) -> Result<(Replayed, SeqNo)> {
        let from = state.log_needed_from(Lsn(0));
        let mut last_seq = state.last_seq;
        let mut is_synced = false;
        let now = self.clock.now_micros();
        let times = match self.settings.delete_persistence_micros() {
            Some(_) => recovery.times(),
            None => Vec::new(),
        };
        let replayed = recovery.replay(
            &*self.storage,
            &self.dir,
            from,
            required,
            |lsn, seq, operations| {
                let mut next = seq;
                if may_flush {
                    // Before a batch, never within one.
                    for tree in self.trees().values() {
                        let takes_it = self.replay_target(state, tree.id, lsn).is_some();
                        if !takes_it || !self.is_full_before(tree, lsn) {
                            continue;
                        }
                        // No table may survive what the log it comes from does not.
                        if !std::mem::replace(&mut is_synced, true) {
                            self.sync_replayed()?;
                        }
                        self.replace_replayed(tree, lsn, last_seq);
                        self.flush_oldest(tree)?;
                    }
                }
                for operation in Ops::new(operations) {
                    let (keyspace, op) = operation.map_err(|error| {
                        Error::corruption(&self.dir, None, "log record", error.to_string())
                    })?;
                    if let Some(tree) = self.replay_target(state, keyspace, lsn) {
                        let active = &tree.state().active;
                        self.insert_one(&active.memtable, &op, next, seq);
                        if !times.is_empty() {
                            active.note_entry(|| time_at(&times, lsn).min(now));
                        }
                    }
                    next += 1;
                }
                last_seq = last_seq.max(next - 1);
                self.commits.set_visible(last_seq);
                Ok(())
            },
        )?;
        self.commits.set_visible(last_seq);
        Ok((replayed, last_seq))
    }

    /// The tree of an operation, unless it was dropped or has the operation in its tables.
    fn replay_target(&self, state: &ManifestState, id: KeyspaceId, lsn: Lsn) -> Option<Arc<Tree>> {
        let keyspace = state.keyspaces.get(&id)?;
        if lsn < keyspace.flushed { None } else { self.tree(id) }
    }

    /// Whether replay has filled a memtable of a tree with what is before `lsn`.
    fn is_full_before(&self, tree: &Arc<Tree>, lsn: Lsn) -> bool {
        let state = tree.state();
        // A batch is not parted: its operations share a position.
        state.active.memtable.filled_bytes() as u64 >= self.buffer_bytes(tree)
            && state.active.begins != lsn
    }

    /// Makes all files of the log durable; nothing is added to them while they are replayed.
    fn sync_replayed(&self) -> Result<()> {
        let names = self.storage.list(&self.dir);
        for name in names.map_err(|error| Error::io("list", &self.dir, error))? {
            if crate::wal::segment_file_number(&name).is_some() {
                let path = self.dir.join(name);
                let synced = self.storage.open_segment(&path).and_then(|file| file.syncer().sync());
                synced.map_err(|error| Error::io("sync", &path, error))?;
            }
        }
        Ok(())
    }

    fn replace_replayed(&self, tree: &Arc<Tree>, lsn: Lsn, last_seq: SeqNo) {
        use crate::engine::tree::{Buffer, FullBuffer};
        let before = Arc::clone(&tree.state().active.memtable);
        let memtable = Tree::new_memtable(&tree.design(), &self.pool, Some(&before));
        tree.replace(|mut state| {
            let next = Arc::new(Buffer::new(memtable, lsn));
            let before = std::mem::replace(&mut state.active, next);
            let memtable = Arc::clone(&before.memtable);
            let since_micros = before.since_micros();
            let reason = FlushReason::Recovery;
            let full = FullBuffer { memtable, ends: lsn, last_seq, since_micros, reason };
            state.full.insert(0, Arc::new(full));
            state
        });
        debug_assert!(self.background == Background::Inline || self.visible() >= last_seq);
    }
}

/// When the segment was begun that holds a position.
fn time_at(times: &[(Lsn, u64)], lsn: Lsn) -> u64 {
    let after = times.partition_point(|(base, _)| *base <= lsn);
    times.get(after.saturating_sub(1)).map_or(0, |(_, micros)| *micros)
}
