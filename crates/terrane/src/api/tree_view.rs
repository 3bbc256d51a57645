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
    /// Bytes of data and metadata in the active memtable, and of the values in the log to which it refers.
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
        // In a child of the process, the locks of all other parts may be held for ever.
        let is_of_this_process = engine.context.health.is_of_this_process();
        let memtable = is_of_this_process.then_some(&state.active.memtable);
        let compactions = |tree: &Tree| tree.jobs().running().map(ToString::to_string).collect();
        Self {
            keyspace: tree.name().to_string(),
            design: (*tree.design()).clone(),
            memtable_choice: is_of_this_process.then(|| tree.memtable_choice()).flatten(),
            compaction_filter: tree
                .functions
                .compaction_filter()
                .map(|filter| CompactionFilterView::of(&filter)),
            memtable_bytes: memtable
                .map_or(0, |one| one.memory().used_bytes() as u64 + state.active.pointed_bytes()),
            memtable_entries: memtable.map_or(0, |one| one.len() as u64),
            immutable_memtables: state.immutables.len(),
            shape: state.version.shape().clone(),
            compactions: if is_of_this_process { compactions(tree) } else { Vec::new() },
            limited: limited_runs(state.version.shape(), &tree.design()),
            admission: state.admission,
        }
    }
}
