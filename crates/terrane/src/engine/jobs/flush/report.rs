//! The events of a flush. A flush that fails repeatedly reports its failure once.

use std::sync::Arc;
use std::time::Instant;

use terrane_policy::memtable_choice::MemtableSelection;

use crate::base::error::Error;
use crate::base::event::Event;
use crate::base::stats::{Counter, Timed};
use crate::engine::context::{Context, JobKind};
use crate::engine::jobs::record::written_bytes;
use crate::engine::tree::{ImmutableMemtable, Tree};
use crate::files::table::FinishedTable;
use crate::files::value_file::FinishedValueFile;

/// The result of a flush.
#[derive(Debug, Default)]
pub(super) struct FlushResult {
    pub(super) tables: Vec<FinishedTable>,
    pub(super) value_files: Vec<FinishedValueFile>,
    /// The number of tables of level 0 that were merged into `tables`, and the bytes read from
    /// them.
    pub(super) merged: u64,
    pub(super) read_bytes: u64,
    /// Why the flush created a new run although the design merges flushes with level 0.
    pub(super) new_run_reason: Option<String>,
}

/// A flush that has begun.
pub(super) struct FlushReport<'a> {
    context: &'a Context,
    keyspace: Arc<str>,
    start: Instant,
    /// The number of the event; `None` if the flush repeats one that failed.
    begun: Option<u64>,
}

impl<'a> FlushReport<'a> {
    /// Reports that a flush begins.
    pub(super) fn begin(context: &'a Context, tree: &Tree, immutable: &ImmutableMemtable) -> Self {
        let keyspace = Arc::clone(tree.name());
        if let Some(MemtableSelection { kind, reason, .. }) = tree.take_new_choice() {
            let (keyspace, kind) = (keyspace.to_string(), kind.to_string());
            context.events.emit(Event::MemtableChosen { keyspace, kind, reason });
        }
        let is_retried = context.health.failure_of(JobKind::Flush).is_some();
        let begun = (!is_retried).then(|| {
            context.events.emit(Event::FlushBegun {
                keyspace: keyspace.to_string(),
                reason: immutable.reason,
                entries: immutable.memtable.len() as u64,
                bytes: immutable.memtable.memory().used_bytes() as u64 + immutable.pointed_bytes(),
            })
        });
        Self { context, keyspace, start: Instant::now(), begun }
    }

    /// Reports that the flush has ended.
    pub(super) fn end(self, result: Result<&FlushResult, &Error>) {
        let Self { context, keyspace, start, begun } = self;
        if begun.is_none() && result.is_err() {
            return;
        }
        let took = start.elapsed();
        let took_micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let failure = result.err().map(ToString::to_string);
        let nothing = FlushResult::default();
        let flushed = result.unwrap_or(&nothing);
        context.events.emit(Event::FlushEnded {
            begun,
            keyspace: keyspace.to_string(),
            tables: flushed.tables.len() as u64,
            written_bytes: written_bytes(&flushed.tables, &flushed.value_files),
            merged_tables: flushed.merged,
            read_bytes: flushed.read_bytes,
            new_run_reason: flushed.new_run_reason.clone(),
            took_micros,
            failure,
        });
        if result.is_ok() {
            context.counters.add(Counter::Flushes, 1);
            context.counters.add(Counter::FlushMicros, took_micros);
            context.counters.durations.note(Timed::Flush, took);
        }
    }
}
