//! Files in memory with crash simulation.
//!
//! Every file keeps its last synced contents and the writes since; every directory keeps its last
//! synced names and the changes since. A [`CrashPoint`] captures this state, and any number of crash
//! images can be made from it: after the death of the process (everything survives), or after a
//! power failure (the synced state survives, and any subset of the unsynced sectors and names).
//!
//! A directory is a name in its parent, and everything in a directory is lost with its name. The
//! working directory, which is the empty path or `.`, and `/` always exist.
//!
//! A file takes memory while it has a name, would have a name after a crash, or is open. Crash images
//! share its synced contents.
//!
//! If a capacity is set, writes that exceed it fail as on a full disk. Files with direct access
//! refuse unaligned requests, like a device.

mod crash;
mod files;
mod names;
mod node;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::direct::{DirectAppender, DirectReader};
use super::{Access, Appender, Lock, LockProbe, RandomReader, Segment, Storage};
pub use crash::{Crash, CrashPoint, Survival};
use files::{HeldLock, MemoryAppender, MemoryProbe, MemoryReader, MemorySegment, SharedLock};
use names::{Entry, NameChange, Names, normal};
use node::{Node, NodeId, Open};

/// Files in memory. Clones share the same files.
///
/// A new storage has no directories; [`Storage::create_dir_all`] creates them.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use std::sync::Arc;
/// use terrane::storage::{Crash, MemoryStorage, Survival};
/// let storage = MemoryStorage::new(1);
/// let open = |storage| terrane::Options::new().storage(Arc::new(storage)).open("db");
/// let db = open(storage.clone())?;
/// db.put("synced", "")?;
/// db.sync()?;
/// db.put("not synced", "")?;
/// // Power fails, and no unsynced sector survives.
/// let image = storage.crash_point().image(Crash::Power(Survival { percent: 0, seed: 1 }));
/// let db = open(image)?;
/// assert!(db.contains("synced")? && !db.contains("not synced")?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryStorage {
    state: Arc<Mutex<State>>,
}

/// All files and names.
#[derive(Debug, Default)]
struct State {
    nodes: BTreeMap<NodeId, Node>,
    next_node: u64,
    /// The names that the running process sees.
    names: Names,
    /// The durable names.
    durable_names: Names,
    /// Unsynced changes of names, oldest first.
    pending_names: Vec<NameChange>,
    locks: BTreeSet<PathBuf>,
    /// The number of shared locks on each path.
    shared_locks: BTreeMap<PathBuf, u64>,
    capacity_bytes: Option<u64>,
    refuses_direct: bool,
    boot: u128,
    entropy: u64,
    /// The crash points recorded so far; `None` while none are recorded.
    crash_points: Option<Vec<CrashPoint>>,
    mark: u64,
}

impl MemoryStorage {
    /// Creates a storage without files, which derives its random numbers from `seed`.
    pub fn new(seed: u64) -> Self {
        let state = State { boot: u128::from(seed) | 1 << 64, entropy: seed, ..State::default() };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// Sets the capacity: a write fails if the total size of all files would exceed it. `None`
    /// removes the capacity.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock_state().capacity_bytes = bytes;
    }

    /// Makes the storage behave like a file system without direct I/O from now on.
    pub fn refuse_direct(&self) {
        self.lock_state().refuses_direct = true;
    }

    /// Returns the size of all files together, in bytes.
    pub fn used_bytes(&self) -> u64 {
        self.lock_state().used_bytes()
    }

    /// Starts to record a crash point before each sync, rename, creation and removal, including those
    /// of directories.
    pub fn track_crash_points(&self) {
        self.lock_state().crash_points = Some(Vec::new());
    }

    /// Stops recording crash points and returns them.
    pub fn take_crash_points(&self) -> Vec<CrashPoint> {
        self.lock_state().crash_points.take().unwrap_or_default()
    }

    /// Sets the mark that crash points get from now on. Tests use it to record the progress of their
    /// scripts.
    pub fn mark(&self, mark: u64) {
        self.lock_state().mark = mark;
    }

    /// Returns a crash point of the current state.
    pub fn crash_point(&self) -> CrashPoint {
        self.lock_state().crash_point("now")
    }

    /// Returns the contents of a file.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.lock_state();
        Ok(state.node(path)?.data().to_vec())
    }

    /// Replaces the contents of a file durably and without recording a write, like a failing disk.
    ///
    /// # Errors
    /// The file does not exist.
    pub fn overwrite(&self, path: &Path, contents: &[u8]) -> io::Result<()> {
        let mut state = self.lock_state();
        let id = state.id(path)?;
        state.nodes.get_mut(&id).ok_or(io::ErrorKind::NotFound)?.replace(contents.to_vec());
        Ok(())
    }

    /// Returns an independent copy of all files.
    #[must_use]
    pub fn deep_copy(&self) -> Self {
        self.crash_point().image(Crash::Process)
    }

    fn lock_state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn id(&self, path: &Path) -> io::Result<NodeId> {
        self.names.file(&normal(path))
    }

    fn node(&self, path: &Path) -> io::Result<&Node> {
        let id = self.id(path)?;
        self.nodes.get(&id).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn used_bytes(&self) -> u64 {
        let live: BTreeSet<NodeId> = self.names.files().collect();
        live.iter().filter_map(|id| self.nodes.get(id)).map(|node| node.data().len() as u64).sum()
    }

    /// Fails if `bytes` more bytes would exceed the capacity.
    fn take_room(&self, bytes: u64) -> io::Result<()> {
        match self.capacity_bytes {
            Some(capacity) if self.used_bytes() + bytes > capacity => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }

    fn note_crash_point(&mut self, operation: &str) {
        if self.crash_points.is_some() {
            let point = self.crash_point(operation);
            self.crash_points.get_or_insert_default().push(point);
        }
    }

    fn change_names(&mut self, set: Vec<(PathBuf, Option<Entry>)>) {
        let change = NameChange { set };
        self.names.apply(&change);
        self.pending_names.push(change);
    }

    fn create_dir_all(&mut self, dir: &Path) -> io::Result<()> {
        let ancestors: Vec<&Path> = dir.ancestors().collect();
        for dir in ancestors.into_iter().rev() {
            match self.names.check_directory(dir) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.note_crash_point(&format!("create directory {}", dir.display()));
                    self.change_names(vec![(dir.to_owned(), Some(Entry::Directory))]);
                }
                other => other?,
            }
        }
        Ok(())
    }

    /// Creates a file under a new name.
    fn create(&mut self, path: &Path, node: Node) -> io::Result<(NodeId, Open)> {
        let path = self.new_name(path)?;
        self.note_crash_point(&format!("create {}", path.display()));
        let id = NodeId(self.next_node);
        self.next_node += 1;
        let open = node.open();
        self.nodes.insert(id, node);
        self.change_names(vec![(path, Some(Entry::File(id)))]);
        Ok((id, open))
    }

    /// Fails if the name exists, or its directory does not.
    fn new_name(&self, path: &Path) -> io::Result<PathBuf> {
        let path = normal(path);
        self.names.check_parent(&path)?;
        match self.names.get(&path) {
            Some(_) => Err(io::ErrorKind::AlreadyExists.into()),
            None => Ok(path),
        }
    }

    fn sync_dir(&mut self, dir: &Path) {
        let pending = std::mem::take(&mut self.pending_names);
        let (now, later): (Vec<_>, Vec<_>) =
            pending.into_iter().partition(|change| change.is_in(dir));
        self.pending_names = later;
        for change in now {
            self.durable_names.apply(&change);
        }
        self.sweep();
    }

    /// Drops files that have no name, would have no name after a crash, and are not open.
    fn sweep(&mut self) {
        let changed = self.pending_names.iter().flat_map(NameChange::files);
        let named = self.names.files().chain(self.durable_names.files()).chain(changed);
        let named: BTreeSet<NodeId> = named.collect();
        self.nodes.retain(|id, node| named.contains(id) || node.is_open());
    }

    /// The file, holder count and length of an opened file.
    fn open(&self, path: &Path) -> io::Result<((NodeId, Open), u64)> {
        let (id, node) = (self.id(path)?, self.node(path)?);
        Ok(((id, node.open()), node.data().len() as u64))
    }
}

impl Storage for MemoryStorage {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.lock_state().create_dir_all(&normal(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let (state, dir) = (self.lock_state(), normal(dir));
        state.names.check_directory(&dir)?;
        let inside = state.names.files_in(&dir);
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        Ok(self.lock_state().node(path)?.data().len() as u64)
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Appender>> {
        let file = self.lock_state().create(path, Node::default())?;
        let file = MemoryAppender::new(self.clone(), file, path);
        if access == Access::Direct && !self.lock_state().refuses_direct {
            return Ok(Box::new(DirectAppender::new(file)));
        }
        Ok(Box::new(file))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        let state = self.lock_state();
        let (file, len) = state.open(path)?;
        if access == Access::Direct && !state.refuses_direct {
            let file = MemoryAppender::new(self.clone(), file, path);
            return Ok(Arc::new(DirectReader::new(file, len)));
        }
        Ok(Arc::new(MemoryReader::new(self.clone(), file)))
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        let mut state = self.lock_state();
        state.take_room(len)?;
        let zeros = vec![0; usize::try_from(len).map_err(|_| io::ErrorKind::StorageFull)?];
        let file = state.create(path, Node::durable(Arc::new(zeros)))?;
        Ok(Box::new(MemorySegment::new(self.clone(), file, len, path)))
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        let state = self.lock_state();
        let (file, len) = state.open(path)?;
        Ok(Box::new(MemorySegment::new(self.clone(), file, len, path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        let (id, from, to) = (state.id(from)?, normal(from), normal(to));
        state.names.check_parent(&to)?;
        if state.names.get(&to) == Some(Entry::Directory) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        state.note_crash_point(&format!("rename to {}", to.display()));
        state.change_names(vec![(to, Some(Entry::File(id))), (from, None)]);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        let (id, to) = (state.id(from)?, state.new_name(to)?);
        state.note_crash_point(&format!("link {}", to.display()));
        state.change_names(vec![(to, Some(Entry::File(id)))]);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut state = self.lock_state();
        state.id(path)?;
        let path = normal(path);
        state.note_crash_point(&format!("remove {}", path.display()));
        state.change_names(vec![(path, None)]);
        Ok(())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let (mut state, dir) = (self.lock_state(), normal(dir));
        state.names.check_directory(&dir)?;
        state.note_crash_point(&format!("sync directory {}", dir.display()));
        state.sync_dir(&dir);
        Ok(())
    }

    /// The rest of the capacity, in every directory.
    fn free_bytes(&self, _dir: &Path) -> Option<u64> {
        let state = self.lock_state();
        Some(state.capacity_bytes?.saturating_sub(state.used_bytes()))
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        let (mut state, path) = (self.lock_state(), normal(path));
        if state.locks.contains(&path) {
            return Err(io::Error::new(io::ErrorKind::WouldBlock, "this process"));
        }
        match state.create(&path, Node::default()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        state.locks.insert(path.clone());
        Ok(Box::new(HeldLock::new(self.clone(), path)))
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        Ok(Box::new(SharedLock::new(self.clone(), &normal(path))))
    }

    fn probe_lock(&self, path: &Path) -> io::Result<Box<dyn LockProbe>> {
        Ok(Box::new(MemoryProbe::new(self.clone(), &normal(path))))
    }

    fn boot_id(&self) -> Option<u128> {
        Some(self.lock_state().boot)
    }

    fn entropy(&self) -> u64 {
        let mut state = self.lock_state();
        state.entropy =
            state.entropy.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        state.entropy ^ (state.entropy >> 29)
    }
}
