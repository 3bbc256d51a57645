//! The names of a [`MemoryStorage`](super::MemoryStorage): files and directories by path.
//!
//! 1. All paths have the form that [`normal`] returns, so that `./db` and `db` are one name.
//! 2. The working directory and `/` always exist. Every other directory is an entry of its parent,
//!    like a file, and a crash may lose it.
//! 3. An entry whose directory does not exist is lost with that directory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::node::NodeId;

/// The file or directory that a name denotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    File(NodeId),
    Directory,
}

/// Files and directories by path.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    entries: BTreeMap<PathBuf, Entry>,
}

/// Names that one operation sets or removes atomically.
#[derive(Debug, Clone)]
pub(super) struct NameChange {
    pub(super) set: Vec<(PathBuf, Option<Entry>)>,
}

/// Returns the path without `.` and with each `..` resolved. The working directory is the empty path.
pub(super) fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir
                if matches!(normal.components().next_back(), Some(Component::Normal(_))) =>
            {
                normal.pop();
            }
            Component::ParentDir if normal.has_root() => {}
            _ => normal.push(component),
        }
    }
    normal
}

impl Names {
    pub(super) fn get(&self, path: &Path) -> Option<Entry> {
        self.entries.get(path).copied()
    }

    /// Returns the file of this name.
    pub(super) fn file(&self, path: &Path) -> io::Result<NodeId> {
        match self.get(path) {
            Some(Entry::File(id)) => Ok(id),
            Some(Entry::Directory) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Fails unless this is an existing directory.
    pub(super) fn check_directory(&self, path: &Path) -> io::Result<()> {
        // Invariant 2. A path above the working directory, such as `..`, exists as well.
        let is_named = path.components().any(|part| matches!(part, Component::Normal(_)));
        match self.get(path) {
            Some(Entry::Directory) => Ok(()),
            Some(Entry::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None if is_named => Err(io::ErrorKind::NotFound.into()),
            None => Ok(()),
        }
    }

    /// Fails unless the directory of this name exists.
    pub(super) fn check_parent(&self, path: &Path) -> io::Result<()> {
        path.parent().map_or(Ok(()), |parent| self.check_directory(parent))
    }

    /// Returns the names of the files in a directory, in order.
    pub(super) fn files_in<'a>(&'a self, dir: &'a Path) -> impl Iterator<Item = &'a Path> {
        let files = self.entries.iter().filter(|(_, entry)| matches!(entry, Entry::File(_)));
        files.map(|(path, _)| &**path).filter(move |path| path.parent() == Some(dir))
    }

    /// Returns the files of all names; a file with two names occurs twice.
    pub(super) fn files(&self) -> impl Iterator<Item = NodeId> {
        self.entries.values().filter_map(|entry| entry.file())
    }

    pub(super) fn apply(&mut self, change: &NameChange) {
        for (path, entry) in &change.set {
            match entry {
                Some(entry) => self.entries.insert(path.clone(), *entry),
                None => self.entries.remove(path),
            };
        }
    }

    /// Drops the entries whose directories do not exist (invariant 3).
    pub(super) fn drop_unreachable(&mut self) {
        // A directory sorts before everything in it.
        for (path, entry) in std::mem::take(&mut self.entries) {
            if self.check_parent(&path).is_ok() {
                self.entries.insert(path, entry);
            }
        }
    }
}

impl Entry {
    pub(super) fn file(self) -> Option<NodeId> {
        match self {
            Self::File(id) => Some(id),
            Self::Directory => None,
        }
    }
}

impl NameChange {
    /// Returns true if the change affects a name in this directory.
    pub(super) fn is_in(&self, dir: &Path) -> bool {
        self.set.iter().any(|(path, _)| path.parent() == Some(dir))
    }

    /// Returns the files that this change names.
    pub(super) fn files(&self) -> impl Iterator<Item = NodeId> {
        self.set.iter().filter_map(|(_, entry)| entry.and_then(Entry::file))
    }
}
