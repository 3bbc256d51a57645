//! Creates, renames, drops and redesigns trees.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane_policy::flodb::FlushTarget;
use terrane_policy::{Design, MemtableKind};

use super::Catalog;
use super::files::LONG_MANIFEST_BYTES;
use super::stall_events::report_dropped;
use crate::base::error::{Error, OtherDesign, Result};
use crate::base::event::{Event, PredictedChange};
use crate::base::expiry::micros_of;
use crate::base::types::{DEFAULT_KEYSPACE, KeyspaceId, Lsn};
use crate::engine::tree::{ActiveMemtable, Tree, new_memtable};
use crate::engine::version::Version;
use crate::files::manifest::{Change, Manifest};
use crate::files::table::check_compression;
use crate::options::{IfOther, RequestedDesign};

/// The maximum length of a keyspace name, in bytes.
const MAX_NAME_LEN: usize = 255;

/// The name of the keyspace that every database has.
pub(crate) const DEFAULT_NAME: &str = "default";

impl Catalog {
    /// Returns the trees with these names. Creates those that do not exist, by one edit.
    pub(crate) fn keyspaces(
        &self,
        names: &[&str],
        design: Option<&RequestedDesign>,
    ) -> Result<Vec<Arc<Tree>>> {
        self.context.health.check_open()?;
        names.iter().try_for_each(|name| check_name(name))?;
        let position = self.pipeline.log_end();
        // The lock is held until the trees are in the catalog, so that no two threads create a
        // keyspace with the same name.
        let mut guard = self.lock_manifest();
        let missing = missing_keyspaces(self, names, design)?;
        if missing.is_empty() {
            return find_trees(self, names);
        }
        self.context.health.check_writable()?;
        let manifest = guard.as_mut().ok_or(Error::ReadOnly)?;
        let design = design.map_or_else(
            || self.context.settings.design.value.clone(),
            |requested| requested.value.clone(),
        );
        let looks_at_accesses = design.strategy.looks_at_accesses();
        let created = self.create_keyspaces(manifest, &missing, &design, position)?;
        let trees = find_trees(self, names);
        drop(guard);
        if looks_at_accesses {
            self.update_access_counting();
        }
        self.note_manifest_version();
        self.fill_reserve(LONG_MANIFEST_BYTES);
        // Closing marks the database closed and then releases the retired states of all trees. If
        // it missed these trees, no thread would drop their states.
        if self.context.health.check_open().is_err() {
            created.iter().for_each(|tree| tree.retired().keep_no_more());
        }
        trees
    }

    /// Creates keyspaces, with the manifest locked. The log ended at `position` before.
    fn create_keyspaces(
        &self,
        manifest: &mut Manifest,
        names: &BTreeSet<&str>,
        design: &Design,
        position: Lsn,
    ) -> Result<Vec<Arc<Tree>>> {
        design.validate()?;
        check_compression(design)?;
        // The log may have been freed meanwhile, but not beyond the position up to which the other
        // trees are flushed. The new trees receive no writes until they are in the catalog.
        let position = position.max(manifest.state().flushed_furthest());
        let text = design.to_string();
        let numbered: Vec<(KeyspaceId, &str)> =
            (manifest.state().next_keyspace..).map(KeyspaceId).zip(names.iter().copied()).collect();
        let changes = numbered.iter().flat_map(|&(keyspace, name)| {
            let (name, design) = (name.to_owned(), text.clone());
            let created = Change::Keyspace { keyspace, name, design };
            [created, Change::Flushed { keyspace, upto: position }]
        });
        self.commit(manifest, changes.collect())?;
        let in_log = self.context.values_in_log(design);
        let trees = numbered.into_iter().map(|(id, name)| {
            // Shared with the manifest, and with the keyspaces that have the same design.
            let stored = manifest.state().keyspaces.get(&id);
            let shared = stored.map_or_else(|| Arc::new(design.clone()), |one| one.design.clone());
            let active = ActiveMemtable::first(design, &self.context.memtables, position, in_log);
            let attention = Arc::clone(&self.context.attention);
            let tree = Tree::new(id, name, shared, Version::default(), active, attention);
            if !self.context.is_inline() {
                tree.retired().keep();
            }
            tree
        });
        let trees: Vec<Arc<Tree>> = trees.collect();
        self.trees.rcu(|all| {
            let mut all = (**all).clone();
            trees.iter().for_each(|tree| all.insert(Arc::clone(tree)));
            all
        });
        Ok(trees)
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
            trees.remove(&tree);
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
        // The memtable is not the one that unwritten trees share, because a batch that found the tree
        // in the catalog before it was dropped may still insert into it.
        let memtable = new_memtable(&tree.design(), &self.context.memtables, None);
        // The tree is no longer in the catalog, so no thread would drop its states.
        tree.retired().keep_no_more();
        tree.replace(|mut state| {
            let active = Arc::new(ActiveMemtable::new(memtable, state.active.begins));
            state.replace_active(active, &self.context.memtables);
            state.version = Arc::new(Version::default());
            state.immutables.clear();
            state
        });
        self.release_log();
        report_dropped(self, &tree);
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
        self.trees.rcu(|trees| {
            let mut trees = (**trees).clone();
            trees.rename(name, &tree);
            trees
        });
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
        let looks = design.strategy.looks_at_accesses();
        let looks_at_accesses = looks || tree.design().strategy.looks_at_accesses();
        let (before, after) = (tree.design().to_string(), design.to_string());
        tree.set_design(design);
        drop(guard);
        let keyspace = tree.name().to_string();
        self.context.events.emit(Event::DesignChanged { keyspace, before, after, forecast });
        if looks_at_accesses {
            self.update_access_counting();
        }
        self.note_manifest_version();
        self.context.signals.wake();
        self.notify_stalled_writers();
        Ok(())
    }
}

fn find_trees(catalog: &Catalog, names: &[&str]) -> Result<Vec<Arc<Tree>>> {
    let trees = catalog.trees();
    let find = |name: &&str| trees.named(name).cloned();
    let found = names.iter().map(find).collect::<Option<Vec<_>>>();
    found.ok_or_else(|| Error::internal("a keyspace vanished while it was created"))
}

/// Returns the names of keyspaces that do not exist, each once. Checks the designs of the
/// others.
fn missing_keyspaces<'a>(
    catalog: &Catalog,
    names: &[&'a str],
    design: Option<&RequestedDesign>,
) -> Result<BTreeSet<&'a str>> {
    let trees = catalog.trees();
    let mut missing = BTreeSet::new();
    for name in names {
        match (trees.named(name), design) {
            (None, _) => drop(missing.insert(*name)),
            (Some(tree), Some(requested)) => {
                check_design(&catalog.context.dir, name, &tree.design(), requested)?;
            }
            (Some(_), None) => {}
        }
    }
    Ok(missing)
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
