//! A repository in a local directory.
//!
//! An object is written to a file in `tmp`, synced, and renamed to its name; then the directory of the name
//! is synced. It is a copy: no file of a repository is a link to a file of a database.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::content::OBJECTS;
use crate::limited::LimitedFile;
use crate::moment::now_micros;
use crate::repository::{Repository, Stored};

/// The folder of incomplete objects.
const TEMPORARY: &str = "tmp";

/// A folder at the top of some file systems, which only the system may read.
const LOST_AND_FOUND: &str = "lost+found";

/// The number of bytes written at once.
const PIECE_BYTES: usize = 1 << 20;

/// A repository in a directory of a file system.
#[derive(Debug, Clone)]
pub struct Directory {
    root: PathBuf,
}

impl Directory {
    /// Returns the repository in a directory, which the first backup creates.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the directory.
    pub fn path(&self) -> &Path {
        &self.root
    }

    fn file(&self, name: &str) -> PathBuf {
        let mut path = self.root.clone();
        path.extend(name.split('/'));
        path
    }

    /// Creates a directory below the root, so that it survives a power failure.
    fn create_folder(&self, dir: &Path) -> io::Result<()> {
        if dir.is_dir() {
            return Ok(());
        }
        if let Some(parent) = dir.parent()
            && !parent.as_os_str().is_empty()
        {
            self.create_folder(parent)?;
        }
        match fs::create_dir(dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => dir.parent().map_or(Ok(()), sync_dir),
        }
    }
}

impl Repository for Directory {
    fn location(&self) -> String {
        self.root.display().to_string()
    }

    fn put(&self, name: &str, contents: &mut dyn Read) -> io::Result<()> {
        let temporary = self.root.join(TEMPORARY);
        self.create_folder(&temporary)?;
        let temporary = temporary.join(unique_name());
        let target = self.file(name);
        let folder = target.parent().unwrap_or(&self.root);
        let stored = write_synced(&temporary, contents)
            .and_then(|()| self.create_folder(folder))
            .and_then(|()| fs::rename(&temporary, &target));
        if stored.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        stored?;
        sync_dir(folder)
    }

    fn get(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let file = File::open(self.file(name))?;
        if file.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(Box::new(file))
    }

    fn list(&self, folder: &str) -> io::Result<Vec<Stored>> {
        let mut found = Vec::new();
        let mut folders = vec![folder.trim_end_matches('/').to_owned()];
        while let Some(folder) = folders.pop() {
            let entries = match fs::read_dir(self.file(&folder)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                entries => entries?,
            };
            for entry in entries {
                let entry = entry?;
                // No backup creates a name that is not UTF-8, but such a file still counts as an object.
                let name = entry.file_name().to_string_lossy().into_owned();
                let name = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                match entry.metadata() {
                    Ok(facts) if facts.is_dir() => {
                        if name != TEMPORARY && name != LOST_AND_FOUND {
                            folders.push(name);
                        }
                    }
                    Ok(facts) => found.push(Stored { name, bytes: facts.len() }),
                    // Another process has removed it meanwhile.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let path = self.file(name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            // An object that reappears after a power failure is simply removed again, but a
            // manifest must not reappear, because its objects are removed next.
            Ok(()) if !name.starts_with(OBJECTS) => path.parent().map_or(Ok(()), sync_dir),
            removed => removed,
        }
    }

    fn exists(&self, name: &str) -> io::Result<bool> {
        match fs::metadata(self.file(name)) {
            Ok(facts) => Ok(facts.is_file()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sweep(&self, unchanged_for: Duration) -> io::Result<u64> {
        let entries = match fs::read_dir(self.root.join(TEMPORARY)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
            entries => entries?,
        };
        let mut bytes = 0;
        for entry in entries {
            let entry = entry?;
            let Ok(facts) = entry.metadata() else { continue };
            let is_old = facts.modified()?.elapsed().is_ok_and(|age| age >= unchanged_for);
            if facts.is_file() && is_old {
                fs::remove_file(entry.path())?;
                bytes += facts.len();
            }
        }
        Ok(bytes)
    }
}

/// Returns a name that no other file in the folder of incomplete objects has.
fn unique_name() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{:x}-{:x}-{count:x}", std::process::id(), now_micros())
}

fn write_synced(path: &Path, contents: &mut dyn Read) -> io::Result<()> {
    let mut file = LimitedFile::create_new(path)?;
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match contents.read(&mut piece) {
            Ok(0) => return file.sync(),
            Ok(bytes) => file.write_all(&piece[..bytes])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Makes the names in a directory durable, on systems that support it.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        File::open(dir)?.sync_all()?;
    }
    Ok(())
}
