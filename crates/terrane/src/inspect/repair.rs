//! Salvages the readable part of a damaged database into a new one.
//!
//! The damaged database is not modified. Every block of a table and every log record has its own
//! checksum, and every entry has a sequence number, so each valid block or record is usable
//! independently of the others. The newest readable version of each key wins.
//!
//! A readable manifest determines which tables are live, and which part of the log they contain.
//! Without a readable manifest, all tables and the whole log are used. A deleted value may then
//! reappear if its tombstone has already been compacted away.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_memtable::{Config, Memtable, Pool, RangeTombstones, SkipListConfig};

use super::problem::Problem;
use super::salvage::{SalvageSource, SalvagedEntry, salvage_log};
use super::table::open;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::keyspace::{Keyspace, KeyspaceOptions};
use crate::manifest::{ManifestState, load, replay};
use crate::options::{OpenMode, Options};
use crate::storage::{DiskStorage, Storage};
use crate::table::{Table, TableFileId};
use crate::types::{EntryKind, KeyspaceId, MAX_SEQ};
use crate::write_batch::WriteBatch;

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
}

/// The readable tables and the settings of a keyspace.
#[derive(Default)]
struct SalvagedKeyspace {
    name: String,
    design: Option<terrane_policy::Design>,
    tables: Vec<Arc<Table>>,
}

/// Salvages the readable part of the database in `dir` into a new database in `target`.
///
/// # Errors
/// Fails if nothing is readable, or the new database cannot be written. Unreadable parts are not
/// errors; [`RepairReport::problems`] lists them.
pub fn repair(dir: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<RepairReport> {
    let (dir, target) = (dir.as_ref(), target.as_ref());
    let mut report = RepairReport::default();
    let state = read_manifest(dir, &mut report);
    let mut salvaged = find_tables(dir, state.as_ref(), &mut report)?;
    let memtables = read_log(dir, state.as_ref(), &mut report)?;
    for id in memtables.keys() {
        salvaged.entry(*id).or_insert_with(|| unnamed(*id));
    }
    if salvaged.is_empty() {
        return Err(Error::NoDatabase { path: dir.into() });
    }
    let mut options = Options::new().open_mode(OpenMode::MustBeNew);
    if let Some(design) =
        salvaged.get(&crate::types::DEFAULT_KEYSPACE).and_then(|one| one.design.clone())
    {
        options = options.design(design);
    }
    let db = options.open(target)?;
    for (id, salvaged) in &salvaged {
        let mut keyspace = KeyspaceOptions::new();
        keyspace.design.clone_from(&salvaged.design);
        let keyspace = db.keyspace(&salvaged.name, keyspace)?;
        write_keyspace(&db, &keyspace, salvaged, memtables.get(id), &mut report)?;
    }
    db.close()?;
    Ok(report)
}

fn unnamed(id: KeyspaceId) -> SalvagedKeyspace {
    let name = if id == crate::types::DEFAULT_KEYSPACE {
        "default".to_owned()
    } else {
        format!("keyspace-{id}")
    };
    SalvagedKeyspace { name, ..SalvagedKeyspace::default() }
}

fn read_manifest(dir: &Path, report: &mut RepairReport) -> Option<ManifestState> {
    let loaded = load(&DiskStorage, dir);
    let found = loaded.and_then(|loaded| {
        if loaded.edits.is_empty() {
            return Err(Error::corruption(dir, None, "manifest", "it is missing"));
        }
        replay(&loaded, dir)
    });
    match found {
        Ok(found) => Some(found.state),
        Err(error) => {
            report.problems.push(Problem::of(&error, dir));
            let what = "without a manifest, all tables and the whole log are used; deleted values \
                        may reappear if their tombstones have been compacted away";
            report.problems.push(Problem::new(dir, what));
            None
        }
    }
}

/// Returns the tables of each keyspace that can be opened.
fn find_tables(
    dir: &Path,
    state: Option<&ManifestState>,
    report: &mut RepairReport,
) -> Result<BTreeMap<KeyspaceId, SalvagedKeyspace>> {
    let mut salvaged: BTreeMap<KeyspaceId, SalvagedKeyspace> = BTreeMap::new();
    let mut paths: Vec<(Option<KeyspaceId>, PathBuf)> = Vec::new();
    match state {
        Some(state) => {
            for (id, keyspace) in &state.keyspaces {
                let (name, design) = (keyspace.name.clone(), Some(keyspace.design.clone()));
                salvaged.insert(*id, SalvagedKeyspace { name, design, tables: Vec::new() });
                let files = keyspace.tables.values().map(|table| dir.join(table.file.file_name()));
                paths.extend(files.map(|path| (Some(*id), path)));
            }
        }
        None => {
            let names = DiskStorage.list(dir).map_err(|error| Error::io("list", dir, error))?;
            let tables = names.iter().filter(|name| TableFileId::of_file_name(name).is_some());
            paths.extend(tables.map(|name| (None, dir.join(name))));
        }
    }
    for (keyspace, path) in paths {
        let table = open(&path).and_then(|table| {
            let id = KeyspaceId(table.properties()?.keyspace);
            Ok((keyspace.unwrap_or(id), table))
        });
        match table {
            Ok((id, table)) => {
                report.tables += 1;
                salvaged.entry(id).or_insert_with(|| unnamed(id)).tables.push(table);
            }
            Err(error) => report.problems.push(Problem::of(&error, &path)),
        }
    }
    Ok(salvaged)
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
        // Only the newest versions will be read, so the whole log counts as one batch.
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

/// Writes the newest readable version of every key.
fn write_keyspace(
    db: &Db,
    keyspace: &Keyspace,
    salvaged: &SalvagedKeyspace,
    memtable: Option<&Arc<Memtable>>,
    report: &mut RepairReport,
) -> Result<()> {
    const BATCH_BYTES: usize = 1 << 20;
    let deleted = deleted_ranges(salvaged, memtable, report);
    let mut sources: Vec<SalvageSource> =
        salvaged.tables.iter().map(|table| SalvageSource::of_table(Arc::clone(table))).collect();
    sources.extend(memtable.map(SalvageSource::of_memtable));
    let mut heap = BinaryHeap::new();
    for (source, entries) in sources.iter_mut().enumerate() {
        heap.extend(entries.next(&mut report.problems).map(|next| HeapEntry { next, source }));
    }
    let mut batch = WriteBatch::new();
    let mut bytes = 0;
    let mut last: Option<Vec<u8>> = None;
    while let Some(HeapEntry { next, source }) = heap.pop() {
        let following = sources.get_mut(source).and_then(|from| from.next(&mut report.problems));
        heap.extend(following.map(|next| HeapEntry { next, source }));
        if last.as_ref() == Some(&next.key) {
            continue;
        }
        let is_deleted = next.kind == EntryKind::Tombstone
            || deleted.newest_covering(&next.key, MAX_SEQ).is_some_and(|at| at > next.seq);
        if !is_deleted {
            bytes += next.key.len() + next.value.len();
            batch.put_in(keyspace, &next.key, &next.value);
            report.keys += 1;
        }
        last = Some(next.key);
        if bytes > BATCH_BYTES {
            db.write(&batch)?;
            batch.clear();
            bytes = 0;
        }
    }
    db.write(&batch)
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
