//! A disk whose directories are held open.
//!
//! A path below a held directory leads into that directory, whatever its name is now. Other paths
//! lead where they lead at the time of each call.
#![allow(clippy::disallowed_methods, reason = "tests move directories")]
#![allow(clippy::disallowed_types, reason = "a directory is held through an open file")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::disk::DiskStorage;
use super::place::{Directory, Place};
use super::{
    Access, Appender, HeldDir, Lock, LockProbe, RandomReader, Segment, Storage, disk_files,
    disk_lock, disk_segment, system,
};

/// A disk with the directories that are held open.
#[derive(Debug, Clone, Default)]
pub(super) struct HeldDirs {
    dirs: Vec<Arc<Directory>>,
}

impl HeldDirs {
    /// Returns the place of a path: in the held directory with the longest path, if it is below one.
    fn place<'a>(&'a self, path: &'a Path) -> Place<'a> {
        let within = |dir: &'a Arc<Directory>| Some((dir, path.strip_prefix(&dir.path).ok()?));
        let found = self.dirs.iter().filter_map(within);
        let found = found.min_by_key(|(_, rest)| rest.as_os_str().len());
        found.map_or(Place::by_path(path), |(dir, rest)| Place::within(dir, rest))
    }

    /// Holds another directory.
    pub(super) fn hold(&self, dir: &Path) -> io::Result<HeldDir> {
        let path = std::path::absolute(dir)?;
        let mut dirs = self.dirs.clone();
        if self.place(&path).as_held_dir().is_none() {
            let file = system::open_dir(self.place(&path))?;
            dirs.push(Arc::new(Directory::new(path.clone(), file)));
        }
        Ok(HeldDir { path, storage: Arc::new(Self { dirs }) })
    }
}

impl Storage for HeldDirs {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        system::create_dir_all(self.place(dir))
    }

    fn hold_dir(&self, dir: &Path) -> io::Result<Option<HeldDir>> {
        self.hold(dir).map(Some)
    }

    fn descriptor(&self, dir: &Path) -> Option<BorrowedFd<'_>> {
        let held = self.dirs.iter().find(|held| held.path == dir);
        held.map(|held| held.file.as_fd())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        system::list(self.place(dir))
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        system::len(self.place(path))
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Appender>> {
        disk_files::create(self.place(path), access)
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        disk_files::open(self.place(path), access)
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        disk_segment::create(self.place(path), len)
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        disk_segment::open(self.place(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        system::rename(self.place(from), self.place(to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        system::hard_link(self.place(from), self.place(to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        system::remove(self.place(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let place = self.place(dir);
        let refusal = system::sync_dir(place)?;
        if let (Some(error), Some(dir)) = (refusal, place.as_held_dir()) {
            dir.note_refusal(&error);
        }
        Ok(())
    }

    fn take_unsynced_dirs(&self) -> Vec<(PathBuf, String)> {
        let refused =
            self.dirs.iter().filter_map(|dir| Some((dir.path.clone(), dir.take_refusal()?)));
        refused.collect()
    }

    fn free_bytes(&self, dir: &Path) -> Option<u64> {
        system::free_bytes(self.place(dir))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(disk_lock::lock(self.place(path))?))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(disk_lock::lock_shared(self.place(path))?))
    }

    fn probe_lock(&self, path: &Path) -> io::Result<Box<dyn LockProbe>> {
        Ok(Box::new(disk_lock::DiskProbe::open(self.place(path))?))
    }

    fn boot_id(&self) -> Option<u128> {
        DiskStorage.boot_id()
    }

    fn entropy(&self) -> u64 {
        DiskStorage.entropy()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn append(storage: &dyn Storage, path: &Path, text: &str) {
        storage.create(path, Access::Buffered).unwrap().append(text.as_bytes()).unwrap();
    }

    /// The directory of an open database was renamed, and another database was created in its place.
    /// The open database then deleted and overwrote files of the other one.
    #[test]
    fn every_call_stays_in_the_directory_that_was_held() {
        let home = tempfile::tempdir().unwrap();
        let (old, new) = (home.path().join("db"), home.path().join("moved"));
        fs::create_dir(&old).unwrap();
        let held = DiskStorage.hold_dir(&old).unwrap().unwrap();
        let storage = &*held.storage;
        append(storage, &old.join("a"), "a");
        let lock = storage.lock(&old.join("LOCK")).unwrap();
        fs::rename(&old, &new).unwrap();
        fs::create_dir(&old).unwrap();
        fs::write(old.join("a"), "other").unwrap();
        fs::write(old.join("LOCK"), "other").unwrap();

        assert!(lock.is_held().unwrap());
        append(storage, &old.join("b"), "b");
        assert_eq!(storage.list(&old).unwrap(), ["LOCK", "a", "b"]);
        assert_eq!(storage.len(&old.join("a")).unwrap(), 1);
        storage.hard_link(&old.join("a"), &old.join("c")).unwrap();
        storage.rename(&old.join("b"), &old.join("a")).unwrap();
        let mut buffer = [0];
        storage.open(&old.join("a"), Access::Direct).unwrap().read_at(0, &mut buffer).unwrap();
        assert_eq!(&buffer, b"b");
        drop(storage.create_segment(&old.join("d"), 100).unwrap());
        storage.open_segment(&old.join("d")).unwrap().write(0, b"d").unwrap();
        storage.remove(&old.join("c")).unwrap();
        storage.probe_lock(&old.join("READERS")).unwrap();
        storage.lock_shared(&old.join("READERS")).unwrap();
        storage.create_dir_all(&old.join("x/y")).unwrap();
        storage.sync_dir(&old).unwrap();
        storage.sync_dir(&old.join("x")).unwrap();
        #[cfg(target_os = "linux")]
        assert!(storage.free_bytes(&old).is_some());

        let mut names: Vec<_> =
            fs::read_dir(&new).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["LOCK", "READERS", "a", "d", "x"]);
        assert_eq!(fs::read(new.join("d")).unwrap()[0], b'd');
        let others: Vec<_> = fs::read_dir(&old).unwrap().collect();
        assert_eq!((others.len(), fs::read(old.join("a")).unwrap()), (2, b"other".to_vec()));
    }

    #[test]
    fn a_directory_below_a_held_one_is_reached_through_it() {
        let home = tempfile::tempdir().unwrap();
        let (old, new) = (home.path().join("db"), home.path().join("moved"));
        fs::create_dir_all(old.join("wal")).unwrap();
        fs::create_dir(home.path().join("beside")).unwrap();
        let held = DiskStorage.hold_dir(&old).unwrap().unwrap();
        fs::rename(&old, &new).unwrap();
        let wal = held.storage.hold_dir(&old.join("wal")).unwrap().unwrap();
        append(&*wal.storage, &old.join("wal/1"), "1");
        assert!(new.join("wal/1").exists());
        let beside = wal.storage.hold_dir(&old.join("../beside")).unwrap().unwrap();
        fs::rename(home.path().join("beside"), home.path().join("away")).unwrap();
        beside.storage.rename(&old.join("wal/1"), &old.join("../beside/2")).unwrap();
        assert!(home.path().join("away/2").exists());
        // A directory that is held already is not opened again.
        fs::remove_dir(new.join("wal")).unwrap();
        assert!(beside.storage.hold_dir(&old.join("wal")).is_ok());
        assert!(DiskStorage.hold_dir(&old.join("wal")).is_err());
    }

    #[test]
    fn a_refusal_to_sync_a_directory_is_reported_once() {
        let home = tempfile::tempdir().unwrap();
        let held = HeldDirs::default().hold(home.path()).unwrap();
        let dirs = HeldDirs {
            dirs: vec![Arc::new(Directory::new(
                home.path().to_owned(),
                fs::File::open(home.path()).unwrap(),
            ))],
        };
        held.storage.sync_dir(home.path()).unwrap();
        assert!(held.storage.take_unsynced_dirs().is_empty());
        for _ in 0..2 {
            dirs.dirs[0].note_refusal(&io::ErrorKind::InvalidInput.into());
        }
        let expected = (home.path().to_owned(), "invalid input parameter".to_owned());
        assert_eq!(dirs.take_unsynced_dirs(), [expected]);
        assert!(dirs.take_unsynced_dirs().is_empty());
    }

    #[test]
    fn a_lock_in_a_removed_directory_says_so() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("db");
        fs::create_dir(&dir).unwrap();
        let held = DiskStorage.hold_dir(&dir).unwrap().unwrap();
        let lock = held.storage.lock(&dir.join("LOCK")).unwrap();
        fs::remove_dir_all(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        let error = lock.is_held().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        let error = held.storage.create(&dir.join("a"), Access::Buffered).map(drop).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
