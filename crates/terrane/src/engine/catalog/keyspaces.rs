//! Making, dropping and redesigning trees.

use std::sync::Arc;

use terrane_policy::flodb::Flush;
use terrane_policy::{Design, MemtableKind};

use crate::engine::Engine;
use crate::engine::life::open::{DEFAULT_NAME, check_design};
use crate::engine::tree::{Buffer, Tree};
use crate::error::{Error, Result};
use crate::event::Event;
use crate::manifest::Change;
use crate::types::{DEFAULT_KEYSPACE, KeyspaceId, Lsn};
use crate::version::Version;
use crate::wal::LogWriter;

/// The longest name of a keyspace, in bytes.
const MAX_NAME_LEN: usize = 255;

impl Engine {
    /// The tree of a name; it is made if there is none.
    pub(crate) fn keyspace(&self, name: &str, design: Option<&Design>) -> Result<Arc<Tree>> {
        self.health.check_open()?;
        if name.is_empty() || name.len() > MAX_NAME_LEN {
            let found = format!("{} bytes long", name.len());
            return Err(Error::invalid("keyspace name", found, "1 to 255 bytes long"));
        }
        // Held, so that a name is made once; released before the tree is used.
        let position = self.log_end();
        let mut guard = self.lock_manifest();
        if let Some(tree) = self.find_tree(name) {
            if let Some(asked) = design {
                check_design(name, &tree.design(), asked)?;
            }
            return Ok(tree);
        }
        self.health.check_writable()?;
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        let design = design.unwrap_or(&self.settings.design).clone();
        design.validate()?;
        let id = KeyspaceId(manifest.state().next_keyspace);
        // The log may have been freed since the look at its end, though not beyond where the others
        // are flushed to. Nothing is written to this one before it is among the trees.
        let position = position.max(manifest.state().flushed_furthest());
        let changes = vec![
            Change::Keyspace { keyspace: id, name: name.to_owned(), design: design.to_string() },
            Change::Flushed { keyspace: id, upto: position },
        ];
        self.commit(manifest, changes)?;
        let memtable = Tree::new_memtable(&design, &self.pool, None);
        let buffer = Buffer::new(memtable, position);
        let tree = Tree::new(id, name, design, Version::default(), buffer);
        if !self.is_inline() {
            tree.retired().keep();
        }
        self.trees.rcu(|trees| {
            let mut trees = (**trees).clone();
            trees.insert(id, Arc::clone(&tree));
            trees
        });
        drop(guard);
        self.note_designs();
        self.note_manifest();
        // Who closes the database looks at all trees after it has said so: it may have missed this
        // one, whose states no thread would let go of.
        if self.health.check_open().is_err() {
            tree.retired().keep_no_more();
        }
        Ok(tree)
    }

    pub(crate) fn find_tree(&self, name: &str) -> Option<Arc<Tree>> {
        self.trees().values().find(|tree| *tree.name == *name).cloned()
    }

    /// Removes a keyspace and everything in it; false if there is none of this name.
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.health.check_writable()?;
        if name == DEFAULT_NAME {
            return Err(Error::invalid("keyspace", "the default one", "another one to be dropped"));
        }
        // Held from the look-up on, so that the name is free at once on disk and in memory. A drop
        // that is not kept leaves the tree as it is.
        let mut guard = self.lock_manifest();
        let Some(tree) = self.find_tree(name) else { return Ok(false) };
        debug_assert!(tree.id != DEFAULT_KEYSPACE, "the default keyspace has the default name");
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        self.commit(manifest, vec![Change::DropKeyspace(tree.id)])?;
        tree.mark_dropped();
        self.trees.rcu(|trees| {
            let mut trees = (**trees).clone();
            trees.remove(&tree.id);
            trees
        });
        drop(guard);
        // A writer that was let in before has been given its memtable by now; no other one is.
        drop(self.lock_writer());
        self.note_manifest();
        tree.state().version.tables().values().for_each(|table| table.make_obsolete());
        // Readers that still hold the tree keep its files; no one else does. Who looks now finds
        // nothing, in memory as in tables.
        let memtable = Tree::new_memtable(&tree.design(), &self.pool, None);
        // No thread looks at it any more.
        tree.retired().keep_no_more();
        tree.replace(|mut state| {
            state.active = Arc::new(Buffer::new(memtable, state.active.begins));
            state.version = Arc::new(Version::default());
            state.full.clear();
            state
        });
        self.release_log();
        self.tell_room();
        Ok(true)
    }

    /// Gives a tree another design. The next memtable and the next compactions follow it.
    pub(crate) fn set_design(&self, tree: &Arc<Tree>, design: Design) -> Result<()> {
        self.health.check_writable()?;
        design.validate()?;
        let mut guard = self.lock_manifest();
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        if tree.is_dropped() {
            return Err(Error::invalid("keyspace", "dropped", "one that exists"));
        }
        check_discard(tree, &design)?;
        let change = Change::Keyspace {
            keyspace: tree.id,
            name: tree.name.to_string(),
            design: design.to_string(),
        };
        self.commit(manifest, vec![change])?;
        let (before, after) = (tree.design().to_string(), design.to_string());
        tree.set_design(design);
        drop(guard);
        let keyspace = tree.name.to_string();
        self.events.emit(Event::DesignChanged { keyspace, before, after });
        self.note_designs();
        self.note_manifest();
        self.work.wake();
        self.tell_room();
        Ok(())
    }

    fn log_end(&self) -> Lsn {
        self.lock_writer().log.as_ref().map_or(Lsn(0), LogWriter::end)
    }
}

/// What a tree holds must not be thrown away unasked.
fn check_discard(tree: &Tree, design: &Design) -> Result<()> {
    let state = tree.state();
    let is_empty = state.is_flushed() && state.version.runs().is_empty();
    if discards(design) && !discards(&tree.design()) && !is_empty {
        let found = "flush=discard, which throws away what is written";
        return Err(Error::invalid("design", found, "such a design for a tree without data only"));
    }
    Ok(())
}

/// Whether memtables are thrown away and not flushed.
pub(crate) fn discards(design: &Design) -> bool {
    matches!(design.memtable, MemtableKind::FloDb(flodb) if flodb.flush == Flush::Discard)
}
