//! Creates a backup.
//!
//! 1. A shared lock on the repository keeps prunes out.
//! 2. A checkpoint next to the database has all of its files at one moment.
//! 3. The backup gets its place in the history of the database, which no clock decides.
//! 4. A file is not read if it cannot change, and the last backup of the database has it with the same
//!    name, size and engine checksum. Any other file is read to compute its hash; a table must also match
//!    the checksum in the engine's manifest. If the repository has no object with these contents, the file
//!    is read again and stored, unless its hash has changed meanwhile.
//! 5. The manifest is stored last, which makes it a backup. If the process ends earlier, it leaves objects
//!    that the next backup uses.

mod options;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::Path;

use terrane::inspect::{DatabaseFiles, FileFacts};
use terrane::{OpenMode, Options, inspect};

use crate::catalog::{check_or_create, delete, list_folder, location, write};
use crate::content::{ContentId, OBJECTS};
use crate::error::{Error, Result};
use crate::history::{Notice, State, notices};
use crate::limited::LimitedFile;
use crate::lineage::{Place, place};
use crate::lock::{Held, LockKind, with_lock};
use crate::manifest::{BackedUpFile, BackedUpKeyspace, Backup, NOT_COPIED, SCHEMA, name_of};
use crate::moment::{now_micros, utc};
use crate::repository::Repository;
use crate::source::Source;
use crate::staging::Staging;
use crate::watch::{Counting, Watch, Watched};

pub use self::options::{CreateOptions, ReadBack};

/// A backup that was created, and its cost.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Created {
    /// The backup.
    pub backup: Backup,
    /// Files whose contents were stored.
    pub stored_files: u64,
    /// Bytes of these files.
    pub stored_bytes: u64,
    /// Bytes of files that were read, each counted once.
    pub read_bytes: u64,
    /// The fork of the history, or the contradiction of the clock, that this backup brought about.
    pub notices: Vec<Notice>,
}

/// Creates a backup of a database, which may be written meanwhile. The first backup makes the location a
/// repository.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use terrane_backup::{CreateOptions, Directory, RestoreOptions, Which};
///
/// let db = terrane::Db::open(dir.path().join("db"))?;
/// db.put("key", "value")?;
/// let repository = Directory::new(dir.path().join("backups"));
/// let created = terrane_backup::create(&db, &repository, &CreateOptions::new())?;
/// assert_eq!(terrane_backup::list(&repository)?.backups, [created.backup]);
///
/// let restored = dir.path().join("restored");
/// terrane_backup::restore(&repository, &Which::Latest, &restored, &RestoreOptions::new())?;
/// assert_eq!(terrane::Db::open(restored)?.get("key")?.unwrap(), "value");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The checkpoint failed, a table is damaged, the location is not a repository or another process prunes
/// it, or something cannot be read or stored. No backup is created then; the next one uses the objects that
/// were stored.
pub fn create<S: Source + ?Sized>(
    source: &S,
    repository: &dyn Repository,
    options: &CreateOptions,
) -> Result<Created> {
    check_or_create(repository)?;
    with_lock(repository, LockKind::Shared, "backup create", |held| {
        let staging = Staging::create(source.path(), options.temporary.as_deref())?;
        let dir = staging.checkpoint();
        source.checkpoint(&dir).map_err(checkpoint_error)?;
        let time_micros = options.time_micros.unwrap_or_else(now_micros);
        let found = inspect::files(&dir)?;
        freeze(&dir, &found)?;
        let mut backup = describe(source.path(), &dir, &found, time_micros)?;
        let tables = found.files.iter().map(|file| file.name.clone()).collect();
        let state = State { sequence: backup.sequence, tables };
        let place = place(repository, source.path(), &backup, &state)?;
        let earlier = earlier_files(&place, options);
        let notices = put_into(&mut backup, place);
        let run = Run {
            repository,
            held,
            options,
            watch: Watch::new(options.pace.clone()),
            stored: stored_objects(repository)?,
            earlier,
            created: Created { backup, stored_files: 0, stored_bytes: 0, read_bytes: 0, notices },
        };
        run.finish(&dir, &found)
    })
}

/// Passes on an engine error as such.
fn checkpoint_error(error: crate::source::CheckpointError) -> Error {
    match error.downcast::<terrane::Error>() {
        Ok(error) => Error::Engine(*error),
        Err(error) => Error::Checkpoint(error),
    }
}

/// Replaces, by copies, the files that the database may still change: log segments that store
/// values. Writes to them after the checkpoint do not count.
fn freeze(dir: &Path, found: &DatabaseFiles) -> Result<()> {
    for file in found.files.iter().filter(|file| !file.is_final) {
        let (path, copy) = (dir.join(&file.name), dir.join("frozen"));
        let source = File::open(&path);
        let copied =
            source.and_then(|mut source| io::copy(&mut source, &mut LimitedFile::create(&copy)?));
        copied.map_err(|error| Error::file("copy", &path, error))?;
        fs::rename(&copy, &path).map_err(|error| Error::file("replace", &path, error))?;
    }
    Ok(())
}

/// Returns the objects of a repository with their sizes.
fn stored_objects(repository: &dyn Repository) -> Result<HashMap<String, u64>> {
    let objects = list_folder(repository, OBJECTS)?;
    Ok(objects.into_iter().map(|stored| (stored.name, stored.bytes)).collect())
}

/// Returns the files of the last backup of the same database.
fn earlier_files(place: &Place, options: &CreateOptions) -> HashMap<String, BackedUpFile> {
    let last = place.recent.first().filter(|_| !options.reread);
    let files = last.map(|backup| backup.files.clone()).unwrap_or_default();
    files.into_iter().map(|file| (file.name.clone(), file)).collect()
}

/// Gives a backup its place. Returns the notices that the earlier backups alone do not cause.
fn put_into(backup: &mut Backup, place: Place) -> Vec<Notice> {
    backup.ordinal = place.ordinal;
    backup.name = name_of(backup.time_micros, backup.ordinal, &backup.database);
    backup.history = place.history;
    backup.origin = place.origin;
    let mut backups: Vec<&Backup> = place.recent.iter().collect();
    let before = notices(&backups);
    backups.push(backup);
    let is_new = |notice: &Notice| !before.contains(notice);
    notices(&backups).into_iter().filter(is_new).collect()
}

fn database_number(found: &DatabaseFiles) -> String {
    format!("{:016x}", found.database)
}

/// Opens the checkpoint, which shows that it can be opened, and describes it except for its files and its
/// place in the history.
fn describe(path: &Path, dir: &Path, found: &DatabaseFiles, time_micros: u64) -> Result<Backup> {
    let options = Options::new().unknown_functions().open_mode(OpenMode::MustExist);
    let sequence = options.open_read_only(dir)?.snapshot().sequence_number();
    let database = database_number(found);
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let keyspaces = found
        .keyspaces
        .iter()
        .map(|(name, design)| BackedUpKeyspace { name: name.clone(), design: design.to_string() });
    Ok(Backup {
        schema: SCHEMA,
        name: String::new(),
        database,
        path: path.display().to_string(),
        time: utc(time_micros),
        time_micros,
        sequence,
        ordinal: 0,
        history: String::new(),
        origin: None,
        engine: env!("CARGO_PKG_VERSION").to_owned(),
        keyspaces: keyspaces.collect(),
        bytes: 0,
        files: Vec::new(),
    })
}

/// A backup that is being created.
struct Run<'a> {
    repository: &'a dyn Repository,
    held: &'a Held<'a>,
    options: &'a CreateOptions,
    watch: Watch,
    /// The objects in the repository, with their sizes.
    stored: HashMap<String, u64>,
    /// The files of the last backup.
    earlier: HashMap<String, BackedUpFile>,
    created: Created,
}

impl Run<'_> {
    fn finish(mut self, dir: &Path, found: &DatabaseFiles) -> Result<Created> {
        let facts: HashMap<&str, &FileFacts> =
            found.files.iter().map(|file| (file.name.as_str(), file)).collect();
        let files = files_of(dir)?;
        if let Some(missing) = facts.keys().find(|name| !files.contains_key(**name)) {
            let location = dir.join(missing).display().to_string();
            return Err(Error::damaged(location, "it is missing, although the manifest lists it"));
        }
        self.watch.set_total(files.len() as u64, files.values().sum());
        for (name, bytes) in &files {
            let file =
                self.copy(&dir.join(name), name, *bytes, facts.get(name.as_str()).copied())?;
            self.held.check()?;
            self.created.backup.bytes += file.bytes;
            self.created.backup.files.push(file);
            self.watch.add_file();
        }
        self.watch
            .report()
            .map_err(|error| Error::io("report", dir.display().to_string(), error))?;
        self.commit()
    }

    /// Stores the manifest. If the lock was lost meanwhile, a prune may have removed objects without seeing
    /// the manifest, so the manifest is removed.
    fn commit(self) -> Result<Created> {
        let backup = &self.created.backup;
        self.held.check_object()?;
        write(self.repository, &backup.object(), &backup.encode()?)?;
        if let Err(lost) = self.held.check_object() {
            delete(self.repository, &backup.object())?;
            return Err(lost);
        }
        Ok(self.created)
    }

    /// Ensures that the repository has the contents of a file.
    fn copy(
        &mut self,
        path: &Path,
        name: &str,
        bytes: u64,
        facts: Option<&FileFacts>,
    ) -> Result<BackedUpFile> {
        let checksum = facts.and_then(|facts| facts.checksum);
        let xxh3 = checksum.map(|checksum| format!("{checksum:016x}"));
        let is_final = facts.is_some_and(|facts| facts.is_final);
        if let Some(known) = self.earlier.get(name)
            && is_final
            && known.is_final
            && (known.bytes, &known.xxh3) == (bytes, &xxh3)
            && self.has(&known.object(), bytes)
        {
            let known = known.clone();
            let is_intact = self.options.read_back != ReadBack::All || self.is_intact(&known)?;
            if is_intact {
                self.watch.add_bytes(bytes);
                return Ok(known);
            }
        }
        let content = self.hash(path, bytes, checksum)?;
        let file = BackedUpFile {
            name: name.to_owned(),
            bytes: content.bytes(),
            sha256: content.sha256(),
            xxh3,
            is_final,
        };
        let is_stored = self.has(&content.object(), content.bytes())
            && (self.options.read_back != ReadBack::All || self.is_intact(&file)?);
        if is_stored {
            self.watch.add_bytes(bytes);
        } else {
            self.store(path, content)?;
            if self.options.read_back != ReadBack::Nothing && !self.is_intact(&file)? {
                let location = location(self.repository, &content.object());
                return Err(Error::damaged(location, "it was read back with other contents"));
            }
        }
        Ok(file)
    }

    fn has(&self, object: &str, bytes: u64) -> bool {
        self.stored.get(object) == Some(&bytes)
    }

    /// Hashes a file, and compares it with the engine's checksum and size.
    fn hash(&mut self, path: &Path, bytes: u64, checksum: Option<u64>) -> Result<ContentId> {
        let failed = |error| Error::file("read", path, error);
        let file = File::open(path).map_err(failed)?;
        let mut reader = Watched::new(file, &mut self.watch, Counting::FirstOfTwo).with_sum();
        reader.drain().map_err(failed)?;
        let (content, sum) = reader.finish();
        self.created.read_bytes += content.bytes();
        if content.bytes() != bytes || checksum.is_some_and(|checksum| sum != Some(checksum)) {
            let what = "its checksum is not that of the manifest; 'terrane verify' on the database \
                        lists all damage, and earlier backups may have it intact";
            return Err(Error::damaged(path.display().to_string(), what));
        }
        Ok(content)
    }

    fn store(&mut self, path: &Path, content: ContentId) -> Result<()> {
        let object = content.object();
        let file = File::open(path).map_err(|error| Error::file("read", path, error))?;
        let reader = Watched::new(file, &mut self.watch, Counting::SecondOfTwo);
        let mut reader = reader.expecting(content);
        let put = self.repository.put(&object, &mut reader);
        if reader.has_other_contents() {
            let what = "it had other contents when it was read again";
            return Err(Error::damaged(path.display().to_string(), what));
        }
        put.map_err(|error| Error::io("write", location(self.repository, &object), error))?;
        self.stored.insert(object, content.bytes());
        self.created.stored_files += 1;
        self.created.stored_bytes += content.bytes();
        Ok(())
    }

    /// Reads an object back. Forgets a damaged one, so that it is stored again.
    fn is_intact(&mut self, file: &BackedUpFile) -> Result<bool> {
        let object = file.object();
        let failed = |error| Error::io("read", location(self.repository, &object), error);
        let content = match self.repository.get(&object) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(failed(error)),
            Ok(contents) => {
                let mut reader = Watched::new(contents, &mut self.watch, Counting::FirstOfTwo);
                reader.drain().map_err(failed)?;
                Some(reader.finish().0)
            }
        };
        let is_intact = content.is_some() && content == file.content();
        if !is_intact {
            self.stored.remove(&object);
        }
        Ok(is_intact)
    }
}

/// Returns the files of a checkpoint with their sizes, in the order of their names.
fn files_of(dir: &Path) -> Result<BTreeMap<String, u64>> {
    let failed = |error| Error::file("list", dir, error);
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let facts = entry.metadata().map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if facts.is_file() && !NOT_COPIED.contains(&name.as_str()) {
            files.insert(name, facts.len());
        }
    }
    Ok(files)
}
