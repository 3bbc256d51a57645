//! Restores a backup into a new directory.
//!
//! ```text
//! DIR/RESTORE        marks an unfinished restore, and names its backup
//! DIR/CHECKPOINT     makes the engine refuse the directory
//! DIR/HISTORY        states that the database has a history of its own from the backup on
//! DIR/NAME.part      a file that is being copied
//! ```
//!
//! A file gets its name when its contents are durable and match the manifest. `CURRENT`, without which the
//! directory is not a database, is written last. The same call continues an interrupted restore: it hashes
//! the existing files and copies the others.

mod mark;

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use terrane::{OpenMode, Options, inspect};

use self::mark::{Mark, part_of, sync, write_durably};
use crate::catalog::{Catalog, Which, check, location, read_all};
use crate::error::{Error, Result};
use crate::history::Notice;
use crate::limited::LimitedFile;
use crate::lineage::Beginning;
use crate::lock::{LockKind, with_lock_if_writable};
use crate::manifest::{BackedUpFile, Backup, CURRENT, HISTORY, object_of, position};
use crate::moment::compact;
use crate::repository::Repository;
use crate::watch::{Counting, PIECE_BYTES, Pace, Watch, Watched, impl_pace};

/// How a backup is restored.
#[derive(Debug, Clone, Default)]
pub struct RestoreOptions {
    pace: Pace,
    database: Option<String>,
    verify: bool,
}

impl RestoreOptions {
    /// Returns the default options: as fast as possible, without reading the files again.
    pub fn new() -> Self {
        Self::default()
    }

    /// Chooses among the backups of this database only, whose number may be abbreviated.
    #[must_use]
    pub fn database(mut self, number: impl Into<String>) -> Self {
        self.database = Some(number.into());
        self
    }

    /// Runs [`terrane::inspect::verify`] on the restored database, which reads all of it again and checks
    /// the order of all entries and all references.
    #[must_use]
    pub fn verify(mut self) -> Self {
        self.verify = true;
        self
    }
}

impl_pace!(
    RestoreOptions,
    "Copies at most this many bytes per second.",
    "Calls `callback` with the progress, often. [`ControlFlow::Break`](std::ops::ControlFlow::Break) \
     cancels the restore, which can be continued."
);

/// A database that was restored.
#[derive(Debug)]
#[non_exhaustive]
pub struct Restored {
    /// The backup.
    pub backup: Backup,
    /// Bytes copied.
    pub copied_bytes: u64,
    /// Bytes of files that an interrupted restore had copied.
    pub kept_bytes: u64,
    /// The unreadable manifests that are newer than the restored backup.
    pub skipped: Vec<String>,
    /// The forks of the histories of the database, and the times that contradict the order of its backups;
    /// empty if the backup was chosen by its name.
    pub notices: Vec<Notice>,
    /// The result of [`RestoreOptions::verify`].
    pub verification: Option<inspect::Verification>,
}

/// Restores a backup into a directory, which must not exist, or be empty, or have an unfinished restore of
/// the same backup, which is continued. Every file is verified while it is copied; finally the database is
/// opened for reading, and its last sequence number is compared with the backup.
///
/// # Errors
/// The backup does not exist, the directory is not empty, an object is damaged or missing, or something
/// cannot be read or written. The engine refuses the directory until a restore into it is complete.
pub fn restore(
    repository: &dyn Repository,
    which: &Which,
    dir: impl AsRef<Path>,
    options: &RestoreOptions,
) -> Result<Restored> {
    let dir = dir.as_ref();
    check(repository)?;
    with_lock_if_writable(repository, LockKind::Shared, "backup restore", || {
        let mut catalog = read_all(repository)?;
        let backup = choose(&mut catalog, repository, which, options)?;
        let skipped = skipped(&catalog, which, &backup);
        let notices = match which {
            Which::Named(_) => Vec::new(),
            _ => catalog.notices(),
        };
        let mark = Mark::begin(dir, &backup.name)?;
        let mut run = Run {
            repository,
            dir,
            watch: Watch::new(options.pace.clone()),
            restored: Restored {
                backup,
                copied_bytes: 0,
                kept_bytes: 0,
                skipped,
                notices,
                verification: None,
            },
        };
        // With CURRENT, all files exist, and another process may have written to the database since.
        let is_complete = dir.join(CURRENT).exists();
        if !is_complete {
            run.begin_history()?;
            run.copy_all()?;
        }
        run.check(is_complete, options.verify)?;
        mark.finish()?;
        Ok(run.restored)
    })
}

fn choose(
    catalog: &mut Catalog,
    repository: &dyn Repository,
    which: &Which,
    options: &RestoreOptions,
) -> Result<Backup> {
    let location = repository.location();
    if let Some(database) = &options.database {
        catalog.keep_database(database, &location)?;
    }
    catalog.find(which, &location).cloned()
}

/// Returns the manifests that cannot be read and are newer than the chosen backup, as far as their names
/// show it.
fn skipped(catalog: &Catalog, which: &Which, chosen: &Backup) -> Vec<String> {
    let until = match which {
        Which::Named(_) => return Vec::new(),
        Which::At(micros) => object_of(&format!("{}~", compact(*micros))),
        Which::Latest => object_of("~"),
    };
    let objects = catalog.unreadable.iter().map(|(object, _)| object);
    let chosen = chosen.object();
    let is_newer = |object: &&String| position(object) > position(&chosen) && **object < until;
    objects.filter(is_newer).cloned().collect()
}

/// A restore in progress.
struct Run<'a> {
    repository: &'a dyn Repository,
    dir: &'a Path,
    watch: Watch,
    restored: Restored,
}

impl Run<'_> {
    /// Records that the later writes to the restored database are not those of its original.
    fn begin_history(&self) -> Result<()> {
        let path = self.dir.join(HISTORY);
        if path.exists() {
            return Ok(());
        }
        let beginning = Beginning::at(&self.restored.backup);
        write_durably(self.dir, HISTORY, &beginning.encode(&path)?)
    }

    fn copy_all(&mut self) -> Result<()> {
        let mut files = self.restored.backup.files.clone();
        // Decoding the manifest has checked that this does not overflow.
        let total = self.restored.backup.files_bytes().unwrap_or(u64::MAX);
        self.watch.set_total(files.len() as u64, total);
        files.sort_by_key(|file| file.name == CURRENT);
        for file in &files {
            if file.name == CURRENT {
                sync(self.dir)?;
            }
            if self.has(file)? {
                self.restored.kept_bytes += file.bytes;
            } else {
                self.copy(file)?;
                self.restored.copied_bytes += file.bytes;
            }
            self.watch.add_file();
        }
        sync(self.dir)
    }

    /// Returns true if an interrupted restore has copied the file.
    fn has(&mut self, file: &BackedUpFile) -> Result<bool> {
        let path = self.dir.join(&file.name);
        let failed = |error| Error::file("read", &path, error);
        let contents = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            contents => contents.map_err(failed)?,
        };
        // Only copied bytes count against the rate.
        let mut watch = Watch::new(Pace::default());
        let mut reader = Watched::new(contents, &mut watch, Counting::Whole);
        reader.drain().map_err(failed)?;
        let is_same = Some(reader.finish().0) == file.content();
        if is_same {
            self.watch.add_bytes(file.bytes);
            self.watch.report().map_err(failed)?;
        }
        Ok(is_same)
    }

    fn copy(&mut self, file: &BackedUpFile) -> Result<()> {
        let object = file.object();
        let source = location(self.repository, &object);
        let (part, path) = (self.dir.join(part_of(&file.name)), self.dir.join(&file.name));
        let contents = match self.repository.get(&object) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::damaged(source, self.affected(file, "it is missing")));
            }
            contents => contents.map_err(|error| Error::io("read", source.clone(), error))?,
        };
        let mut reader = Watched::new(contents, &mut self.watch, Counting::Whole);
        let written = LimitedFile::create(&part);
        let written = written.map_err(|error| Error::file("create", &part, error))?;
        copy_synced(&mut reader, written, &source, &part)?;
        if Some(reader.finish().0) != file.content() {
            let _ = fs::remove_file(&part);
            let what = self.affected(file, "its contents do not match its name");
            return Err(Error::damaged(source, what));
        }
        fs::rename(&part, &path).map_err(|error| Error::file("rename", &part, error))
    }

    fn affected(&self, file: &BackedUpFile, what: &str) -> String {
        format!(
            "{what}, so {} cannot be restored; 'terrane backup verify' lists the backups that are intact",
            file.name
        )
    }

    /// Opens the database for reading.
    fn check(&mut self, is_complete: bool, verify: bool) -> Result<()> {
        let options = Options::new().unknown_functions().open_mode(OpenMode::MustExist);
        let found = options.open_read_only(self.dir)?.snapshot().sequence_number();
        let expected = self.restored.backup.sequence;
        if found != expected && !(is_complete && found > expected) {
            let what = format!("its last sequence number is {found} instead of {expected}");
            return Err(Error::damaged(self.dir.display().to_string(), what));
        }
        if verify {
            let mut report = |_| {};
            self.restored.verification = Some(inspect::verify(self.dir, &mut report)?);
        }
        Ok(())
    }
}

/// Copies to a file and syncs it. An error names the side that failed.
fn copy_synced(
    reader: &mut impl Read,
    mut file: LimitedFile,
    source: &str,
    target: &Path,
) -> Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let bytes = match reader.read(&mut piece) {
            Ok(0) => break,
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::io("read", source, error)),
        };
        file.write_all(&piece[..bytes]).map_err(|error| Error::file("write", target, error))?;
    }
    file.sync().map_err(|error| Error::file("sync", target, error))
}
