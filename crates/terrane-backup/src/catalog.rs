//! A repository as a whole: its mark, and its backups.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::history::{self, Notice};
use crate::manifest::{BACKUPS, Backup, MANIFEST_BYTES_MAX, SCHEMA, position};
use crate::moment::utc;
use crate::repository::{Repository, Stored};

/// The object that marks a repository.
const MARK: &str = "repository.json";

/// The contents of the mark.
#[derive(Serialize, Deserialize)]
struct Mark {
    format: String,
    schema: u32,
}

const FORMAT: &str = "terrane-backup";

/// Returns the location of an object, for messages.
pub(crate) fn location(repository: &dyn Repository, object: &str) -> String {
    format!("{}/{object}", repository.location().trim_end_matches('/'))
}

/// Reads a whole object, which should be no longer than a manifest may be, and stops one byte after
/// that length; `None` if the object does not exist.
pub(crate) fn read(repository: &dyn Repository, object: &str) -> Result<Option<Vec<u8>>> {
    let failed = |error| Error::io("read", location(repository, object), error);
    let mut reader = match repository.get(object) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(failed)?,
    };
    let mut bytes = Vec::new();
    // One more byte shows that the object is too long.
    reader.by_ref().take(MANIFEST_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// Stores bytes as an object.
pub(crate) fn write(repository: &dyn Repository, object: &str, mut bytes: &[u8]) -> Result<()> {
    let failed = |error| Error::io("write", location(repository, object), error);
    repository.put(object, &mut bytes).map_err(failed)
}

/// Lists the objects of a folder.
pub(crate) fn list_folder(repository: &dyn Repository, folder: &str) -> Result<Vec<Stored>> {
    repository.list(folder).map_err(|error| Error::io("list", location(repository, folder), error))
}

/// Removes an object.
pub(crate) fn delete(repository: &dyn Repository, object: &str) -> Result<()> {
    repository
        .delete(object)
        .map_err(|error| Error::io("remove", location(repository, object), error))
}

/// Checks that a location is a repository that this version understands.
///
/// # Errors
/// It is not.
pub(crate) fn check(repository: &dyn Repository) -> Result<()> {
    match read_mark(repository)? {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "no backup repository in {}; 'terrane backup create' makes one",
            repository.location()
        ))),
    }
}

/// Makes a location a repository, if it is empty.
///
/// # Errors
/// It is neither empty nor a repository.
pub(crate) fn check_or_create(repository: &dyn Repository) -> Result<()> {
    if read_mark(repository)? {
        return Ok(());
    }
    // Another backup may have made it a repository in the meantime.
    if !list_folder(repository, "")?.is_empty() && !read_mark(repository)? {
        return Err(Error::NotRepository { location: repository.location() });
    }
    let mark = Mark { format: FORMAT.into(), schema: SCHEMA };
    let mut bytes = serde_json::to_vec(&mark)
        .map_err(|error| Error::io("encode", location(repository, MARK), error.into()))?;
    bytes.push(b'\n');
    write(repository, MARK, &bytes)
}

/// Returns false if the mark does not exist.
fn read_mark(repository: &dyn Repository) -> Result<bool> {
    let Some(bytes) = read(repository, MARK)? else { return Ok(false) };
    let location = location(repository, MARK);
    let mark: Mark = serde_json::from_slice(&bytes)
        .map_err(|error| Error::damaged(location.clone(), error.to_string()))?;
    if mark.format != FORMAT {
        return Err(Error::damaged(location, format!("it is the mark of '{}'", mark.format)));
    }
    if mark.schema > SCHEMA {
        return Err(Error::Unsupported { location, found: mark.schema, supported: SCHEMA });
    }
    Ok(true)
}

/// The backups in a repository.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Catalog {
    /// The backups. Those of each database are together, and those of each of its histories in the order of
    /// their sequence numbers, whatever the clock said when they were created.
    pub backups: Vec<Backup>,
    /// The manifests that cannot be read, with the reasons.
    pub unreadable: Vec<(String, Error)>,
}

/// Returns the backups in a repository. A manifest that cannot be read does not hide the others.
///
/// # Errors
/// The location is not a repository, or cannot be read.
pub fn list(repository: &dyn Repository) -> Result<Catalog> {
    check(repository)?;
    read_all(repository)
}

pub(crate) fn read_all(repository: &dyn Repository) -> Result<Catalog> {
    let mut catalog = Catalog::default();
    for stored in list_folder(repository, BACKUPS)? {
        match read_one(repository, &stored) {
            Ok(Some(backup)) => catalog.backups.push(backup),
            // It was removed meanwhile.
            Ok(None) => {}
            Err(error @ (Error::Damaged { .. } | Error::Unsupported { .. })) => {
                catalog.unreadable.push((stored.name, error));
            }
            Err(error) => return Err(error),
        }
    }
    catalog.backups = history::sort(&catalog.backups);
    catalog.unreadable.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(catalog)
}

/// Calls `is_wanted` with the backups of a database that can be read, beginning with the one that was created
/// last, until it returns false. Reads no other manifest, because there may be thousands. Returns the
/// highest ordinal of all.
pub(crate) fn each_of(
    repository: &dyn Repository,
    database: &str,
    mut is_wanted: impl FnMut(Backup) -> bool,
) -> Result<u64> {
    let ending = format!("-{database}.json");
    let mut manifests = list_folder(repository, BACKUPS)?;
    manifests.retain(|stored| stored.name.ends_with(&ending));
    manifests.sort_unstable_by(|one, other| position(&other.name).cmp(&position(&one.name)));
    let last = manifests.first().map_or(0, |stored| position(&stored.name).0);
    for stored in manifests {
        match read_one(repository, &stored) {
            Ok(Some(backup)) if backup.database == database => {
                if !is_wanted(backup) {
                    break;
                }
            }
            Ok(_) | Err(Error::Damaged { .. } | Error::Unsupported { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(last)
}

fn read_one(repository: &dyn Repository, stored: &Stored) -> Result<Option<Backup>> {
    let location = location(repository, &stored.name);
    if stored.bytes > MANIFEST_BYTES_MAX {
        return Err(Error::damaged(location, "it is larger than any manifest"));
    }
    let Some(bytes) = read(repository, &stored.name)? else { return Ok(None) };
    Backup::decode(&bytes, &stored.name, &location).map(Some)
}

/// The backup to use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Which {
    /// The newest: the one with the most writes of the history that was continued last.
    #[default]
    Latest,
    /// The newest of those that were made at this time or before by the clock of their machine, in
    /// microseconds since 1970.
    At(u64),
    /// The backup with this name, or the only one whose name begins with it.
    Named(String),
}

impl Catalog {
    /// Returns the numbers of the databases that have backups.
    pub fn databases(&self) -> Vec<&str> {
        let mut found: Vec<&str> =
            self.backups.iter().map(|backup| backup.database.as_str()).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Removes the backups of all databases but one, whose number may be abbreviated.
    ///
    /// # Errors
    /// No database, or several of them, have a number that begins with `database`.
    pub fn keep_database(&mut self, database: &str, location: &str) -> Result<()> {
        let wanted = database.to_ascii_lowercase();
        let databases = self.databases();
        let found: Vec<&&str> =
            databases.iter().filter(|number| number.starts_with(&wanted)).collect();
        let number = match found[..] {
            [one] => (*one).to_owned(),
            [] => {
                let wanted = format!("backup of database {database}");
                return Err(Error::NoBackup { wanted, location: location.to_owned() });
            }
            _ => {
                let what = format!("several databases in {location} have numbers with {database}");
                return Err(Error::Invalid(format!("{what}; give more digits")));
            }
        };
        self.backups.retain(|backup| backup.database == number);
        Ok(())
    }

    /// Returns a backup.
    ///
    /// # Errors
    /// There is none. Without a name, there are backups of several databases; see
    /// [`keep_database`](Self::keep_database).
    pub fn find(&self, which: &Which, location: &str) -> Result<&Backup> {
        if let Which::Named(name) = which {
            return self.named(name, location);
        }
        let databases = self.databases();
        if databases.len() > 1 {
            let names = databases.join(", ");
            return Err(Error::Invalid(format!(
                "{location} has backups of several databases: {names}; choose one with --database"
            )));
        }
        let missing = |wanted: String| {
            // The wanted manifest may be a damaged one.
            let wanted = match self.unreadable.first() {
                Some((_, error)) => format!("{wanted} ({error})"),
                None => wanted,
            };
            Error::NoBackup { wanted, location: location.to_owned() }
        };
        let (until, wanted) = match which {
            Which::At(micros) => (*micros, format!("backup from {} or before", utc(*micros))),
            _ => (u64::MAX, "backup".into()),
        };
        let candidates = self.backups.iter().filter(|backup| backup.time_micros <= until);
        history::newest(&candidates.collect::<Vec<_>>()).ok_or_else(|| missing(wanted))
    }

    /// Returns the forks of histories among the backups, and the times that contradict the order.
    pub fn notices(&self) -> Vec<Notice> {
        history::notices(&self.backups.iter().collect::<Vec<_>>())
    }

    fn named(&self, name: &str, location: &str) -> Result<&Backup> {
        if let Some(exact) = self.backups.iter().find(|backup| backup.name == name) {
            return Ok(exact);
        }
        let mut matching = self.backups.iter().filter(|backup| backup.name.starts_with(name));
        match (matching.next(), matching.next()) {
            (Some(backup), None) if !name.is_empty() => Ok(backup),
            (Some(_), _) => Err(Error::Invalid(format!(
                "several backups in {location} have names that begin with '{name}'; give the whole name"
            ))),
            (None, _) => match self.unreadable.iter().find(|(object, _)| {
                object.strip_prefix(BACKUPS).is_some_and(|object| object.starts_with(name))
            }) {
                Some((_, Error::Damaged { location, what })) => {
                    Err(Error::damaged(location.clone(), what.clone()))
                }
                _ => Err(Error::NoBackup {
                    wanted: format!("backup '{name}'"),
                    location: location.to_owned(),
                }),
            },
        }
    }
}
