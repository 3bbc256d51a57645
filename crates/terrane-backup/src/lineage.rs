//! The place of a new backup in the histories of its database.
//!
//! A restore leaves the file `HISTORY` in the directory, which states where the new history begins. Copies
//! that other programs made, such as an old image of a machine, leave no trace; a backup of such a copy
//! begins a new history if it cannot be a later state of the newest backup ([`may_follow`]).

use std::collections::HashSet;
use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::catalog::each_of;
use crate::error::{Error, Result};
use crate::history::{State, may_follow};
use crate::manifest::{Backup, HISTORY, Origin};
use crate::repository::Repository;

/// How many of the last backups of a database are searched for the one that a new backup continues.
const SEARCHED: usize = 32;

/// The contents of `HISTORY`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Beginning {
    /// The number of the database. The file counts for no other, such as one that was created in the same
    /// directory later.
    database: String,
    history: String,
    origin: Origin,
}

impl Beginning {
    /// Begins a history with the state of a backup.
    pub(crate) fn at(backup: &Backup) -> Self {
        Self {
            database: backup.database.clone(),
            history: new_history(),
            origin: Origin {
                history: backup.history.clone(),
                sequence: backup.sequence,
                backup: Some(backup.name.clone()),
            },
        }
    }

    /// Returns the contents of the file.
    pub(crate) fn encode(&self, path: &Path) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Error::file("encode", path, error.into()))
    }

    /// Reads the file of a database; `None` if it does not exist.
    fn read(dir: &Path, database: &str) -> Result<Option<Self>> {
        let path = dir.join(HISTORY);
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| Error::file("read", &path, error))?,
        };
        let found: Self = serde_json::from_slice(&bytes).map_err(|error| {
            let what = format!(
                "{error}; without this file, the backup would continue the history of the original"
            );
            Error::damaged(path.display().to_string(), what)
        })?;
        Ok((found.database == database).then_some(found))
    }
}

/// Returns a random number of a history.
fn new_history() -> String {
    // Each state has random keys, so the hash of nothing is a random number.
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// The place of a new backup.
pub(crate) struct Place {
    pub(crate) ordinal: u64,
    pub(crate) history: String,
    pub(crate) origin: Option<Origin>,
    /// The backups that were read to find it, the one that was created last first.
    pub(crate) recent: Vec<Backup>,
}

/// Finds the place of a backup of the database in `dir`, whose number and path the backup has.
pub(crate) fn place(
    repository: &dyn Repository,
    dir: &Path,
    backup: &Backup,
    state: &State,
) -> Result<Place> {
    let beginning = Beginning::read(dir, &backup.database)?;
    let mut recent = Vec::new();
    let last_ordinal = each_of(repository, &backup.database, |found| {
        let is_enough =
            is_of(&beginning, &found) && found.path == backup.path && may_follow(&found, state);
        recent.push(found);
        recent.len() < SEARCHED && !is_enough
    })?;
    let (history, origin) = continued(&recent, beginning, backup, state);
    Ok(Place { ordinal: last_ordinal + 1, history, origin, recent })
}

/// Returns true if a backup belongs to the history that a restore began, or to one that left it.
fn is_of(beginning: &Option<Beginning>, backup: &Backup) -> bool {
    beginning.as_ref().is_none_or(|beginning| {
        let left = backup.origin.as_ref().map(|origin| &origin.history);
        backup.history == beginning.history || left == Some(&beginning.history)
    })
}

/// Returns the history of a backup. It continues the history of the newest backup from its directory, or of
/// the newest from any other if there is none. If it cannot be a later state of that one, it begins a new
/// history at the newest backup that it may follow.
fn continued(
    recent: &[Backup],
    beginning: Option<Beginning>,
    backup: &Backup,
    state: &State,
) -> (String, Option<Origin>) {
    let own: Vec<&Backup> = recent.iter().filter(|found| is_of(&beginning, found)).collect();
    let here: Vec<&Backup> =
        own.iter().filter(|found| found.path == backup.path).copied().collect();
    let candidates = if here.is_empty() { own } else { here };
    let Some(newest) = candidates.first() else {
        return match beginning {
            Some(beginning) => (beginning.history, Some(beginning.origin)),
            None => (backup.database.clone(), None),
        };
    };
    let mut passed = HashSet::new();
    for found in &candidates {
        if !may_follow(found, state) {
            passed.insert(&found.history);
        } else if passed.contains(&found.history) {
            return (new_history(), Some(origin_at(found)));
        } else {
            return (found.history.clone(), found.origin.clone());
        }
    }
    let unknown = Origin { history: newest.history.clone(), sequence: 0, backup: None };
    let at = recent.iter().find(|found| may_follow(found, state)).map(origin_at);
    (new_history(), Some(at.unwrap_or(unknown)))
}

fn origin_at(backup: &Backup) -> Origin {
    Origin {
        history: backup.history.clone(),
        sequence: backup.sequence,
        backup: Some(backup.name.clone()),
    }
}
