//! Follows the tables of a database.

use std::collections::{BTreeMap, HashMap, HashSet};

use terrane::policy::{TableInfo, TreeShape};
use terrane::{Db, Maintenance};

use crate::bytes::Bytes;
use crate::sampler::{keyspaces, now_micros};
use crate::tables::{JobTables, KEY_BYTES_MAX, PlacedTable, TableChanges, TreeChanges};

/// The run and the level of each table, by number.
type Places = HashMap<u64, (u64, u64)>;

/// What a client knows of the tables of a database.
#[derive(Debug, Default)]
pub(crate) struct TableFollower {
    trees: BTreeMap<String, Places>,
    /// The jobs that were in the last answer.
    jobs: HashSet<u64>,
    has_begun: bool,
}

impl TableFollower {
    /// Returns what has changed since the previous call; `None` if nothing has. Takes time linear in the number of
    /// tables.
    pub(crate) fn changes(&mut self, db: &Db) -> Option<TableChanges> {
        let is_whole = !std::mem::replace(&mut self.has_begun, true);
        let jobs = self.new_jobs(&Maintenance::of(db));
        let mut trees = Vec::new();
        let mut present = BTreeMap::new();
        for keyspace in keyspaces(db) {
            let view = keyspace.tree();
            let before = self.trees.remove(&view.keyspace).unwrap_or_default();
            let (changes, places) = between(view.keyspace, before, &view.shape);
            present.insert(changes.keyspace.clone(), places);
            if is_whole || !changes.removed.is_empty() || !changes.added.is_empty() {
                trees.push(changes);
            }
        }
        // Keyspaces that were dropped or renamed.
        for (keyspace, places) in std::mem::replace(&mut self.trees, present) {
            let removed = sorted(places.into_keys());
            trees.push(TreeChanges { keyspace, removed, added: Vec::new() });
        }
        let is_any = is_whole || !trees.is_empty() || !jobs.is_empty();
        is_any.then(|| TableChanges { at_micros: now_micros(), is_whole, trees, jobs })
    }

    fn new_jobs(&mut self, maintenance: &Maintenance) -> Vec<JobTables> {
        let mut present = HashSet::new();
        let mut begun = Vec::new();
        for view in maintenance.jobs() {
            let (Some(id), Some(level)) = (view.id, view.output_level) else { continue };
            present.insert(id);
            if !self.jobs.contains(&id) {
                begun.push(JobTables { id, inputs: view.inputs, output_level: level as u64 });
            }
        }
        self.jobs = present;
        begun
    }
}

fn sorted(ids: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut ids: Vec<u64> = ids.collect();
    ids.sort_unstable();
    ids
}

/// Returns the changes of a tree, and the places of its tables.
fn between(keyspace: String, mut before: Places, shape: &TreeShape) -> (TreeChanges, Places) {
    let mut places = Places::with_capacity(shape.table_count());
    let (mut added, mut moved) = (Vec::new(), Vec::new());
    for (level, content) in shape.levels.iter().enumerate() {
        for run in &content.runs {
            for table in &run.tables {
                let (id, place) = (table.id.0, (run.id.0, level as u64));
                places.insert(id, place);
                match before.remove(&id) {
                    Some(known) if known == place => continue,
                    Some(_) => moved.push(id),
                    None => {}
                }
                added.push(placed(table, place));
            }
        }
    }
    let removed = sorted(before.into_keys().chain(moved));
    (TreeChanges { keyspace, removed, added }, places)
}

fn placed(table: &TableInfo, (run, level): (u64, u64)) -> PlacedTable {
    let key = |key: &[u8]| Bytes(key.get(..KEY_BYTES_MAX).unwrap_or(key).to_vec());
    PlacedTable {
        table: table.id.0,
        run,
        level,
        start: key(&table.range.start),
        end: table.range.end.as_deref().map(key),
        bytes: table.size_bytes,
        entries: table.entries,
        tombstones: table.tombstones,
    }
}
