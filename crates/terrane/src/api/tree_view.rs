//! A description of a tree, for people and programs.

mod picture;

use terrane_policy::admission::{Pressure, limited_runs};
use terrane_policy::memtable_choice::MemtableSelection;
use terrane_policy::{Admission, Design, TreeShape};

use crate::base::compaction_filter::KeyspaceFilter;
use crate::engine::{Engine, Tree};

/// The state of a tree.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TreeView {
    /// The keyspace.
    pub keyspace: String,
    /// The design.
    pub design: Design,
    /// With `memtable=auto`, the kind chosen for the active memtable and the reason.
    pub memtable_choice: Option<MemtableSelection>,
    /// The compaction filter of the keyspace.
    pub compaction_filter: Option<CompactionFilterView>,
    /// Bytes of data and metadata in the active memtable.
    pub memtable_bytes: u64,
    /// Entries in the active memtable.
    pub memtable_entries: u64,
    /// Immutable memtables, which await their flush.
    pub immutable_memtables: usize,
    /// Levels, runs and tables.
    pub shape: TreeShape,
    /// Running compactions and merging flushes, each in a sentence.
    pub compactions: Vec<String>,
    /// The runs that the design limits, and the numbers at which it delays and stops writers.
    pub limited: Pressure,
    /// Whether writers proceed, are delayed or stopped, and why.
    pub admission: Admission,
}

/// The compaction filter of a keyspace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionFilterView {
    /// The name of the filter.
    pub name: String,
    /// Why compactions do not apply it; `None` if they do.
    pub inactive: Option<&'static str>,
}

impl CompactionFilterView {
    fn of(filter: &KeyspaceFilter) -> Self {
        Self { name: filter.name().to_owned(), inactive: filter.inactive_reason() }
    }
}

impl TreeView {
    /// Returns the description of a tree with an empty memtable, for pictures of planned trees.
    pub fn new(keyspace: impl Into<String>, design: Design, shape: TreeShape) -> Self {
        Self {
            keyspace: keyspace.into(),
            limited: limited_runs(&shape, &design),
            design,
            memtable_choice: None,
            compaction_filter: None,
            memtable_bytes: 0,
            memtable_entries: 0,
            immutable_memtables: 0,
            shape,
            compactions: Vec::new(),
            admission: Admission::Proceed,
        }
    }

    pub(crate) fn of(engine: &Engine, tree: &Tree) -> Self {
        let state = tree.state_arc();
        let compactions = if engine.context.health.is_of_this_process() {
            let jobs = tree.jobs();
            jobs.running().map(ToString::to_string).collect()
        } else {
            // No compaction runs there, and the lock may be held for ever.
            Vec::new()
        };
        let memtable = &state.active.memtable;
        Self {
            keyspace: tree.name().to_string(),
            design: (*tree.design()).clone(),
            memtable_choice: tree.memtable_choice(),
            compaction_filter: tree
                .functions
                .compaction_filter()
                .map(|filter| CompactionFilterView::of(&filter)),
            memtable_bytes: memtable.memory().used_bytes() as u64,
            memtable_entries: memtable.len() as u64,
            immutable_memtables: state.immutables.len(),
            shape: state.version.shape().clone(),
            compactions,
            limited: limited_runs(state.version.shape(), &tree.design()),
            admission: state.admission,
        }
    }
}
