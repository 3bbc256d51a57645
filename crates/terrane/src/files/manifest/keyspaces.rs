//! The keyspaces in the state of a manifest.
//!
//! A database may have very many keyspaces, and each edit changes few of them. So a change of one
//! keyspace costs about as much with a hundred thousand others as with none: clones of the state
//! share all other keyspaces, and the values over all keyspaces are kept, not computed.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Arc;

use terrane_policy::{Design, ShapeEdit, TableId, TreeShape, ValueFileId};

use super::edit::TableRecord;
use super::value_file_record::ValueFileRecord;
use crate::base::shared_map::SharedMap;
use crate::base::types::{KeyspaceId, Lsn};

/// One keyspace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyspaceState {
    pub(crate) name: String,
    /// Keyspaces that are created with the same design share it.
    pub(crate) design: Arc<Design>,
    /// The previous design, if it was ever changed.
    pub(crate) design_before: Option<Arc<Design>>,
    pub(crate) shape: TreeShape,
    /// The files of all tables of the shape.
    pub(crate) tables: SharedMap<TableId, TableRecord>,
    /// The size of `tables`.
    table_bytes: u64,
    /// The value files of the shape.
    pub(crate) value_files: BTreeMap<ValueFileId, ValueFileRecord>,
    /// All writes of the keyspace before this log position are in tables.
    pub(crate) flushed: Lsn,
    /// The default time to live, for puts without their own, in microseconds; 0 for none.
    pub(crate) ttl_micros: u64,
    /// The name of the operator that combines operands with values.
    pub(crate) merge_operator: Option<String>,
    /// The name of the filter that compactions apply.
    pub(crate) compaction_filter: Option<String>,
}

impl KeyspaceState {
    pub(crate) fn new(name: &str, design: Arc<Design>) -> Self {
        Self {
            name: name.to_owned(),
            design,
            design_before: None,
            shape: TreeShape::default(),
            tables: SharedMap::default(),
            table_bytes: 0,
            value_files: BTreeMap::new(),
            flushed: Lsn(0),
            ttl_micros: 0,
            merge_operator: None,
            compaction_filter: None,
        }
    }

    /// Adds the file of a table that an edit adds to the shape, or moves within it.
    pub(super) fn add_table(&mut self, table: TableRecord) {
        self.table_bytes += table.info.size_bytes;
        let moved = self.tables.insert(table.info.id, table);
        self.table_bytes -= moved.map_or(0, |moved| moved.info.size_bytes);
    }

    /// Changes the shape, after the files of the added tables were added.
    pub(super) fn apply(&mut self, edit: &ShapeEdit) -> Result<(), String> {
        self.shape = self.shape.apply(edit).map_err(|error| error.to_string())?;
        let kept: Vec<TableId> = edit.added.iter().map(|added| added.table.id).collect();
        for gone in edit.removed.iter().filter(|id| !kept.contains(id)) {
            let removed = self.tables.remove(gone);
            self.table_bytes -= removed.map_or(0, |removed| removed.info.size_bytes);
        }
        for gone in &edit.removed_value_files {
            let is_added = edit.value_files.iter().any(|file| file.id == *gone);
            if !is_added {
                self.value_files.remove(gone);
            }
        }
        Ok(())
    }
}

/// All keyspaces, and what is known about them together.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeyspaceStates {
    by_id: SharedMap<KeyspaceId, Arc<KeyspaceState>>,
    by_name: SharedMap<Arc<str>, KeyspaceId>,
    by_flushed: SharedMap<(Lsn, KeyspaceId), ()>,
    table_bytes: u64,
    /// The design that was read last, with its text.
    last_design: Option<(Arc<str>, Arc<Design>)>,
}

impl KeyspaceStates {
    /// Returns the smallest flushed position.
    pub(super) fn flushed_least(&self) -> Option<Lsn> {
        self.by_flushed.first().map(|((flushed, _), ())| *flushed)
    }

    /// Returns the largest flushed position.
    pub(super) fn flushed_most(&self) -> Option<Lsn> {
        self.by_flushed.last().map(|((flushed, _), ())| *flushed)
    }

    /// Returns the size of all tables, in bytes.
    pub(super) fn table_bytes(&self) -> u64 {
        self.table_bytes
    }

    /// Adds a keyspace, or changes its name or its design.
    pub(super) fn define(
        &mut self,
        id: KeyspaceId,
        name: &str,
        design: &str,
    ) -> Result<(), String> {
        let design = self.read_design(name, design)?;
        if self.by_name.get(name).is_some_and(|other| *other != id) {
            return Err(format!("two keyspaces are called {name}"));
        }
        let renamed = self.change(id, |keyspace| {
            if keyspace.design != design {
                let before = std::mem::replace(&mut keyspace.design, Arc::clone(&design));
                keyspace.design_before = Some(before);
            }
            std::mem::replace(&mut keyspace.name, name.to_owned())
        });
        match renamed {
            Some(before) => drop(self.by_name.remove(&*before)),
            None => {
                let keyspace = KeyspaceState::new(name, design);
                self.by_flushed.insert((keyspace.flushed, id), ());
                self.by_id.insert(id, Arc::new(keyspace));
            }
        }
        self.by_name.insert(name.into(), id);
        Ok(())
    }

    /// Returns a design from its text. Most keyspaces of a database have the same one, which they
    /// share.
    fn read_design(&mut self, name: &str, text: &str) -> Result<Arc<Design>, String> {
        if let Some((last, design)) = &self.last_design
            && **last == *text
        {
            return Ok(Arc::clone(design));
        }
        let design = Design::stored(text).map_err(|error| format!("keyspace {name}: {error}"))?;
        let design = Arc::new(design);
        self.last_design = Some((text.into(), Arc::clone(&design)));
        Ok(design)
    }

    /// Changes a keyspace except for its name. Returns `None` if it does not exist.
    pub(super) fn change<T>(
        &mut self,
        id: KeyspaceId,
        change: impl FnOnce(&mut KeyspaceState) -> T,
    ) -> Option<T> {
        let keyspace = Arc::make_mut(self.by_id.get_mut(&id)?);
        let (flushed, table_bytes) = (keyspace.flushed, keyspace.table_bytes);
        let result = change(keyspace);
        self.table_bytes = self.table_bytes - table_bytes + keyspace.table_bytes;
        let after = keyspace.flushed;
        if after != flushed {
            self.by_flushed.remove(&(flushed, id));
            self.by_flushed.insert((after, id), ());
        }
        Some(result)
    }

    /// Removes a keyspace. Returns false if it does not exist.
    pub(super) fn remove(&mut self, id: KeyspaceId) -> bool {
        let Some(gone) = self.by_id.remove(&id) else { return false };
        self.by_name.remove(&*gone.name);
        self.by_flushed.remove(&(gone.flushed, id));
        self.table_bytes -= gone.table_bytes;
        true
    }
}

impl Deref for KeyspaceStates {
    type Target = SharedMap<KeyspaceId, Arc<KeyspaceState>>;

    fn deref(&self) -> &Self::Target {
        &self.by_id
    }
}

/// The rest follows from the keyspaces, except the design that was read last.
impl PartialEq for KeyspaceStates {
    fn eq(&self, other: &Self) -> bool {
        self.by_id == other.by_id
    }
}
