//! Salvages the readable part of a damaged database into a new one.
//!
//! The damaged database is not modified. Every block of a table and every log record has its own
//! checksum, and every entry has a sequence number, so each valid block or record is usable
//! independently of the others. The newest readable version of each key wins. An entry whose
//! separated value cannot be read counts as unreadable.
//!
//! A readable manifest determines which tables are live, and which part of the log they contain. If
//! it cannot be read, or lost its last edits, all tables and the whole log are used. A deleted
//! value may then reappear if its tombstone has already been compacted away. So may the complete
//! tables of an uncommitted ingest: without the manifest they cannot be distinguished from those of
//! a committed ingest, whose entries are nowhere else, so they are used and reported.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_memtable::{Config, Memtable, Pool, RangeTombstones, SkipListConfig};

use super::key_writer::KeyWriter;
use super::lost_range::LostRange;
use super::problem::{Problem, Progress};
use super::salvage::{SalvageSource, SalvagedEntry, salvage_log};
use super::salvaged_tables::SalvagedTables;
use super::values::DirectoryValues;
use crate::api::db::Db;
use crate::api::keyspace::{Keyspace, KeyspaceOptions};
use crate::base::error::{Error, Result};
use crate::base::types::{EntryKind, KeyspaceId, MAX_SEQ};
use crate::files::consistency;
use crate::files::log_directory;
use crate::files::manifest::{ManifestState, load, replay};
use crate::files::storage::DiskStorage;
use crate::files::table::Table;
use crate::files::wal::LogNotes;
use crate::options::{OpenMode, Options};

/// The result of a repair.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Tables that were read, entirely or in part.
    pub tables: u64,
    /// Operations read from the log.
    pub log_operations: u64,
    /// Keys in the new database.
    pub keys: u64,
    /// The damage: parts that could not be read.
    pub problems: Vec<Problem>,
    /// The key ranges in which table entries could not be read, in ascending order. Keys that only
    /// the log contained are not included.
    pub lost: Vec<LostRange>,
}

/// Counts the bytes of entries.
struct Meter<'a> {
    done_bytes: u64,
    total_bytes: u64,
    progress: &'a mut dyn FnMut(Progress),
}

impl Meter<'_> {
    fn add(&mut self, bytes: usize) {
        /// Progress is reported once per this many bytes, because entries are small.
        const EVERY_BYTES: u64 = 256 << 10;
        let before = self.done_bytes;
        self.done_bytes += bytes as u64;
        if before / EVERY_BYTES != self.done_bytes / EVERY_BYTES {
            let done_bytes = self.done_bytes.min(self.total_bytes);
            (self.progress)(Progress { done_bytes, total_bytes: self.total_bytes });
        }
    }
}

/// The readable tables and the settings of a keyspace.
struct SalvagedKeyspace {
    name: String,
    design: Option<terrane_policy::Design>,
    ttl: Option<Duration>,
    merge_operator: Option<String>,
    compaction_filter: Option<String>,
    tables: Vec<Arc<Table>>,
}

/// Salvages the readable part of the database in `dir` into a new database in `target`.
///
/// # Errors
/// Fails if nothing is readable, or the new database cannot be written. Unreadable parts are not
/// errors; [`RepairReport::problems`] lists them.
pub fn repair(dir: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<RepairReport> {
    repair_with_progress(dir, target, &mut |_| {})
}

/// Does the same as [`repair`], and reports progress as salvaged entry bytes out of the tables'
/// bytes.
///
/// # Errors
/// See [`repair`].
pub fn repair_with_progress(
    dir: impl AsRef<Path>,
    target: impl AsRef<Path>,
    progress: &mut dyn FnMut(Progress),
) -> Result<RepairReport> {
    let (dir, target) = (dir.as_ref(), target.as_ref());
    let mut report = RepairReport::default();
    let manifest = read_manifest(dir, &mut report);
    let mut tables = SalvagedTables::find(dir, manifest.newest(), &mut report.problems)?;
    report.tables = tables.count();
    if manifest.newest().is_none() {
        report.problems.extend(tables.uncertain_ingests(dir, manifest.state.as_ref()));
    }
    if let Some(state) = manifest.newest() {
        report.lost.extend(tables.missing(dir, state));
    }
    let memtables = read_log(dir, manifest.newest(), &mut report)?;
    let known = manifest.state.iter().flat_map(|state| state.keyspaces.keys().copied());
    let ids: BTreeSet<KeyspaceId> =
        known.chain(tables.keyspaces()).chain(memtables.keys().copied()).collect();
    let salvaged: BTreeMap<KeyspaceId, SalvagedKeyspace> = ids
        .into_iter()
        .map(|id| (id, salvaged_keyspace(id, manifest.state.as_ref(), tables.take(id))))
        .collect();
    if salvaged.is_empty() {
        return Err(Error::NoDatabase { path: dir.into() });
    }
    let mut options = Options::new().open_mode(OpenMode::MustBeNew).any_functions();
    if let Some(design) =
        salvaged.get(&crate::base::types::DEFAULT_KEYSPACE).and_then(|one| one.design.clone())
    {
        options = options.design(design);
    }
    let db = options.open(target)?;
    let mut values = DirectoryValues::find(dir)?;
    let tables = salvaged.values().flat_map(|one| &one.tables);
    let total_bytes = tables.map(|table| table.info().size_bytes).sum();
    let mut meter = Meter { done_bytes: 0, total_bytes, progress };
    for (id, salvaged) in &salvaged {
        let mut keyspace = KeyspaceOptions::new();
        keyspace.design = salvaged.design.clone().map(Into::into);
        let keyspace = db.keyspace(&salvaged.name, keyspace)?;
        if let Some(operator) = &salvaged.merge_operator {
            keyspace.set_merge_operator(operator)?;
        }
        keyspace.set_compaction_filter(salvaged.compaction_filter.as_deref())?;
        let sources = (salvaged, memtables.get(id), &mut values);
        write_keyspace(&db, &keyspace, sources, (&mut report, &mut meter))?;
        // Set last, because otherwise the values that are put would expire.
        keyspace.set_ttl(salvaged.ttl)?;
    }
    report.problems.extend(values.take_problems());
    report.lost.sort();
    db.close()?;
    Ok(report)
}

fn salvaged_keyspace(
    id: KeyspaceId,
    state: Option<&ManifestState>,
    tables: Vec<Arc<Table>>,
) -> SalvagedKeyspace {
    let known = state.and_then(|state| state.keyspaces.get(&id));
    let name = match known {
        Some(keyspace) => keyspace.name.clone(),
        None if id == crate::base::types::DEFAULT_KEYSPACE => "default".to_owned(),
        None => format!("keyspace-{id}"),
    };
    let ttl = known.map(|keyspace| keyspace.ttl_micros).filter(|micros| *micros > 0);
    SalvagedKeyspace {
        name,
        design: known.map(|keyspace| (*keyspace.design).clone()),
        ttl: ttl.map(Duration::from_micros),
        merge_operator: known.and_then(|keyspace| keyspace.merge_operator.clone()),
        compaction_filter: known.and_then(|keyspace| keyspace.compaction_filter.clone()),
        tables,
    }
}

/// The state in the manifest, as far as it could be read.
#[derive(Default)]
struct SalvagedManifest {
    state: Option<ManifestState>,
    /// True if the state is the newest one, so that it determines the live tables.
    is_newest: bool,
}

impl SalvagedManifest {
    /// Returns the state if it determines the live tables and the part of the log that they
    /// contain.
    fn newest(&self) -> Option<&ManifestState> {
        self.state.as_ref().filter(|_| self.is_newest)
    }
}

fn read_manifest(dir: &Path, report: &mut RepairReport) -> SalvagedManifest {
    let loaded = load(&DiskStorage, dir);
    let found = loaded.and_then(|loaded| {
        if loaded.edits.is_empty() {
            return Err(Error::corruption(dir, None, "manifest", "it is missing"));
        }
        replay(&loaded, dir)
    });
    let manifest = match found {
        Ok(found) => {
            // Damage to the log is reported when the log is read.
            let notes = log_directory::find(&DiskStorage, dir);
            let notes =
                notes.and_then(|dir| LogNotes::read(&DiskStorage, &dir)).unwrap_or_default();
            let related = consistency::check_manifest(&notes, &found, dir);
            let is_newest = related.is_ok();
            report.problems.extend(related.err().map(|error| Problem::of(&error, dir)));
            SalvagedManifest { state: Some(found.state), is_newest }
        }
        Err(error) => {
            report.problems.push(Problem::of(&error, dir));
            SalvagedManifest::default()
        }
    };
    if !manifest.is_newest {
        let what = "without the newest manifest, all tables and the whole log are used; deleted \
                    values may reappear if their tombstones have been compacted away";
        report.problems.push(Problem::new(dir, what));
    }
    manifest
}

/// Returns the operations in the log that tables do not contain, by keyspace.
fn read_log(
    dir: &Path,
    state: Option<&ManifestState>,
    report: &mut RepairReport,
) -> Result<BTreeMap<KeyspaceId, Arc<Memtable>>> {
    let mut memtables: BTreeMap<KeyspaceId, Arc<Memtable>> = BTreeMap::new();
    let pool = Pool::new(0);
    let problems = salvage_log(dir, state, |id, seq, op| {
        let kind = Config::SkipList(SkipListConfig { branching: 4, height: 12 });
        let memtable = memtables.entry(id).or_insert_with(|| Memtable::new(kind, &pool));
        // Only the newest versions will be read, so the whole log is treated as one batch.
        crate::engine::insert_one(memtable, op, seq, 0, || 0);
        report.log_operations += 1;
    })?;
    report.problems.extend(problems);
    Ok(memtables)
}

/// The next entry of a source.
struct HeapEntry {
    next: SalvagedEntry,
    source: usize,
}

impl HeapEntry {
    /// Orders by key, and the versions of a key from newest to oldest.
    fn rank(&self) -> (&[u8], Reverse<u64>) {
        (&self.next.key, Reverse(self.next.seq))
    }
}

impl Ord for HeapEntry {
    /// Reversed because a heap returns the largest element first.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.rank().cmp(&self.rank())
    }
}

impl PartialOrd for HeapEntry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for HeapEntry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for HeapEntry {}

/// The tables, the memtable and the value files of a keyspace.
type KeyspaceSources<'a> =
    (&'a SalvagedKeyspace, Option<&'a Arc<Memtable>>, &'a mut DirectoryValues);

/// Writes the newest readable version of every key.
fn write_keyspace(
    db: &Db,
    keyspace: &Keyspace,
    (salvaged, memtable, values): KeyspaceSources<'_>,
    (report, meter): (&mut RepairReport, &mut Meter<'_>),
) -> Result<()> {
    let deleted = deleted_ranges(salvaged, memtable, report);
    let mut sources: Vec<SalvageSource> =
        salvaged.tables.iter().map(|table| SalvageSource::of_table(Arc::clone(table))).collect();
    sources.extend(memtable.map(SalvageSource::of_memtable));
    let mut heap = BinaryHeap::new();
    for (source, entries) in sources.iter_mut().enumerate() {
        let first = entries.next(values, &mut report.problems);
        heap.extend(first.map(|next| HeapEntry { next, source }));
    }
    let flushed = salvaged.tables.iter().map(|table| table.info().largest_seq).max().unwrap_or(0);
    let mut writer = KeyWriter::new(db, keyspace);
    while let Some(HeapEntry { next, source }) = heap.pop() {
        let from = sources.get_mut(source);
        let following = from.and_then(|from| from.next(values, &mut report.problems));
        heap.extend(following.map(|next| HeapEntry { next, source }));
        meter.add(next.key.len() + next.value.len());
        let is_deleted = next.kind == EntryKind::Tombstone
            || deleted.newest_covering(&next.key, MAX_SEQ).is_some_and(|at| at > next.seq);
        // The log may contain operands that tables contain as well, combined with others.
        let is_flushed = source >= salvaged.tables.len() && next.seq <= flushed;
        if !(is_flushed && next.kind == EntryKind::Operand) {
            writer.add(next, is_deleted)?;
        }
    }
    for source in sources {
        report.lost.extend(source.into_losses(&salvaged.name));
    }
    let (keys, lost_operands) = writer.finish()?;
    report.keys += keys;
    if lost_operands > 0 {
        let what = format!(
            "{lost_operands} operands of keyspace '{}', whose merge operator is unknown",
            salvaged.name
        );
        report.problems.push(Problem::new(values.dir(), what));
    }
    Ok(())
}

fn deleted_ranges(
    salvaged: &SalvagedKeyspace,
    memtable: Option<&Arc<Memtable>>,
    report: &mut RepairReport,
) -> RangeTombstones {
    let all = RangeTombstones::new();
    let mut fragments = memtable.map(|one| one.range_tombstones().fragments()).unwrap_or_default();
    for table in &salvaged.tables {
        match table.fragments() {
            Ok(more) => fragments.extend(more.iter().cloned()),
            Err(error) => report.problems.push(Problem::of(&error, table.path())),
        }
    }
    fragments.iter().for_each(|fragment| all.add(fragment));
    all
}
