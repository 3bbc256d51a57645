//! Salvages what can be read of a damaged database into a new one.
//!
//! The damaged database is not touched. Every block of a table and every record of the log has a
//! checksum of its own, and every entry a sequence number, so what is whole is used, whatever else
//! is not: of each key the newest version that can be read wins.
//!
//! Where the manifest can be read, it says which tables count, and what of the log is in them. Where
//! it cannot, all tables and all of the log are used; then a value that had been deleted, and whose
//! tombstone was already compacted away, may come back.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_memtable::{Config, Memtable, Pool, RangeTombstones};

use super::Problem;
use super::salvage::{Salvaged, TableSalvage, salvage_log};
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

/// What a repair has saved, and what not.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RepairReport {
    /// Tables that were read, whole or in part.
    pub tables: u64,
    /// Operations that were read from the log.
    pub log_operations: u64,
    /// Keys that the new database holds.
    pub keys: u64,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

/// What is known of one keyspace.
#[derive(Default)]
struct Remains {
    name: String,
    design: Option<terrane_policy::Design>,
    tables: Vec<Arc<Table>>,
}

/// Salvages what can be read of the database in `dir` into a new one in `target`.
///
/// # Errors
/// There is nothing to be salvaged, or the new database cannot be written. What could not be read
/// is part of the answer.
pub fn repair(dir: impl AsRef<Path>, target: impl AsRef<Path>) -> Result<RepairReport> {
    let (dir, target) = (dir.as_ref(), target.as_ref());
    let mut report = RepairReport::default();
    let state = read_manifest(dir, &mut report);
    let mut remains = find_tables(dir, state.as_ref(), &mut report)?;
    let memtables = read_log(dir, state.as_ref(), &mut report)?;
    for id in memtables.keys() {
        remains.entry(*id).or_insert_with(|| unnamed(*id));
    }
    if remains.is_empty() {
        let found = format!("nothing in {} that could be read", dir.display());
        return Err(Error::invalid("database", found, "a database, damaged or not"));
    }
    let mut options = Options::new().open_mode(OpenMode::MustBeNew);
    if let Some(design) =
        remains.get(&crate::types::DEFAULT_KEYSPACE).and_then(|one| one.design.clone())
    {
        options = options.design(design);
    }
    let db = options.open(target)?;
    for (id, remains) in &remains {
        let mut keyspace = KeyspaceOptions::new();
        keyspace.design.clone_from(&remains.design);
        let keyspace = db.keyspace(&remains.name, keyspace)?;
        write_keyspace(&db, &keyspace, remains, memtables.get(id), &mut report)?;
    }
    db.close()?;
    Ok(report)
}

fn unnamed(id: KeyspaceId) -> Remains {
    let name = if id == crate::types::DEFAULT_KEYSPACE {
        "default".to_owned()
    } else {
        format!("keyspace-{id}")
    };
    Remains { name, ..Remains::default() }
}

fn read_manifest(dir: &Path, report: &mut RepairReport) -> Option<ManifestState> {
    let loaded = load(&DiskStorage, dir);
    let found = loaded.and_then(|loaded| {
        if loaded.edits.is_empty() {
            return Err(Error::corruption(dir, None, "manifest", "there is none"));
        }
        replay(&loaded, dir)
    });
    match found {
        Ok(found) => Some(found.state),
        Err(error) => {
            report.problems.push(Problem::of(&error, dir));
            let what = "without a manifest, all tables and all of the log are used; values whose \
                        deletion was compacted away may come back";
            report.problems.push(Problem::new(dir, what));
            None
        }
    }
}

/// The tables of each keyspace that can be opened.
fn find_tables(
    dir: &Path,
    state: Option<&ManifestState>,
    report: &mut RepairReport,
) -> Result<BTreeMap<KeyspaceId, Remains>> {
    let mut remains: BTreeMap<KeyspaceId, Remains> = BTreeMap::new();
    let mut paths: Vec<(Option<KeyspaceId>, PathBuf)> = Vec::new();
    match state {
        Some(state) => {
            for (id, keyspace) in &state.keyspaces {
                let (name, design) = (keyspace.name.clone(), Some(keyspace.design.clone()));
                remains.insert(*id, Remains { name, design, tables: Vec::new() });
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
                remains.entry(id).or_insert_with(|| unnamed(id)).tables.push(table);
            }
            Err(error) => report.problems.push(Problem::of(&error, &path)),
        }
    }
    Ok(remains)
}

/// What the log holds and tables do not, by keyspace.
fn read_log(
    dir: &Path,
    state: Option<&ManifestState>,
    report: &mut RepairReport,
) -> Result<BTreeMap<KeyspaceId, Arc<Memtable>>> {
    let mut memtables: BTreeMap<KeyspaceId, Arc<Memtable>> = BTreeMap::new();
    let pool = Pool::new(0);
    let problems = salvage_log(dir, state, |id, seq, op| {
        let kind = Config::SkipList { branching: 4, height: 12 };
        let memtable = memtables.entry(id).or_insert_with(|| Memtable::new(kind, &pool));
        // Only what is newest will be asked for: all of the log is as one batch.
        crate::engine::insert_one(memtable, op, seq, 0, || 0);
        report.log_operations += 1;
    })?;
    report.problems.extend(problems);
    Ok(memtables)
}

/// A source of entries, with its next one.
struct Head {
    next: Salvaged,
    source: usize,
}

/// Entries come by key, and within a key from new to old.
impl Head {
    fn place(&self) -> (&[u8], Reverse<u64>) {
        (&self.next.key, Reverse(self.next.seq))
    }
}

impl Ord for Head {
    /// Reversed, for a heap gives the largest first.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.place().cmp(&self.place())
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Head {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Head {}

/// Writes the newest readable version of every key.
fn write_keyspace(
    db: &Db,
    keyspace: &Keyspace,
    remains: &Remains,
    memtable: Option<&Arc<Memtable>>,
    report: &mut RepairReport,
) -> Result<()> {
    const BATCH_BYTES: usize = 1 << 20;
    let deleted = deleted_ranges(remains, memtable, report);
    let mut sources: Vec<TableSalvage> =
        remains.tables.iter().map(|table| TableSalvage::of_table(Arc::clone(table))).collect();
    sources.extend(memtable.map(TableSalvage::of_memtable));
    let mut heap = BinaryHeap::new();
    for (source, entries) in sources.iter_mut().enumerate() {
        heap.extend(entries.next(&mut report.problems).map(|next| Head { next, source }));
    }
    let mut batch = WriteBatch::new();
    let mut bytes = 0;
    let mut last: Option<Vec<u8>> = None;
    while let Some(Head { next, source }) = heap.pop() {
        let following = sources.get_mut(source).and_then(|from| from.next(&mut report.problems));
        heap.extend(following.map(|next| Head { next, source }));
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
    remains: &Remains,
    memtable: Option<&Arc<Memtable>>,
    report: &mut RepairReport,
) -> RangeTombstones {
    let all = RangeTombstones::new();
    let mut fragments = memtable.map(|one| one.range_tombstones().fragments()).unwrap_or_default();
    for table in &remains.tables {
        match table.fragments() {
            Ok(more) => fragments.extend(more.iter().cloned()),
            Err(error) => report.problems.push(Problem::of(&error, table.path())),
        }
    }
    fragments.iter().for_each(|fragment| all.add(fragment));
    all
}
