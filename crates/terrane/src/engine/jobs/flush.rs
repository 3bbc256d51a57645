//! From a memtable to tables in level 0.
//!
//! | module | one line |
//! |---|---|
//! | `target` | where they go: policy's answer, and a hold on what it takes |
//! | `tables` | the memtable, and what it is merged with, into tables |

mod tables;
mod target;

use std::sync::Arc;
use std::time::Instant;

use terrane_policy::memtable_choice::Choice;
use terrane_policy::{Compaction, RunId, TableInfo};

use crate::engine::catalog::install::Installed;
use crate::engine::catalog::keyspaces::discards;
use crate::engine::tree::FullBuffer;
use crate::engine::write::given_up;
use crate::engine::{Engine, JobKind, Tree};
use crate::error::{Error, Result};
use crate::event::{Event, FlushReason};
use crate::manifest::{Change, JobRecord, describe};
use crate::stats::Counter;
use crate::table::FinishedTable;
use tables::Written;

/// What a flush did.
#[derive(Debug, Default)]
struct Flushed {
    tables: Vec<FinishedTable>,
    /// Tables of level 0 that are in these now, and bytes of them that were read.
    merged: u64,
    read_bytes: u64,
    /// Why there is a new run, where the design would rather have had none.
    apart: Option<String>,
}

/// What becomes true at the end of a flush.
#[derive(Debug, Default)]
struct Made<'a> {
    /// The run of level 0 that the tables go into; none for a new one.
    run: Option<RunId>,
    tables: &'a [FinishedTable],
    /// What they take the place of.
    taken: &'a [Arc<TableInfo>],
    record: Option<JobRecord>,
}

impl Engine {
    /// Flushes the oldest full memtable of a tree. Only one flush of a tree may run at a time.
    pub(crate) fn flush_oldest(&self, tree: &Arc<Tree>) -> Result<()> {
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
        let failure = result.as_ref().err().map(ToString::to_string);
        let (flushed, result) = match result {
            Ok(flushed) => (flushed, Ok(())),
            Err(error) => (Flushed::default(), Err(error)),
        };
        self.events.emit(Event::FlushEnded {
            begun,
            keyspace: tree.name.to_string(),
            tables: flushed.tables.len() as u64,
            written_bytes: bytes_of(&flushed.tables),
            merged_tables: flushed.merged,
            read_bytes: flushed.read_bytes,
            new_run_reason: flushed.apart,
            took_micros: micros,
            failure,
        });
        result?;
        self.counters.add(Counter::Flushes, 1);
        self.counters.add(Counter::FlushMicros, micros);
        Ok(())
    }

    fn flush_full(&self, tree: &Arc<Tree>, full: &Arc<FullBuffer>) -> Result<Flushed> {
        // Writers that have a place in it may still be inserting.
        if !self.commits.wait_visible(full.last_seq) {
            return Err(given_up());
        }
        if discards(&tree.design()) {
            self.install_flush(tree, full, Made::default())?;
            return Ok(Flushed::default());
        }
        let start = Instant::now();
        // A kind that is not in order is sorted here, where no writer waits.
        full.memtable.freeze();
        let mut paths = Vec::new();
        let mut target = self.flush_target(tree, full)?;
        let mut written = self.write_flush(tree, full, &target, &mut paths);
        if let Err(error) = &written
            && target.merge().is_some()
            && !matches!(error, Error::Closed)
        {
            // What is in memory does not wait for tables that cannot be read, nor for the room that
            // writing them again takes.
            self.abandon(std::mem::take(&mut paths));
            target.merge_failed(error);
            written = self.write_flush(tree, full, &target, &mut paths);
        }
        let installed = written.and_then(|written| {
            let taken = target.taken();
            let job = target.merge().filter(|_| !taken.is_empty());
            let record = job.map(|merge| self.flush_record(tree, merge, &taken, &written, start));
            let (run, tables) = (target.run(), &written.tables[..]);
            self.install_flush(tree, full, Made { run, tables, taken: &taken, record })?;
            Ok(written)
        });
        let Written { tables, read_bytes } = installed.inspect_err(|_| self.abandon(paths))?;
        if target.merge().is_some() {
            self.counters.add(Counter::FlushesMerged, 1);
        }
        if target.is_fallback() {
            self.counters.add(Counter::FlushesApart, 1);
        }
        Ok(Flushed {
            tables,
            read_bytes,
            merged: target.taken().len() as u64,
            apart: target.apart(),
        })
    }

    fn install_flush(
        &self,
        tree: &Arc<Tree>,
        full: &Arc<FullBuffer>,
        made: Made<'_>,
    ) -> Result<()> {
        // A batch may have gone to several trees: after the loss of power it must not be there in
        // one, from its table, and not in another, from the log.
        if self.trees().len() > 1 {
            self.log_sync.sync(full.ends).inspect_err(|error| self.health.fail(error.clone()))?;
        }
        self.install(tree, |manifest| {
            let run = made.run.unwrap_or_else(|| RunId(manifest.take_run_number()));
            let mut installed = Installed::default();
            for taken in made.taken {
                installed.remove(tree.id, taken.id);
                installed.obsolete.push(taken.id);
            }
            for table in made.tables {
                installed.add(tree.id, 0, run, table);
            }
            let (keyspace, upto) = (tree.id, full.ends);
            installed.changes.push(Change::Flushed { keyspace, upto });
            installed.changes.push(Change::LastSeq(full.last_seq));
            installed.changes.extend(made.record.map(Change::Job));
            installed.flushed = Some(Arc::clone(full));
            Ok(installed)
        })?;
        if !made.taken.is_empty() {
            tree.dead().clear();
        }
        self.release_log();
        self.tell_room();
        Ok(())
    }

    /// What is remembered of a flush that merged.
    fn flush_record(
        &self,
        tree: &Tree,
        merge: &Compaction,
        taken: &[Arc<TableInfo>],
        written: &Written,
        start: Instant,
    ) -> JobRecord {
        let now = self.clock.now_micros();
        let oldest = taken.iter().filter_map(|table| table.oldest_tombstone_micros).min();
        let keeps = written.tables.iter().any(|made| made.info.has_tombstones());
        JobRecord {
            keyspace: tree.id,
            ended_micros: now,
            took_micros: u64::try_from(start.elapsed().as_micros()).unwrap_or(u64::MAX),
            tables_rewritten: taken.len() as u64,
            tables_moved: 0,
            predicted_bytes: merge.input_bytes(),
            read_bytes: written.read_bytes,
            written_bytes: bytes_of(&written.tables),
            persisted_micros: oldest.filter(|_| !keeps).map(|since| now.saturating_sub(since)),
            what: describe(merge),
            why: merge.reason.to_string(),
        }
    }

    /// What is needed to write tables of a level.
    pub(crate) fn output_config<'a>(
        &'a self,
        tree: &Tree,
        level: usize,
        grandparents: Vec<Arc<TableInfo>>,
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
    pub(crate) fn count_refused(&self, made: &[FinishedTable]) {
        let refused = made.iter().filter(|table| table.direct_refused);
        self.counters.add(Counter::DirectRefused, refused.count() as u64);
    }

    /// A number and a path for a new table.
    pub(crate) fn next_table(&self) -> (crate::table::TableFileId, std::path::PathBuf) {
        let mut manifest = self.lock_manifest();
        let number = manifest.as_mut().map_or(0, crate::manifest::Manifest::take_table_number);
        let id = crate::table::TableFileId { number, writer: self.writer_id };
        (id, self.dir.join(id.file_name()))
    }

    pub(crate) fn sync_dir(&self) -> Result<()> {
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

fn bytes_of(tables: &[FinishedTable]) -> u64 {
    tables.iter().map(|table| table.info.size_bytes).sum()
}

/// What a flush or a compaction takes beside its input: buffers of the writer, filter hashes.
pub(crate) fn job_memory(design: &terrane_policy::Design) -> usize {
    let entries_guess = design.table_bytes / 100;
    (512 << 10) + usize::try_from(entries_guess * 8).unwrap_or(0)
}
