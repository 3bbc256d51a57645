//! Finds the tables of a damaged database.
//!
//! A table states its identity in its footer and its keyspace in its properties. A file whose name
//! or manifest record disagrees is reported, and the table's entries go to the keyspace that the
//! table itself names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use super::lost_range::{LostRange, last_key};
use super::problem::Problem;
use super::table::open;
use crate::base::error::{Error, Result};
use crate::base::types::KeyspaceId;
use crate::files::manifest::ManifestState;
use crate::files::storage::{DiskStorage, Storage};
use crate::files::table::{Table, TableFileId};

/// The tables that can be opened, by keyspace.
#[derive(Default)]
pub(super) struct SalvagedTables {
    tables: BTreeMap<KeyspaceId, Vec<Arc<Table>>>,
    found: BTreeSet<TableFileId>,
}

impl SalvagedTables {
    /// Finds the live tables according to `state`, or all tables if there is no state.
    pub(super) fn find(
        dir: &Path,
        state: Option<&ManifestState>,
        problems: &mut Vec<Problem>,
    ) -> Result<Self> {
        let names = DiskStorage.list(dir).map_err(|error| Error::io("list", dir, error))?;
        let present: Vec<TableFileId> =
            names.iter().filter_map(|name| TableFileId::of_file_name(name)).collect();
        let live = state.map(live_tables);
        let wanted: Vec<TableFileId> =
            live.as_ref().map_or_else(|| present.clone(), |live| live.keys().copied().collect());
        let mut salvaged = Self::default();
        let mut misnamed = Vec::new();
        for name in &wanted {
            let path = dir.join(name.file_name());
            match open(&path) {
                Ok(table) if table.id() == *name => {
                    salvaged.add(table, live.as_ref(), problems);
                }
                Ok(table) => misnamed.push(table),
                Err(error) => problems.push(Problem::of(&error, &path)),
            }
        }
        // A missing live table may be in a file whose name the manifest does not contain.
        let lacks =
            |salvaged: &Self| live.as_ref().is_some_and(|live| salvaged.found.len() < live.len());
        if lacks(&salvaged) {
            let others = present.iter().filter(|name| !wanted.contains(name));
            let others = others.filter_map(|name| open(&dir.join(name.file_name())).ok());
            misnamed.extend(
                others.filter(|table| {
                    live.as_ref().is_some_and(|live| live.contains_key(&table.id()))
                }),
            );
        }
        for table in misnamed {
            let mut what = format!("the file holds the table {}", table.id().file_name());
            let is_live = live.as_ref().is_none_or(|live| live.contains_key(&table.id()));
            if !is_live {
                what.push_str(", which is not part of the database; its entries are not used");
            }
            problems.push(Problem::new(table.path(), what));
            if is_live {
                salvaged.add(table, live.as_ref(), problems);
            }
        }
        Ok(salvaged)
    }

    /// Adds a table to the keyspace that its properties name, unless it was already found.
    fn add(
        &mut self,
        table: Arc<Table>,
        live: Option<&BTreeMap<TableFileId, KeyspaceId>>,
        problems: &mut Vec<Problem>,
    ) {
        let keyspace = match table.properties() {
            Ok(properties) => KeyspaceId(properties.keyspace),
            Err(error) => return problems.push(Problem::of(&error, table.path())),
        };
        if !self.found.insert(table.id()) {
            return;
        }
        let recorded = live.and_then(|live| live.get(&table.id()));
        if let Some(recorded) = recorded.filter(|recorded| **recorded != keyspace) {
            let what = format!(
                "the manifest assigns the table to keyspace {recorded}, but its properties name \
                 keyspace {keyspace}, which gets its entries"
            );
            problems.push(Problem::new(table.path(), what));
        }
        self.tables.entry(keyspace).or_default().push(table);
    }

    /// Returns the number of tables.
    pub(super) fn count(&self) -> u64 {
        self.found.len() as u64
    }

    /// Returns the key ranges of the live tables that were not found.
    pub(super) fn missing(&self, dir: &Path, state: &ManifestState) -> Vec<LostRange> {
        let mut ranges = Vec::new();
        for keyspace in state.keyspaces.values() {
            for table in keyspace.shape.tables() {
                let file = keyspace.tables.get(&table.id).map(|record| record.file);
                if let Some(file) = file.filter(|file| !self.found.contains(file)) {
                    ranges.push(LostRange {
                        keyspace: keyspace.name.clone(),
                        first: table.range.start.to_vec(),
                        last: last_key(table),
                        path: dir.join(file.file_name()),
                    });
                }
            }
        }
        ranges
    }

    /// Reports tables that an ingest wrote, unless an older state contains them. All entries of an
    /// ingest have one sequence number, and only the manifest says whether it was committed. A
    /// table with one entry may as well come from a flush and is not reported.
    pub(super) fn uncertain_ingests(
        &self,
        dir: &Path,
        older: Option<&ManifestState>,
    ) -> Option<Problem> {
        let known = older.map(live_tables).unwrap_or_default();
        let is_uncertain = |table: &&Arc<Table>| {
            let is_ingested = table.properties().is_ok_and(|properties| {
                properties.entries > 1 && properties.smallest_seq == properties.largest_seq
            });
            is_ingested && !known.contains_key(&table.id())
        };
        let count = self.tables.values().flatten().filter(is_uncertain).count();
        let s = if count == 1 { "" } else { "s" };
        let what = format!(
            "without the newest manifest, {count} table{s} of ingests are used, although an ingest that \
             was not committed may have written them"
        );
        (count > 0).then(|| Problem::new(dir, what))
    }

    /// Returns the keyspaces that have tables.
    pub(super) fn keyspaces(&self) -> impl Iterator<Item = KeyspaceId> {
        self.tables.keys().copied()
    }

    /// Removes and returns the tables of a keyspace.
    pub(super) fn take(&mut self, keyspace: KeyspaceId) -> Vec<Arc<Table>> {
        self.tables.remove(&keyspace).unwrap_or_default()
    }
}

fn live_tables(state: &ManifestState) -> BTreeMap<TableFileId, KeyspaceId> {
    let keyspaces = state.keyspaces.iter();
    keyspaces
        .flat_map(|(id, keyspace)| keyspace.tables.values().map(|table| (table.file, *id)))
        .collect()
}
