//! Verifies a repository: reads every object, and names the backups that a damaged one affects.

mod files;

use std::collections::{BTreeMap, HashMap};
use std::io;

use crate::catalog::{check, list_folder, location, read_all};
use crate::content::{ContentId, OBJECTS};
use crate::error::{Error, Result};
use crate::lock::{LockKind, with_lock_if_writable};
use crate::repository::Repository;
use crate::watch::{Counting, Pace, Watch, Watched, impl_pace};

/// How a repository is verified.
#[derive(Debug, Clone, Default)]
pub struct VerifyOptions {
    pace: Pace,
    backup: Option<String>,
}

impl VerifyOptions {
    /// Returns the default options: all backups, as fast as possible.
    pub fn new() -> Self {
        Self::default()
    }

    /// Verifies one backup instead of all: the one with this name, or the only one whose name begins with
    /// it.
    #[must_use]
    pub fn backup(mut self, name: impl Into<String>) -> Self {
        self.backup = Some(name.into());
        self
    }
}

impl_pace!(
    VerifyOptions,
    "Reads at most this many bytes per second.",
    "Calls `callback` with the progress, often. [`ControlFlow::Break`](std::ops::ControlFlow::Break) \
     cancels the verification."
);

/// The result of a verification.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct RepositoryVerification {
    /// Backups verified.
    pub backups: u64,
    /// Objects read.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// The backups whose list of files contradicts the engine's manifest in them.
    pub incomplete: Vec<IncompleteBackup>,
    /// The damaged and missing objects.
    pub damaged: Vec<DamagedObject>,
    /// The manifests that cannot be read, with the reasons.
    pub unreadable: Vec<(String, Error)>,
    /// Objects that no backup refers to: those of a backup that is being created, or was interrupted.
    pub unreferenced_objects: u64,
    /// Bytes of these objects.
    pub unreferenced_bytes: u64,
}

impl RepositoryVerification {
    /// Returns true if nothing is damaged.
    pub fn is_intact(&self) -> bool {
        self.damaged.is_empty() && self.unreadable.is_empty() && self.incomplete.is_empty()
    }
}

/// An object that is damaged or missing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DamagedObject {
    /// The name of the object.
    pub object: String,
    /// The damage.
    pub what: String,
    /// The files of the database with these contents.
    pub files: Vec<String>,
    /// The names of the backups that need it.
    pub backups: Vec<String>,
}

/// A backup that cannot be restored, although its objects are intact.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IncompleteBackup {
    /// The name of the backup.
    pub backup: String,
    /// The contradiction.
    pub what: String,
}

/// The files and the backups that need an object.
#[derive(Default)]
struct Needed {
    files: Vec<String>,
    backups: Vec<String>,
}

/// Reads all manifests and every object that they name, and compares each object with its name, and the files
/// of each backup with those that the engine's manifest in it lists.
///
/// # Errors
/// The location is not a repository, or cannot be read. Damage is not an error.
pub fn verify(
    repository: &dyn Repository,
    options: &VerifyOptions,
) -> Result<RepositoryVerification> {
    check(repository)?;
    with_lock_if_writable(repository, LockKind::Shared, "backup verify", || {
        let mut catalog = read_all(repository)?;
        let mut found = RepositoryVerification::default();
        let all = needed(&catalog.backups.iter().collect::<Vec<_>>());
        if let Some(name) = &options.backup {
            let which = crate::catalog::Which::Named(name.clone());
            let one = catalog.find(&which, &repository.location())?.clone();
            catalog.backups = vec![one];
        } else {
            found.unreadable = std::mem::take(&mut catalog.unreadable);
            count_unreferenced(repository, &all, &mut found)?;
        }
        found.backups = catalog.backups.len() as u64;
        let wanted = needed(&catalog.backups.iter().collect::<Vec<_>>());
        read_objects(repository, options, &wanted, &all, &mut found)?;
        found.incomplete = files::check(repository, &catalog.backups)?;
        Ok(found)
    })
}

fn needed(backups: &[&crate::manifest::Backup]) -> BTreeMap<String, (ContentId, Needed)> {
    let mut all: BTreeMap<String, (ContentId, Needed)> = BTreeMap::new();
    for backup in backups {
        for file in &backup.files {
            let Some(content) = file.content() else { continue };
            let entry = all.entry(content.object());
            let (_, needed) = entry.or_insert_with(|| (content, Needed::default()));
            if !needed.files.contains(&file.name) {
                needed.files.push(file.name.clone());
            }
            if needed.backups.last() != Some(&backup.name) {
                needed.backups.push(backup.name.clone());
            }
        }
    }
    all
}

fn count_unreferenced(
    repository: &dyn Repository,
    all: &BTreeMap<String, (ContentId, Needed)>,
    found: &mut RepositoryVerification,
) -> Result<()> {
    for stored in list_folder(repository, OBJECTS)? {
        if ContentId::of_object(&stored.name).is_some() && !all.contains_key(&stored.name) {
            found.unreferenced_objects += 1;
            found.unreferenced_bytes += stored.bytes;
        }
    }
    Ok(())
}

fn read_objects(
    repository: &dyn Repository,
    options: &VerifyOptions,
    wanted: &BTreeMap<String, (ContentId, Needed)>,
    all: &BTreeMap<String, (ContentId, Needed)>,
    found: &mut RepositoryVerification,
) -> Result<()> {
    let mut watch = Watch::new(options.pace.clone());
    // Each size in a manifest is plausible, but their sum may overflow.
    let sizes = wanted.values().map(|(content, _)| content.bytes());
    let total = sizes.fold(0, u64::saturating_add);
    watch.set_total(wanted.len() as u64, total);
    let sizes: HashMap<String, u64> = list_folder(repository, OBJECTS)?
        .into_iter()
        .map(|stored| (stored.name, stored.bytes))
        .collect();
    for (object, (content, _)) in wanted {
        let problem = match sizes.get(object) {
            None => Some("it is missing".to_owned()),
            Some(&bytes) if bytes != content.bytes() => {
                Some(format!("it has {bytes} bytes instead of {}", content.bytes()))
            }
            Some(_) => read_object(repository, object, *content, &mut watch)?,
        };
        found.objects += 1;
        found.bytes = found.bytes.saturating_add(content.bytes());
        watch.add_file();
        if let Some(what) = problem {
            let (files, backups) = all
                .get(object)
                .map(|(_, needed)| (needed.files.clone(), needed.backups.clone()))
                .unwrap_or_default();
            found.damaged.push(DamagedObject { object: object.clone(), what, files, backups });
        }
    }
    Ok(())
}

/// Returns the damage of an object.
fn read_object(
    repository: &dyn Repository,
    object: &str,
    content: ContentId,
    watch: &mut Watch,
) -> Result<Option<String>> {
    let read = repository.get(object).and_then(|contents| {
        let mut reader = Watched::new(contents, watch, Counting::Whole);
        reader.drain()?;
        Ok(reader.finish().0)
    });
    match read {
        Ok(read) if read == content => Ok(None),
        Ok(_) => Ok(Some("its contents do not match its name".to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some("it is missing".into())),
        Err(error) => match Error::io("read", location(repository, object), error) {
            Error::Cancelled => Err(Error::Cancelled),
            // A device that cannot read one object may still read the others.
            error => Ok(Some(error.to_string())),
        },
    }
}
