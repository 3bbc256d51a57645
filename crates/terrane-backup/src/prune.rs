//! Removes old backups, and objects that no backup needs.
//!
//! An exclusive lock keeps backups out meanwhile, so no object is removed that a running backup may use.
//! Manifests are removed first: if the process ends early, it leaves objects that no backup needs, which
//! the next prune removes.

use std::collections::{BTreeSet, HashSet};

use crate::catalog::{Catalog, check, delete, list_folder, read_all};
use crate::content::{ContentId, OBJECTS};
use crate::error::{Error, Result};
use crate::history::Notice;
use crate::lock::{Held, LockKind, STALE, with_lock};
use crate::manifest::Backup;
use crate::repository::Repository;
use crate::retention::Retention;

/// The backups to prune.
#[derive(Debug, Clone)]
pub struct PruneOptions {
    retention: Retention,
    database: Option<String>,
    history: Option<String>,
    remove_damaged: bool,
}

impl PruneOptions {
    /// Returns options that keep the backups of `retention`.
    pub fn new(retention: Retention) -> Self {
        Self { retention, database: None, history: None, remove_damaged: false }
    }

    /// Removes backups of this database only, whose number may be abbreviated.
    #[must_use]
    pub fn database(mut self, number: impl Into<String>) -> Self {
        self.database = Some(number.into());
        self
    }

    /// Removes all backups of this history, such as one that was abandoned by a restore, whatever the
    /// rules keep. The first digits of its number suffice.
    #[must_use]
    pub fn remove_history(mut self, number: impl Into<String>) -> Self {
        self.history = Some(number.into());
        self
    }

    /// Removes damaged manifests as well. The objects that they need are unknown, so without this a prune
    /// refuses to remove anything.
    #[must_use]
    pub fn remove_damaged(mut self) -> Self {
        self.remove_damaged = true;
        self
    }
}

/// The result of a prune.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Pruned {
    /// The backups that are removed.
    pub removed: Vec<Backup>,
    /// The backups that are kept, with the rules that keep them. Those of other databases have none.
    pub kept: Vec<(Backup, Vec<&'static str>)>,
    /// The damaged manifests that are removed.
    pub damaged: Vec<String>,
    /// The forks of histories among all backups, and the times that contradict their order.
    pub notices: Vec<Notice>,
    /// Objects that no backup needs any longer.
    pub objects: u64,
    /// Their bytes, with those of incomplete objects of killed processes.
    pub bytes: u64,
}

/// Returns the result that [`prune`] would have, and removes nothing.
///
/// # Errors
/// As for [`prune`].
pub fn plan_prune(repository: &dyn Repository, options: &PruneOptions) -> Result<Pruned> {
    check(repository)?;
    let mut pruned = plan(repository, read_all(repository)?, options)?;
    for stored in unneeded(repository, &pruned.kept)? {
        pruned.objects += 1;
        pruned.bytes += stored.1;
    }
    Ok(pruned)
}

/// Removes the backups that the rules do not keep, and the objects that no backup needs any longer.
///
/// # Errors
/// No rule keeps anything, a manifest cannot be read, a backup is being created, or something cannot be
/// listed or removed. A prune that failed can be run again.
pub fn prune(repository: &dyn Repository, options: &PruneOptions) -> Result<Pruned> {
    check(repository)?;
    with_lock(repository, LockKind::Exclusive, "backup prune", |held| {
        let mut pruned = plan(repository, read_all(repository)?, options)?;
        for backup in &pruned.removed {
            held.check()?;
            delete(repository, &backup.object())?;
        }
        for object in &pruned.damaged {
            held.check()?;
            delete(repository, object)?;
        }
        remove_unneeded(repository, held, &mut pruned)?;
        Ok(pruned)
    })
}

fn remove_unneeded(
    repository: &dyn Repository,
    held: &Held<'_>,
    pruned: &mut Pruned,
) -> Result<()> {
    held.check_object()?;
    for (object, bytes) in unneeded(repository, &pruned.kept)? {
        held.check()?;
        delete(repository, &object)?;
        pruned.objects += 1;
        pruned.bytes += bytes;
    }
    // Only old files, because other processes may be storing their locks.
    let swept = repository.sweep(STALE);
    pruned.bytes += swept.map_err(|error| Error::io("clean", repository.location(), error))?;
    Ok(())
}

fn plan(repository: &dyn Repository, catalog: Catalog, options: &PruneOptions) -> Result<Pruned> {
    if options.retention.keeps_nothing() {
        let what = "no rule keeps any backup; keep at least one, such as the last";
        return Err(Error::Invalid(what.into()));
    }
    let given_up = match &options.history {
        None => None,
        Some(number) => Some(find_history(&catalog.backups, number, &repository.location())?),
    };
    let mut pruned = Pruned { notices: catalog.notices(), ..Pruned::default() };
    for (object, error) in catalog.unreadable {
        match error {
            Error::Damaged { .. } if options.remove_damaged => pruned.damaged.push(object),
            Error::Damaged { location, what } => {
                let what = format!(
                    "{what}; the objects that it needs are unknown, so nothing was removed; \
                     --remove-damaged gives it up"
                );
                return Err(Error::Damaged { location, what });
            }
            error => return Err(error),
        }
    }
    let chosen = match &options.database {
        None => None,
        Some(database) => {
            let mut own = Catalog { backups: catalog.backups.clone(), unreadable: Vec::new() };
            own.keep_database(database, &repository.location())?;
            own.backups.first().map(|backup| backup.database.clone())
        }
    };
    let backups: Vec<&Backup> = catalog.backups.iter().collect();
    for (backup, reasons) in backups.iter().zip(options.retention.reasons(&backups)) {
        let is_other = chosen.as_ref().is_some_and(|chosen| *chosen != backup.database);
        let is_given_up = given_up.as_ref() == Some(&backup.history);
        if is_given_up {
            pruned.removed.push((*backup).clone());
        } else if is_other {
            pruned.kept.push(((*backup).clone(), Vec::new()));
        } else if reasons.is_empty() {
            pruned.removed.push((*backup).clone());
        } else {
            pruned.kept.push(((*backup).clone(), reasons));
        }
    }
    Ok(pruned)
}

/// Returns the only history whose number begins with `number`. Refuses the only history of a database, because
/// the rules must keep at least one backup.
fn find_history(backups: &[Backup], number: &str, location: &str) -> Result<String> {
    let wanted = number.to_ascii_lowercase();
    let histories: BTreeSet<(&str, &str)> =
        backups.iter().map(|backup| (&*backup.history, &*backup.database)).collect();
    let found: Vec<&(&str, &str)> =
        histories.iter().filter(|(history, _)| history.starts_with(&wanted)).collect();
    let [(history, database)] = found[..] else {
        let what = if found.is_empty() { "no history" } else { "several histories" };
        return Err(Error::Invalid(format!(
            "{what} in {location} with a number that begins with '{number}'; 'terrane backup list --json' \
             prints the histories"
        )));
    };
    match histories.iter().filter(|(_, other)| other == database).count() {
        1 => Err(Error::Invalid(format!(
            "{history} is the only history of database {database}, so it is not removed"
        ))),
        _ => Ok((*history).to_owned()),
    }
}

/// Returns the objects that no kept backup needs, with their sizes.
fn unneeded(
    repository: &dyn Repository,
    kept: &[(Backup, Vec<&'static str>)],
) -> Result<Vec<(String, u64)>> {
    let files = kept.iter().flat_map(|(backup, _)| &backup.files);
    let needed: HashSet<String> = files.map(crate::manifest::BackedUpFile::object).collect();
    // A file that is not an object belongs to somebody else.
    let objects = list_folder(repository, OBJECTS)?.into_iter();
    let objects = objects.filter(|stored| ContentId::of_object(&stored.name).is_some());
    let unneeded = objects.filter(|stored| !needed.contains(&stored.name));
    Ok(unneeded.map(|stored| (stored.name, stored.bytes)).collect())
}
