//! From a memtable to tables in level 0.

use std::sync::Arc;
use std::time::Instant;

use terrane_policy::RunId;
use terrane_policy::memtable_choice::Choice;

use super::gate::Stopped;
use super::install::Installed;
use super::keyspaces::discards;
use super::tree::FullBuffer;
use super::write::given_up;
use super::{Engine, JobKind, Tree};
use crate::error::{Error, Result};
use crate::event::{Event, FlushReason};
use crate::iter::{MergeCursor, Source};
use crate::manifest::Change;
use crate::memory::Charge;
use crate::merge::{DropRules, OlderTables, Output, Piece, merge};
use crate::stats::Counter;
use crate::table::{FinishedTable, Warmer};

impl Engine {
    /// Flushes the oldest full memtable of a tree. Only one flush of a tree may run at a time.
    pub(super) fn flush_oldest(&self, tree: &Arc<Tree>) -> Result<()> {
        let Some(full) = tree.state().full.last().cloned() else { return Ok(()) };
        if let Some(Choice { kind, reason }) = tree.take_new_choice() {
            let (keyspace, kind) = (tree.name.to_string(), kind.to_string());
            self.events.emit(Event::MemtableChosen { keyspace, kind, reason });
        }
        let start = Instant::now();
        let is_retried = self.health.trouble(JobKind::Flush).is_some();
        let begun = (!is_retried).then(|| {
            self.events.emit(Event::FlushBegun {
                keyspace: tree.name.to_string(),
                reason: full.reason,
                entries: full.memtable.len() as u64,
                bytes: full.memtable.memory().used_bytes() as u64,
            })
        });
        let result = self.flush_full(tree, &full);
        if is_retried && result.is_err() {
            return result.map(drop);
        }
        let micros = u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX);
        let made = result.as_deref().unwrap_or_default();
        self.events.emit(Event::FlushEnded {
            begun,
            keyspace: tree.name.to_string(),
            tables: made.len() as u64,
            written_bytes: made.iter().map(|table| table.info.size_bytes).sum(),
            took_micros: micros,
            failure: result.as_ref().err().map(ToString::to_string),
        });
        result?;
        self.counters.add(Counter::Flushes, 1);
        self.counters.add(Counter::FlushMicros, micros);
        Ok(())
    }

    fn flush_full(&self, tree: &Arc<Tree>, full: &Arc<FullBuffer>) -> Result<Vec<FinishedTable>> {
        // Writers that have a place in it may still be inserting.
        if !self.commits.wait_visible(full.last_seq) {
            return Err(given_up());
        }
        let mut paths = Vec::new();
        let written = if discards(&tree.design()) {
            Ok(Vec::new())
        } else {
            self.write_memtable(tree, full, &mut paths)
        };
        let installed = written.and_then(|tables| {
            self.install_flush(tree, full, &tables)?;
            Ok(tables)
        });
        installed.inspect_err(|_| self.abandon(paths))
    }

    fn write_memtable(
        &self,
        tree: &Tree,
        full: &FullBuffer,
        paths: &mut Vec<std::path::PathBuf>,
    ) -> Result<Vec<FinishedTable>> {
        let memtable = &full.memtable;
        // A kind that is not in order is sorted here, where no writer waits.
        memtable.freeze();
        let mut input = MergeCursor::new(vec![Source::Memtable(memtable.cursor())]);
        input.seek_first()?;
        let version = Arc::clone(&tree.state().version);
        let older = version.runs().iter().map(|run| {
            run.tables().iter().map(|table| Arc::clone(table.info())).collect::<Vec<_>>()
        });
        let rules = DropRules::new(self.snapshots.list(), OlderTables::new(older.collect()));
        let design = tree.design();
        let _charge = Charge::new(&self.ledger, |ledger| &ledger.jobs, job_memory(&design));
        self.size_cache();
        let mut next_table = || self.next_table();
        let mut config =
            self.output_config(tree, 0, Vec::new(), full.since_micros, &mut next_table);
        config.warmer = Warmer::of_flush(&self.tables, self.settings.cache_warming);
        let mut output = Output::new(config);
        let fragments = memtable.range_tombstones().fragments_of(|seqs| rules.newest_of_each(seqs));
        let stop = || self.work.is_stopping();
        let mut go_on = |piece: Piece| {
            self.gate.flush(piece.written_bytes, &stop).map_err(|Stopped| Error::Closed)
        };
        let tables = merge(input, None, fragments, rules, &mut output, &mut go_on);
        paths.extend_from_slice(output.paths());
        let tables = tables?;
        if !tables.is_empty() {
            self.sync_dir()?;
        }
        let bytes = tables.iter().map(|table| table.info.size_bytes).sum();
        self.counters.add(Counter::FlushBytesWritten, bytes);
        self.count_refused(&tables);
        Ok(tables)
    }

    fn install_flush(
        &self,
        tree: &Arc<Tree>,
        full: &Arc<FullBuffer>,
        tables: &[FinishedTable],
    ) -> Result<()> {
        // A batch may have gone to several trees: after the loss of power it must not be there in
        // one, from its table, and not in another, from the log.
        if self.trees().len() > 1 {
            self.log_sync.sync(full.ends).inspect_err(|error| self.health.fail(error.clone()))?;
        }
        self.install(tree, |manifest| {
            let run = RunId(manifest.take_run_number());
            let mut installed = Installed::default();
            for table in tables {
                installed.add(tree.id, 0, run, table);
            }
            let (keyspace, upto) = (tree.id, full.ends);
            installed.changes.push(Change::Flushed { keyspace, upto });
            installed.changes.push(Change::LastSeq(full.last_seq));
            installed.flushed = Some(Arc::clone(full));
            Ok(installed)
        })?;
        self.release_log();
        self.tell_room();
        Ok(())
    }

    /// What is needed to write tables of a level.
    pub(super) fn output_config<'a>(
        &'a self,
        tree: &Tree,
        level: usize,
        grandparents: Vec<Arc<terrane_policy::TableInfo>>,
        oldest_tombstone_micros: Option<u64>,
        next_table: &'a mut dyn FnMut() -> (crate::table::TableFileId, std::path::PathBuf),
    ) -> crate::merge::OutputConfig<'a> {
        let design = tree.design();
        crate::merge::OutputConfig {
            storage: &*self.storage,
            table: crate::table::TableConfig {
                block_bytes: design.block_bytes as usize,
                filter_bits: design
                    .filter_bits_at(level, tree.state().version.shape().last_level()),
                compression: design.compression.get(level),
                keyspace: tree.id.0,
                sync_bytes: self.settings.sync_bytes(),
                access: self.settings.write_mode.access(),
            },
            warmer: None,
            table_bytes: design.table_bytes,
            grandparents,
            next_table,
            now_micros: self.clock.now_micros(),
            oldest_tombstone_micros,
        }
    }

    /// Counts tables that were to be written around the page cache, and were not.
    pub(super) fn count_refused(&self, made: &[FinishedTable]) {
        let refused = made.iter().filter(|table| table.direct_refused);
        self.counters.add(Counter::DirectRefused, refused.count() as u64);
    }

    /// A number and a path for a new table.
    pub(super) fn next_table(&self) -> (crate::table::TableFileId, std::path::PathBuf) {
        let mut manifest = self.lock_manifest();
        let number = manifest.as_mut().map_or(0, crate::manifest::Manifest::take_table_number);
        let id = crate::table::TableFileId { number, writer: self.writer_id };
        (id, self.dir.join(id.file_name()))
    }

    pub(super) fn sync_dir(&self) -> Result<()> {
        self.storage.sync_dir(&self.dir).map_err(|error| Error::io("sync", &self.dir, error))
    }

    /// Everything that is in memtables now is flushed. Returns when it is.
    pub(crate) fn flush(&self, trees: &[Arc<Tree>]) -> Result<()> {
        self.health.check_writable()?;
        let mut targets = Vec::new();
        {
            let mut writer = self.lock_writer();
            for tree in trees {
                if !tree.state().active.memtable.is_empty() {
                    self.rotate(&mut writer, tree, FlushReason::Requested);
                }
                let newest = tree.state().full.first().map(|full| full.last_seq);
                targets.extend(newest.map(|last_seq| (Arc::clone(tree), last_seq)));
            }
        }
        let is_flushed = || {
            Ok(targets.iter().all(|(tree, last_seq)| {
                tree.is_dropped()
                    || !tree.state().full.iter().any(|full| full.last_seq <= *last_seq)
            }))
        };
        self.work_until(&[JobKind::Flush], is_flushed)
    }
}

/// What a flush or a compaction takes beside its input: buffers of the writer, filter hashes.
pub(super) fn job_memory(design: &terrane_policy::Design) -> usize {
    let entries_guess = design.table_bytes / 100;
    (512 << 10) + usize::try_from(entries_guess * 8).unwrap_or(0)
}
