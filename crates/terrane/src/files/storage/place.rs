//! Where a file of a disk is: a path, or a path relative to a directory that is held open.
//!
//! A held directory stays the one that was opened: renaming it, replacing a symbolic link on the path to
//! it, or changing the working directory has no effect on names that are relative to it.
#![allow(clippy::disallowed_types, reason = "a directory is held through an open file")]

use std::path::{Path, PathBuf};
#[cfg(unix)]
use std::{
    fs::File,
    io,
    os::fd::{AsFd, BorrowedFd},
    sync::atomic::{AtomicBool, Ordering},
    sync::{Arc, OnceLock},
};

/// A directory that is held open.
#[cfg(unix)]
#[derive(Debug)]
pub(super) struct Directory {
    /// The absolute path by which it was opened.
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// The first refusal of the file system to sync the directory.
    refusal: OnceLock<String>,
    is_refusal_taken: AtomicBool,
}

#[cfg(unix)]
impl Directory {
    pub(super) fn new(path: PathBuf, file: File) -> Self {
        Self { path, file, refusal: OnceLock::new(), is_refusal_taken: AtomicBool::new(false) }
    }

    /// Notes that the file system refused to sync the directory.
    pub(super) fn note_refusal(&self, error: &io::Error) {
        self.refusal.get_or_init(|| error.to_string());
    }

    /// Returns the refusal to sync the directory, once.
    pub(super) fn take_refusal(&self) -> Option<String> {
        let refusal = self.refusal.get()?;
        // Relaxed: no other memory access depends on the flag.
        let is_taken = self.is_refusal_taken.swap(true, Ordering::Relaxed);
        (!is_taken).then(|| refusal.clone())
    }
}

/// A file or directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    #[cfg(unix)]
    dir: Option<&'a Arc<Directory>>,
    /// Relative to `dir`, if there is one.
    path: &'a Path,
}

/// A [`Place`] that borrows nothing.
#[derive(Debug)]
pub(super) struct OwnedPlace {
    #[cfg(unix)]
    dir: Option<Arc<Directory>>,
    path: PathBuf,
}

impl<'a> Place<'a> {
    /// Returns the place to which a path leads at the time of each call.
    pub(super) fn by_path(path: &'a Path) -> Self {
        Self {
            #[cfg(unix)]
            dir: None,
            path,
        }
    }

    /// Returns the path, which is relative to [`Self::dir`].
    pub(super) fn path(&self) -> &'a Path {
        // The held directory itself.
        if self.path.as_os_str().is_empty() { Path::new(".") } else { self.path }
    }

    pub(super) fn to_owned(self) -> OwnedPlace {
        OwnedPlace {
            #[cfg(unix)]
            dir: self.dir.cloned(),
            path: self.path.to_owned(),
        }
    }
}

#[cfg(unix)]
impl<'a> Place<'a> {
    /// Returns the place with the path `path` in a held directory. An empty path is the directory.
    pub(super) fn within(dir: &'a Arc<Directory>, path: &'a Path) -> Self {
        Self { dir: Some(dir), path }
    }

    /// Returns the directory from which the path counts.
    pub(super) fn dir(&self) -> BorrowedFd<'a> {
        self.dir.map_or(rustix::fs::CWD, |dir| dir.file.as_fd())
    }

    /// Returns the held directory from which the path counts.
    pub(super) fn held_dir(&self) -> Option<&'a Directory> {
        self.dir.map(|dir| &**dir)
    }

    /// Returns the held directory if this place is that directory.
    pub(super) fn as_held_dir(&self) -> Option<&'a Directory> {
        self.held_dir().filter(|_| self.path.as_os_str().is_empty())
    }
}

impl OwnedPlace {
    pub(super) fn borrow(&self) -> Place<'_> {
        Place {
            #[cfg(unix)]
            dir: self.dir.as_ref(),
            path: &self.path,
        }
    }
}
