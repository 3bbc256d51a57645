//! A storage and a clock as an application would implement them: with public items only, and no
//! more than the traits require.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use terrane::Clock;
use terrane::storage::{Access, Appender, Lock, RandomReader, Segment, Storage, Syncer};
use terrane_testkit::Rng;

/// Files in a map, each behind a lock of its own.
#[derive(Debug, Clone, Default)]
pub struct MapStorage(Arc<State>);

#[derive(Debug, Default)]
struct State {
    files: Mutex<BTreeMap<PathBuf, File>>,
    dirs: Mutex<BTreeSet<PathBuf>>,
    locks: Mutex<BTreeSet<PathBuf>>,
    entropy: AtomicU64,
}

#[derive(Debug, Clone, Default)]
struct File(Arc<RwLock<Vec<u8>>>);

#[derive(Debug)]
struct HeldLock(MapStorage, PathBuf);

impl MapStorage {
    fn file(&self, path: &Path) -> io::Result<File> {
        self.0.files.lock().unwrap().get(path).cloned().ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn insert(&self, path: &Path, file: &File) -> io::Result<()> {
        let mut files = self.0.files.lock().unwrap();
        if files.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        files.insert(path.to_owned(), file.clone());
        Ok(())
    }
}

impl Storage for MapStorage {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.dirs.lock().unwrap().extend(dir.ancestors().map(Path::to_owned));
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        if !self.0.dirs.lock().unwrap().contains(dir) {
            return Err(ErrorKind::NotFound.into());
        }
        let files = self.0.files.lock().unwrap();
        let inside = files.keys().filter(|path| path.parent() == Some(dir));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(self.file(path)?.0.read().unwrap().len() as u64)
    }

    fn create(&self, path: &Path, _access: Access) -> io::Result<Box<dyn Appender>> {
        let file = File::default();
        self.insert(path, &file)?;
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path, _access: Access) -> io::Result<Arc<dyn RandomReader>> {
        Ok(Arc::new(self.file(path)?))
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        let file = File(Arc::new(RwLock::new(vec![0; len as usize])));
        self.insert(path, &file)?;
        Ok(Box::new(file))
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        Ok(Box::new(self.file(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.0.files.lock().unwrap();
        let file = files.remove(from).ok_or(ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let file = self.file(from)?;
        self.insert(to, &file)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let removed = self.0.files.lock().unwrap().remove(path);
        removed.map(drop).ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, _dir: &Path) -> io::Result<()> {
        Ok(())
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        if !self.0.locks.lock().unwrap().insert(path.to_owned()) {
            return Err(io::Error::new(ErrorKind::WouldBlock, "this process"));
        }
        let lock = HeldLock(self.clone(), path.to_owned());
        match self.insert(path, &File::default()) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
            _ => Ok(Box::new(lock)),
        }
    }

    fn boot_id(&self) -> Option<u128> {
        None
    }

    fn entropy(&self) -> u64 {
        let number = self.0.entropy.fetch_add(1, Ordering::Relaxed);
        Rng::new(number).bits()
    }
}

impl Lock for HeldLock {}

impl Drop for HeldLock {
    fn drop(&mut self) {
        self.0.0.locks.lock().unwrap().remove(&self.1);
    }
}

impl Appender for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write().unwrap().extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RandomReader for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let bytes = self.0.read().unwrap();
        let start = offset as usize;
        let found = bytes.get(start..start + buffer.len()).ok_or(ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(found);
        Ok(())
    }
}

impl Segment for File {
    fn len(&self) -> u64 {
        self.0.read().unwrap().len() as u64
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.0.write().unwrap();
        let start = offset as usize;
        let range = all.get_mut(start..start + bytes.len()).ok_or(ErrorKind::InvalidInput)?;
        range.copy_from_slice(bytes);
        Ok(())
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(self.clone())
    }
}

impl Syncer for File {
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A clock that is set, by hand or by the operating system, forwards and backwards.
#[derive(Debug)]
pub struct JumpingClock(AtomicU64);

impl JumpingClock {
    pub fn new(micros: u64) -> Self {
        Self(AtomicU64::new(micros))
    }

    /// Advances a little or by days, goes back by days, or jumps to either end of the range.
    pub fn jump(&self, rng: &mut Rng) {
        let days = |count: u64| Duration::from_secs(count * 24 * 60 * 60).as_micros() as u64;
        let now = self.0.load(Ordering::Relaxed);
        let then = match rng.below(16) {
            0 => 0,
            1 => i64::MAX as u64 / 2,
            2 => i64::MAX as u64,
            3 => u64::MAX,
            4 => days(20_000),
            5 => now.saturating_add(days(10)),
            6 => now.saturating_sub(days(10)),
            _ => now.saturating_add(rng.below(3_000_000)),
        };
        self.0.store(then, Ordering::Relaxed);
    }
}

impl Clock for JumpingClock {
    fn now_micros(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
