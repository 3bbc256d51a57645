//! The tables of an ingest, from their creation until they are part of a tree.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use terrane_policy::ingest::depth;
use terrane_policy::{KeyRange, TableInfo, ValueFileId};

use super::gate::{Gate, Stopped};
use super::merge_io::{JobBuffers, MergeIo};
use crate::base::error::{Error, Result};
use crate::base::expiry::stored;
use crate::base::memory_ledger::Charge;
use crate::base::types::{EntryKind, SeqNo};
use crate::engine::catalog::Catalog;
use crate::engine::context::Context;
use crate::engine::cursor::{MergeCursor, RunCursor, Source};
use crate::engine::merge::Output;
use crate::engine::tree::Tree;
use crate::engine::version::OpenRun;
use crate::files::batch::Op;
use crate::files::table::{FinishedTable, Table};
use crate::files::value_file::{FinishedValueFile, ValueFile, ValueFiles};

/// The number of bytes after which an ingest waits for the I/O budget, as merges do.
const CHUNK_BYTES: u64 = 64 << 10;

/// The tables of an ingest. Their files are removed when this is dropped, unless the tables were added
/// to the tree.
pub(crate) struct IngestTables {
    context: Arc<Context>,
    catalog: Arc<Catalog>,
    io: MergeIo,
    gate: Arc<Gate>,
    /// The output bytes that were charged to the I/O budget.
    charged_bytes: u64,
    pub(super) tree: Arc<Tree>,
    /// The sequence number of all entries.
    pub(super) seq: SeqNo,
    output: Output<'static>,
    /// The key that was added last, if `has_last`.
    last: Vec<u8>,
    has_last: bool,
    /// The error that prevents further additions.
    failed: Option<Error>,
    pub(super) tables: Vec<FinishedTable>,
    pub(super) value_files: Vec<FinishedValueFile>,
    pub(super) is_added: bool,
    /// The bytes of keys and values, and the number of entries.
    pub(super) user_bytes: u64,
    entries: u64,
    _charge: Charge,
}

impl IngestTables {
    pub(super) fn new(
        context: &Arc<Context>,
        catalog: &Arc<Catalog>,
        gate: &Arc<Gate>,
        tree: &Arc<Tree>,
        seq: SeqNo,
    ) -> Self {
        let io = MergeIo::new(context, catalog);
        let buffers = JobBuffers::of_output(context.memory_plan.flush_bytes(), &tree.design());
        let charge = Charge::new(&context.ledger, |ledger| &ledger.jobs, buffers.bytes);
        let output = output(&io, tree, &Arc::default(), &[], &buffers);
        catalog.resize_cache();
        Self {
            context: Arc::clone(context),
            catalog: Arc::clone(catalog),
            io,
            gate: Arc::clone(gate),
            charged_bytes: 0,
            tree: Arc::clone(tree),
            seq,
            output,
            last: Vec::new(),
            has_last: false,
            failed: None,
            tables: Vec::new(),
            value_files: Vec::new(),
            is_added: false,
            user_bytes: 0,
            entries: 0,
            _charge: charge,
        }
    }

    /// Adds an entry after all others.
    ///
    /// # Errors
    /// The key is not above the last one; nothing changes. After any other error, nothing more can
    /// be added.
    pub(crate) fn add(&mut self, key: &[u8], value: &[u8], expires_at: Option<u64>) -> Result<()> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        if self.has_last && *key <= *self.last {
            return Err(Error::NotAscending { key: key.into(), last: (&*self.last).into() });
        }
        let now = || self.context.clock.now_micros();
        let by_default = || Some(now().saturating_add(self.tree.default_ttl().get()?));
        let expires_at = expires_at.or_else(by_default);
        let stored = expires_at.map(|expires_at| stored(expires_at, value));
        let (op, kind, bytes) = match &stored {
            Some(stored) => (Op::PutExpiring { key, stored }, EntryKind::Expiring, &stored[..]),
            None => (Op::Put { key, value }, EntryKind::Value, value),
        };
        op.check()?;
        self.context.health.check_writable()?;
        let added =
            self.output.add(key, self.seq, kind, bytes).and_then(|_| self.pace(CHUNK_BYTES));
        added.inspect_err(|error| self.failed = Some(error.clone()))?;
        self.last.clear();
        self.last.extend_from_slice(key);
        self.has_last = true;
        self.user_bytes += (key.len() + value.len()) as u64;
        self.entries += 1;
        Ok(())
    }

    /// If at least `chunk_bytes` were written since the last call, charges the I/O budget and waits
    /// until it allows more.
    ///
    /// # Errors
    /// [`Error::Closed`] if the database is being closed.
    fn pace(&mut self, chunk_bytes: u64) -> Result<()> {
        let written = self.output.written_bytes();
        let new = written.saturating_sub(self.charged_bytes);
        if new < chunk_bytes {
            return Ok(());
        }
        self.charged_bytes = written;
        let should_stop = || self.context.signals.is_stopping();
        self.gate.ingest(new, &should_stop).map_err(|Stopped| Error::Closed)
    }

    /// Returns the number of entries.
    pub(crate) fn entries(&self) -> u64 {
        self.entries
    }

    /// Completes the files and makes them durable, except for their names.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let Some(failed) = &self.failed {
            return Err(failed.clone());
        }
        self.tables = self.output.finish()?;
        self.pace(1)?;
        self.value_files = self.output.take_value_files();
        Ok(())
    }

    /// Returns the descriptions of the tables, in key order.
    pub(super) fn infos(&self) -> Vec<Arc<TableInfo>> {
        self.tables.iter().map(|table| Arc::clone(&table.info)).collect()
    }

    /// Returns the smallest range that contains all keys.
    pub(super) fn range(&self) -> KeyRange {
        let ranges = self.tables.iter().map(|table| &table.info.range);
        KeyRange::hull_of(ranges).unwrap_or_else(KeyRange::all)
    }

    /// Writes all tables again, with another sequence number.
    pub(super) fn rewrite(&mut self, seq: SeqNo) -> Result<()> {
        let Context { dir, tables: environment, memory_plan, .. } = &*self.context;
        let open =
            |table: &FinishedTable| Table::new(table.id, Arc::clone(&table.info), dir, environment);
        let run = OpenRun::of_tables(self.tables.iter().map(open).collect());
        let open = |file: &FinishedValueFile| {
            let opened = ValueFile::new(file.name, file.size_bytes, dir, environment);
            (file.name.number, opened)
        };
        let files: BTreeMap<_, _> = self.value_files.iter().map(open).collect();
        let relocated: Vec<_> = self.value_files.iter().map(|file| file.name.id()).collect();
        let source = Arc::new(ValueFiles::new(dir, files));
        let run = [Arc::new(run)];
        let buffers = JobBuffers::within(memory_plan.flush_bytes(), &run, &self.tree.design());
        let [run] = run;
        let output = output(&self.io, &self.tree, &source, &relocated, &buffers);
        let before = std::mem::replace(&mut self.output, output);
        self.charged_bytes = 0;
        let paths = before.paths().to_vec();
        let rewritten = self.copy(run, buffers.chunk_bytes, seq);
        self.catalog.abandon(paths);
        rewritten
    }

    fn copy(&mut self, run: Arc<OpenRun>, chunk_bytes: usize, seq: SeqNo) -> Result<()> {
        let run = RunCursor::read_ahead(run, chunk_bytes, None);
        let mut input = MergeCursor::new([Source::Run(run)]);
        input.seek_first()?;
        while input.is_valid() {
            self.output.add(input.key(), seq, input.kind(), input.value())?;
            self.pace(CHUNK_BYTES)?;
            input.next()?;
        }
        self.seq = seq;
        self.finish()
    }
}

/// Returns an output for the tables of an ingest. If the tables are rewritten, `source` contains
/// the value files of the input, whose values move to new files.
fn output(
    io: &MergeIo,
    tree: &Arc<Tree>,
    source: &Arc<ValueFiles>,
    relocated: &[ValueFileId],
    buffers: &JobBuffers,
) -> Output<'static> {
    // Compression and filter size depend on the level.
    let level = depth(tree.state().version.shape(), &tree.design(), 0);
    let config = io.output_config(tree, level, Vec::new(), None, buffers.parts_bytes_max);
    Output::new(config, io.value_config(tree, source, relocated))
}

impl Drop for IngestTables {
    fn drop(&mut self) {
        if !self.context.health.is_of_this_process() {
            // The files belong to the ingest of the parent.
            return;
        }
        let paths: Vec<PathBuf> = self.output.paths().to_vec();
        if !self.is_added && !paths.is_empty() {
            self.catalog.abandon(paths);
        }
    }
}

impl std::fmt::Debug for IngestTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IngestTables").field("seq", &self.seq).finish_non_exhaustive()
    }
}
