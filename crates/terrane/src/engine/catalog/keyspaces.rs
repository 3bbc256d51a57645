//! Creates, renames, drops and redesigns trees.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_policy::flodb::FlushTarget;
use terrane_policy::{Design, MemtableKind};

use super::Catalog;
use crate::base::error::{Error, OtherDesign, Result};
use crate::base::event::{Event, PredictedChange};
use crate::base::expiry::micros_of;
use crate::base::types::{DEFAULT_KEYSPACE, KeyspaceId};
use crate::engine::tree::{ActiveMemtable, Tree, new_memtable};
use crate::engine::version::Version;
use crate::files::manifest::Change;
use crate::files::table::check_compression;
use crate::options::{IfOther, RequestedDesign};

/// The maximum length of a keyspace name, in bytes.
const MAX_NAME_LEN: usize = 255;

/// The name of the keyspace that every database has.
pub(crate) const DEFAULT_NAME: &str = "default";

impl Catalog {
    /// Returns the tree with this name, and creates it if it does not exist.
    pub(crate) fn keyspace(
        &self,
        name: &str,
        design: Option<&RequestedDesign>,
    ) -> Result<Arc<Tree>> {
        self.context.health.check_open()?;
        check_name(name)?;
        let position = self.pipeline.log_end();
        // The lock is held until the tree is in the catalog, so that no two threads create a
        // keyspace with the same name.
        let mut guard = self.lock_manifest();
        if let Some(tree) = self.find_tree(name) {
            if let Some(requested) = design {
                check_design(&self.context.dir, name, &tree.design(), requested)?;
            }
            return Ok(tree);
        }
        self.context.health.check_writable()?;
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        let design = design.unwrap_or(&self.context.settings.design).value.clone();
        design.validate()?;
        check_compression(&design)?;
        let id = KeyspaceId(manifest.state().next_keyspace);
        // The log may have been freed meanwhile, but not beyond the position up to which the other
        // trees are flushed. The new tree receives no writes until it is in the catalog.
        let position = position.max(manifest.state().flushed_furthest());
        let changes = vec![
            Change::Keyspace { keyspace: id, name: name.to_owned(), design: design.to_string() },
            Change::Flushed { keyspace: id, upto: position },
        ];
        self.commit(manifest, changes)?;
        let memtable = new_memtable(&design, &self.context.memtables, None);
        let noted_from = self.context.logged_values_from(&design);
        let buffer = ActiveMemtable::new(memtable, position).noting(noted_from);
        let tree = Tree::new(id, name, design, Version::default(), buffer);
        if !self.context.is_inline() {
            tree.retired().keep();
        }
        self.trees.rcu(|trees| {
            let mut trees = (**trees).clone();
            trees.insert(id, Arc::clone(&tree));
            trees
        });
        drop(guard);
        self.update_access_counting();
        self.note_manifest_version();
        // Closing marks the database closed and then releases the retired states of all trees. If
        // it missed this tree, no thread would drop this tree's states.
        if self.context.health.check_open().is_err() {
            tree.retired().keep_no_more();
        }
        Ok(tree)
    }

    /// Drops a keyspace and its contents. Returns false if no keyspace has this name.
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<bool> {
        self.context.health.check_writable()?;
        if name == DEFAULT_NAME {
            return Err(Error::invalid("keyspace", "the default one", "another one to be dropped"));
        }
        // The lock is held from the lookup on, so that the name becomes free on disk and in memory
        // together. If the commit fails, the tree stays as it is.
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
        // Waits for writers that found the tree before it was marked: once they release the lock,
        // they have loaded its memtable. Later writers find the tree dropped.
        drop(self.pipeline.lock());
        self.pipeline.keep_snapshot(&tree, None);
        self.note_manifest_version();
        let version = Arc::clone(&tree.state().version);
        version.tables().values().for_each(|table| table.make_obsolete());
        version.values().files().values().for_each(|file| file.make_obsolete());
        drop(version);
        // Readers that hold the old state keep its files. A reader that loads the state from now on
        // finds an empty tree.
        let memtable = new_memtable(&tree.design(), &self.context.memtables, None);
        // The tree is no longer in the catalog, so no thread would drop its states.
        tree.retired().keep_no_more();
        tree.replace(|mut state| {
            self.context.memtables.note_replaced(&state.active.memtable);
            state.active = Arc::new(ActiveMemtable::new(memtable, state.active.begins));
            state.version = Arc::new(Version::default());
            state.immutables.clear();
            state
        });
        self.release_log();
        self.notify_stalled_writers();
        Ok(true)
    }

    /// Renames a keyspace. Returns false if no keyspace has this name.
    pub(crate) fn rename_keyspace(&self, name: &str, new_name: &str) -> Result<bool> {
        self.context.health.check_writable()?;
        check_name(new_name)?;
        if name == DEFAULT_NAME {
            return Err(Error::invalid("keyspace", "the default one", "another one to be renamed"));
        }
        // The lock is held from the lookup on, so that no other keyspace takes the name.
        let mut guard = self.lock_manifest();
        let Some(tree) = self.find_tree(name) else { return Ok(false) };
        if name == new_name {
            return Ok(true);
        }
        if self.find_tree(new_name).is_some() {
            let found = format!("'{new_name}', which another keyspace has");
            return Err(Error::invalid("keyspace name", found, "a name that is not in use"));
        }
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        let change = Change::Keyspace {
            keyspace: tree.id,
            name: new_name.to_owned(),
            design: tree.design().to_string(),
        };
        self.commit(manifest, vec![change])?;
        tree.set_name(new_name);
        drop(guard);
        self.note_manifest_version();
        Ok(true)
    }

    /// Gives a tree the merge operator with this name.
    pub(crate) fn set_merge_operator(&self, tree: &Tree, name: &str) -> Result<()> {
        let mut guard = self.lock_manifest();
        if let Some(present) = tree.functions.merge_operator().get() {
            if present.name() == name {
                return Ok(());
            }
            let expected = format!("'{}', which the keyspace has", present.name());
            return Err(Error::invalid("merge operator", format!("'{name}'"), expected));
        }
        let operator = self.context.merge_operators.find_to_set(name, tree.name())?;
        self.context.health.check_writable()?;
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        if tree.is_dropped() {
            return Err(Error::invalid("keyspace", "dropped", "one that exists"));
        }
        let change = Change::MergeOperator { keyspace: tree.id, name: name.to_owned() };
        self.commit(manifest, vec![change])?;
        tree.functions.merge_operator().get_or_init(|| operator);
        drop(guard);
        self.note_manifest_version();
        Ok(())
    }

    /// Gives a tree the compaction filter with this name, or none.
    pub(crate) fn set_compaction_filter(&self, tree: &Tree, name: Option<&str>) -> Result<()> {
        let find = |name| self.context.compaction_filters.find_registered(name, tree.name());
        let filter = name.map(find).transpose()?;
        self.context.health.check_writable()?;
        let mut guard = self.lock_manifest();
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        if tree.is_dropped() {
            return Err(Error::invalid("keyspace", "dropped", "one that exists"));
        }
        if tree.functions.compaction_filter().as_ref().map(|present| present.name()) == name {
            return Ok(());
        }
        let name = name.unwrap_or_default().to_owned();
        self.commit(manifest, vec![Change::CompactionFilter { keyspace: tree.id, name }])?;
        tree.functions.set_compaction_filter(filter);
        drop(guard);
        self.note_manifest_version();
        Ok(())
    }

    /// Changes the default time to live of a keyspace.
    pub(crate) fn set_ttl(&self, tree: &Tree, ttl: Option<Duration>) -> Result<()> {
        let ttl_micros = ttl.map_or(0, micros_of);
        if ttl.is_some() && ttl_micros == 0 {
            return Err(Error::invalid("ttl", "less than a microsecond", "at least a microsecond"));
        }
        self.context.health.check_writable()?;
        let mut guard = self.lock_manifest();
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        if tree.is_dropped() {
            return Err(Error::invalid("keyspace", "dropped", "one that exists"));
        }
        if tree.default_ttl().get().unwrap_or(0) == ttl_micros {
            return Ok(());
        }
        self.commit(manifest, vec![Change::KeyspaceTtl { keyspace: tree.id, ttl_micros }])?;
        tree.default_ttl().set(ttl_micros);
        drop(guard);
        self.note_manifest_version();
        Ok(())
    }

    /// Changes the design of a tree. The next memtable and the next compactions follow it.
    pub(crate) fn set_design(
        &self,
        tree: &Arc<Tree>,
        design: Design,
        forecast: Option<PredictedChange>,
    ) -> Result<()> {
        self.context.health.check_writable()?;
        design.validate()?;
        if design.compression != tree.design().compression {
            check_compression(&design)?;
        }
        let mut guard = self.lock_manifest();
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        if tree.is_dropped() {
            return Err(Error::invalid("keyspace", "dropped", "one that exists"));
        }
        check_discard(tree, &design)?;
        let change = Change::Keyspace {
            keyspace: tree.id,
            name: tree.name().to_string(),
            design: design.to_string(),
        };
        self.commit(manifest, vec![change])?;
        let (before, after) = (tree.design().to_string(), design.to_string());
        tree.set_design(design);
        drop(guard);
        let keyspace = tree.name().to_string();
        self.context.events.emit(Event::DesignChanged { keyspace, before, after, forecast });
        self.update_access_counting();
        self.note_manifest_version();
        self.context.signals.wake();
        self.notify_stalled_writers();
        Ok(())
    }
}

fn check_name(name: &str) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME_LEN {
        let found = format!("{} bytes long", name.len());
        return Err(Error::invalid("keyspace name", found, "1 to 255 bytes long"));
    }
    Ok(())
}

/// Refuses to open a keyspace with a design that differs from the stored one, if the two must
/// match.
pub(crate) fn check_design(
    dir: &Path,
    name: &str,
    stored: &Design,
    requested: &RequestedDesign,
) -> Result<()> {
    if requested.if_other != IfOther::Refuse || *stored == requested.value {
        return Ok(());
    }
    Err(Error::OtherDesign(Box::new(OtherDesign {
        path: dir.to_owned(),
        keyspace: name.to_owned(),
        stored: stored.clone(),
        requested: requested.value.clone(),
    })))
}

/// Refuses a design that discards memtables for a tree that has data.
fn check_discard(tree: &Tree, design: &Design) -> Result<()> {
    let state = tree.state();
    let is_empty = state.is_flushed() && state.version.runs().is_empty();
    if discards(design) && !discards(&tree.design()) && !is_empty {
        let found = "flush=discard, which discards all data";
        return Err(Error::invalid("design", found, "one that keeps the data of the tree"));
    }
    Ok(())
}

/// Returns true if a design discards memtables instead of flushing them.
pub(crate) fn discards(design: &Design) -> bool {
    matches!(design.memtable, MemtableKind::FloDb(flodb) if flodb.flush == FlushTarget::Discard)
}
