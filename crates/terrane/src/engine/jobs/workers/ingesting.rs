//! Adds the tables of an ingest to a tree.
//!
//! 1. The tables are complete, durable and named. The memtables of the tree are flushed, so that
//!    step 4 has little to flush.
//! 2. The flush of the tree is claimed: no other thread flushes it until the end.
//! 3. The ingest takes its sequence numbers ([`enter_ingest`]), which fixes its place in the order
//!    of writes. From now on other writers proceed, but become visible only after the ingest.
//! 4. Once the writes before the ingest are visible, a snapshot of them is held until the end,
//!    because merges may find the tables before the ingest is visible. These writes are flushed,
//!    and the log before the ingest is synced, so that the ingest does not survive a power failure
//!    that loses them.
//! 5. Policy places the tables, and one edit adds them. No conflicting compaction begins meanwhile.
//! 6. The ingest becomes visible.
//!
//! From step 3 to step 6 this thread never waits for a thread that may wait for a write: neither
//! for another job nor for the listener, whose events are deferred.
//!
//! After a crash before step 5 no edit refers to the tables, and the next opening removes them.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

use terrane_policy::ingest::{IngestedRun, place};
use terrane_policy::{Placement, RunId, TableId};

use super::Jobs;
use super::threads::PanicGuard;
use crate::base::error::{Error, Result};
use crate::base::event::{Event, enter_job};
use crate::base::stats::Counter;
use crate::base::types::{Lsn, SeqNo};
use crate::engine::catalog::{VersionEdit, discards};
use crate::engine::jobs::ingest::IngestTables;
use crate::engine::jobs::record::written_bytes;
use crate::engine::pipeline::ingest::{enter_ingest, promise_seq};
use crate::engine::pipeline::{WrittenKeys, broken};
use crate::engine::tree::Tree;
use crate::files::manifest::Change;
use crate::files::table::FinishedTable;

/// The exclusive right to flush a tree, until it is dropped.
struct FlushClaim<'a> {
    jobs: &'a Jobs,
    tree: &'a Tree,
}

impl Drop for FlushClaim<'_> {
    fn drop(&mut self) {
        self.tree.jobs().is_flushing = false;
        self.jobs.context.signals.end_job();
        self.jobs.context.signals.notify_done();
    }
}

/// Whether an ingest was added.
enum Attempt {
    /// It was added to these levels.
    Added(RangeInclusive<usize>),
    /// Other writes took sequence numbers above the number of the tables.
    Late,
}

impl Jobs {
    /// Begins an ingest into a tree.
    pub(crate) fn begin_ingest(&self, tree: &Arc<Tree>) -> Result<IngestTables> {
        self.context.check_space()?;
        check_exists(tree)?;
        if discards(&tree.design()) {
            let found = "flush=discard, which keeps no tables";
            return Err(Error::invalid("design", found, "one that keeps the data of the tree"));
        }
        let seq = promise_seq(&self.pipeline)?;
        Ok(IngestTables::new(&self.context, &self.catalog, &self.gate, tree, seq))
    }

    /// Adds the tables of an ingest to its tree. Returns once they are durable and visible.
    pub(crate) fn commit_ingest(&self, mut ingest: IngestTables) -> Result<()> {
        let _guard = PanicGuard::of_caller(&self.context, &self.catalog);
        let _caller = self.context.signals.enter_caller();
        self.context.check_space()?;
        ingest.finish()?;
        if ingest.tables.is_empty() {
            return Ok(());
        }
        let tree = Arc::clone(&ingest.tree);
        let _span = enter_job("ingest", tree.name());
        let start = Instant::now();
        let levels = loop {
            self.context.sync_dir()?;
            check_exists(&tree)?;
            self.flush(std::slice::from_ref(&tree), None)?;
            let claim = self.claim_flush(&tree)?;
            match self.try_add(&tree, &mut ingest)? {
                Attempt::Added(levels) => break levels,
                Attempt::Late => drop(claim),
            }
            ingest.rewrite(promise_seq(&self.pipeline)?)?;
        };
        let took = start.elapsed();
        let counters = &self.context.counters;
        counters.add(Counter::Ingests, 1);
        counters.add(Counter::IngestedBytes, ingest.user_bytes);
        let written_bytes = written_bytes(&ingest.tables, &ingest.value_files);
        counters.add(Counter::IngestBytesWritten, written_bytes);
        self.catalog.release_log();
        self.catalog.fill_reserve(0);
        self.catalog.notify_stalled_writers();
        self.context.events.emit(Event::TablesIngested {
            keyspace: tree.name().to_string(),
            entries: ingest.entries(),
            tables: ingest.tables.len() as u64,
            value_files: ingest.value_files.len() as u64,
            written_bytes,
            top_level: *levels.start() as u64,
            bottom_level: *levels.end() as u64,
            took_micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
        });
        Ok(())
    }

    fn claim_flush<'a>(&'a self, tree: &'a Tree) -> Result<FlushClaim<'a>> {
        loop {
            let seen = self.context.signals.done();
            {
                let mut jobs = tree.jobs();
                if !std::mem::replace(&mut jobs.is_flushing, true) {
                    self.context.signals.begin_job();
                    return Ok(FlushClaim { jobs: self, tree });
                }
            }
            self.context.health.check_writable()?;
            self.wait_or_work(seen)?;
        }
    }

    /// Adds the tables at the current end of the order of writes. The caller has claimed the tree's
    /// flush.
    fn try_add(&self, tree: &Arc<Tree>, ingest: &mut IngestTables) -> Result<Attempt> {
        let _held_back = self.context.events.hold_back();
        let _passed = self.pipeline.ingests().pass();
        let range = ingest.range();
        let end = range.end.as_deref().map(Into::into);
        let keys = WrittenKeys::Range(tree.id, (&*range.start).into(), end);
        let (pending, position) = {
            let mut state = self.pipeline.lock();
            self.context.health.check_writable()?;
            check_exists(tree)?;
            if self.pipeline.is_broken() {
                return Err(broken(&self.context));
            }
            if ingest.seq < state.next_seq {
                return Ok(Attempt::Late);
            }
            enter_ingest(&self.pipeline, &mut state, tree, keys, ingest.seq)
        };
        let (first, _) = pending.seqs();
        let (added, _held) = if self.pipeline.wait_visible(first - 1) {
            // The tables become part of the tree before the ingest is visible. Merges that begin in
            // between must keep the versions that the ingest hides.
            let held = self.pipeline.snapshot();
            (self.add(tree, ingest, position), Some(held))
        } else {
            (Err(broken(&self.context)), None)
        };
        if added.is_err() {
            tree.replace(|mut state| {
                state.readable_to = SeqNo::MAX;
                state
            });
        }
        tree.dead().forget();
        // Even after an error, because later writes wait for its numbers.
        pending.finish()?;
        added.map(Attempt::Added)
    }

    fn add(
        &self,
        tree: &Arc<Tree>,
        ingest: &mut IngestTables,
        position: Lsn,
    ) -> Result<RangeInclusive<usize>> {
        while let Some(oldest) = tree.state().immutables.last().cloned()
            && oldest.last_seq < ingest.seq
        {
            self.flusher.flush_for_ingest(tree, &oldest)?;
        }
        let synced = self.pipeline.sync_to(position);
        synced.inspect_err(|error| self.context.health.fail(error.clone()))?;
        let runs = {
            let mut jobs = tree.jobs();
            let version = Arc::clone(&tree.state().version);
            let (shape, busy) = (version.shape(), jobs.busy(version.shape()));
            let runs = place(shape, &tree.design(), &busy, &ingest.infos());
            // As for a flush, a new run of level 0 needs no claim.
            let below = runs.iter().filter(|run| run.level > 0);
            jobs.ingesting = below.map(IngestedRun::claim).collect();
            runs
        };
        let installed = self.install_ingest(tree, ingest, &runs, position);
        tree.jobs().ingesting.clear();
        installed?;
        ingest.is_added = true;
        let levels = || runs.iter().map(|run| run.level);
        Ok(levels().min().unwrap_or(0)..=levels().max().unwrap_or(0))
    }

    fn install_ingest(
        &self,
        tree: &Arc<Tree>,
        ingest: &IngestTables,
        runs: &[IngestedRun],
        position: Lsn,
    ) -> Result<()> {
        let tables: BTreeMap<TableId, &FinishedTable> =
            ingest.tables.iter().map(|table| (table.info.id, table)).collect();
        self.catalog.install(tree, |manifest| {
            let mut edit = VersionEdit::default();
            edit.ends_ingest = true;
            ingest.value_files.iter().for_each(|file| edit.add_value_file(tree.id, file));
            for run in runs {
                let id = match run.placement {
                    Placement::Join(id) => id,
                    Placement::NewRun => RunId(manifest.take_run_number()),
                };
                let placed = run.tables.iter().filter_map(|info| tables.get(&info.id));
                placed.for_each(|table| edit.add(tree.id, run.level, id, table));
            }
            let (keyspace, upto) = (tree.id, position);
            edit.changes.push(Change::Flushed { keyspace, upto });
            edit.changes.extend([Change::LastSeq(ingest.seq), Change::LastIngest(ingest.seq)]);
            Ok(edit)
        })
    }
}

fn check_exists(tree: &Tree) -> Result<()> {
    if tree.is_dropped() {
        return Err(Error::invalid("keyspace", "dropped", "one that exists"));
    }
    Ok(())
}
