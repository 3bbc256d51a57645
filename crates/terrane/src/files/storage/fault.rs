//! A storage that injects faults.
//!
//! A [`Fault`] fails the nth operation that it matches, once or from then on. A test that increases n
//! until the fault no longer fires has injected a fault into every operation of its script.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::slow_device::SlowDevice;
use super::{
    Access, Appender, HeldDir, Lock, LockProbe, RandomReader, RecordWriter, Segment, Storage,
    Syncer,
};

/// An operation on a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Creating a file or a segment.
    Create,
    /// Opening or mapping a file.
    Open,
    /// Reading from an open file.
    Read,
    /// Appending, or writing through to a segment. Half of the bytes are written before the failure,
    /// unless [`FaultStorage::tear_writes`] sets another percentage.
    Append,
    /// Writing to a segment, except through a [`RecordWriter`], whose writes cannot fail. Nothing is
    /// written before the failure, unless [`FaultStorage::tear_writes`] sets another percentage.
    Write,
    /// Making contents durable.
    Sync,
    /// Making names durable.
    SyncDir,
    /// Changing a name: rename, link or remove.
    Name,
    /// Listing names, or reading a length.
    List,
}

/// The operation that fails, and its error.
#[derive(Debug, Clone)]
pub struct Fault {
    /// The kind of operations that fail; `None` for all kinds.
    pub operation: Option<Operation>,
    /// A string that the path must contain for the operation to fail; empty for all paths.
    pub path_contains: String,
    /// The number of matching operations that succeed before the first one fails.
    pub after: u64,
    /// True if all later matching operations fail as well.
    pub is_permanent: bool,
    /// The error.
    pub error: io::ErrorKind,
}

/// Wraps a storage and injects at most one [`Fault`] at a time.
///
/// ```
/// # fn main() -> terrane::Result<()> {
/// use std::sync::Arc;
/// use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation};
/// let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
/// let db = terrane::Options::new().storage(Arc::new(storage.clone())).open("db")?;
/// storage.set(Some(Fault {
///     operation: Some(Operation::Sync),
///     path_contains: ".log".into(),
///     after: 0,
///     is_permanent: true,
///     error: std::io::ErrorKind::Other,
/// }));
/// db.put("key", "value")?;
/// assert_eq!(db.sync().unwrap_err().kind(), terrane::ErrorKind::Poisoned);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct FaultStorage {
    inner: Arc<dyn Storage>,
    plan: Arc<Mutex<FaultPlan>>,
    hides_record_writers: Arc<AtomicBool>,
    device: Arc<SlowDevice>,
}

#[derive(Debug, Default)]
struct FaultPlan {
    fault: Option<Fault>,
    seen: u64,
    fired: u64,
    /// The percentage of its bytes that a failing write writes, if set.
    written_percent: Option<u8>,
}

impl FaultStorage {
    /// Wraps `inner` without a fault.
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self {
            inner,
            plan: Arc::default(),
            hides_record_writers: Arc::default(),
            device: Arc::default(),
        }
    }

    /// Delays each file read by `delay` from now on, like a device. Overlapping reads wait
    /// concurrently.
    pub fn delay_reads(&self, delay: Duration) {
        self.device.set_read_delay(delay);
    }

    /// Delays each sync of a log file by `delay` from now on.
    pub fn delay_log_syncs(&self, delay: Duration) {
        self.device.set_sync_delay(delay);
    }

    /// Returns the largest number of reads that waited concurrently since the last call.
    pub fn take_most_reads_at_once(&self) -> usize {
        self.device.take_most_reads_at_once()
    }

    /// Opens segments without [`RecordWriter`]s from now on, so that every write to the log can fail,
    /// as on a file system that copies on write.
    pub fn hide_record_writers(&self) {
        self.hides_record_writers.store(true, Ordering::Relaxed);
    }

    /// Sets or removes the fault and resets the count of matching operations.
    pub fn set(&self, fault: Option<Fault>) {
        let plan = &mut *self.plan();
        *plan = FaultPlan { fault, seen: 0, fired: 0, written_percent: plan.written_percent };
    }

    /// Makes failing writes write the first `percent` of their bytes, 0 to 100, before they fail.
    pub fn tear_writes(&self, percent: u8) {
        self.plan().written_percent = Some(percent.min(100));
    }

    /// Returns the part of `bytes` that a failing write writes, which is `usual` percent unless
    /// another percentage was set.
    fn torn<'a>(&self, bytes: &'a [u8], usual: u8) -> &'a [u8] {
        let percent = usize::from(self.plan().written_percent.unwrap_or(usual));
        &bytes[..bytes.len() * percent / 100]
    }

    /// Returns how often the fault fired since it was set.
    pub fn fired(&self) -> u64 {
        self.plan().fired
    }

    fn plan(&self) -> std::sync::MutexGuard<'_, FaultPlan> {
        self.plan.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, operation: Operation, path: &Path) -> io::Result<()> {
        let plan = &mut *self.plan();
        let Some(fault) = &plan.fault else { return Ok(()) };
        let applies = fault.operation.is_none_or(|wanted| wanted == operation)
            && path.to_string_lossy().contains(&fault.path_contains);
        if !applies {
            return Ok(());
        }
        plan.seen += 1;
        let number = plan.seen - 1;
        if number == fault.after || (fault.is_permanent && number > fault.after) {
            plan.fired += 1;
            return Err(fault.error.into());
        }
        Ok(())
    }
}

impl Storage for FaultStorage {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.check(Operation::Create, dir)?;
        self.inner.create_dir_all(dir)
    }

    fn hold_dir(&self, dir: &Path) -> io::Result<Option<HeldDir>> {
        let held = self.inner.hold_dir(dir)?;
        Ok(held.map(|HeldDir { path, storage }| {
            let storage = Arc::new(Self { inner: storage, ..self.clone() });
            HeldDir { path, storage }
        }))
    }

    #[cfg(unix)]
    fn descriptor(&self, dir: &Path) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.inner.descriptor(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.check(Operation::List, dir)?;
        self.inner.list(dir)
    }

    fn len(&self, path: &Path) -> io::Result<u64> {
        self.check(Operation::List, path)?;
        self.inner.len(path)
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Appender>> {
        self.check(Operation::Create, path)?;
        Ok(Box::new(FaultyFile::new(self, path, self.inner.create(path, access)?)))
    }

    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn RandomReader>> {
        self.check(Operation::Open, path)?;
        Ok(Arc::new(FaultyFile::new(self, path, self.inner.open(path, access)?)))
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        self.check(Operation::Create, path)?;
        Ok(Box::new(FaultyFile::new(self, path, self.inner.create_segment(path, len)?)))
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        self.check(Operation::Open, path)?;
        Ok(Box::new(FaultyFile::new(self, path, self.inner.open_segment(path)?)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Operation::Name, to)?;
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.check(Operation::Name, to)?;
        self.inner.hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.check(Operation::Name, path)?;
        self.inner.remove(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.check(Operation::SyncDir, dir)?;
        self.inner.sync_dir(dir)
    }

    fn take_unsynced_dirs(&self) -> Vec<(PathBuf, String)> {
        self.inner.take_unsynced_dirs()
    }

    fn free_bytes(&self, dir: &Path) -> Option<u64> {
        self.inner.free_bytes(dir)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.inner.lock(path)
    }

    fn lock_shared(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        self.inner.lock_shared(path)
    }

    fn probe_lock(&self, path: &Path) -> io::Result<Box<dyn LockProbe>> {
        self.inner.probe_lock(path)
    }

    fn boot_id(&self) -> Option<u128> {
        self.inner.boot_id()
    }

    fn entropy(&self) -> u64 {
        self.inner.entropy()
    }
}

/// An open file whose operations may fail.
struct FaultyFile<F> {
    storage: FaultStorage,
    path: PathBuf,
    file: F,
}

impl<F> FaultyFile<F> {
    fn new(storage: &FaultStorage, path: &Path, file: F) -> Self {
        Self { storage: storage.clone(), path: path.to_owned(), file }
    }
}

impl<F> fmt::Debug for FaultyFile<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyFile({})", self.path.display())
    }
}

impl Appender for FaultyFile<Box<dyn Appender>> {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.storage.check(Operation::Append, &self.path) {
            self.file.append(self.storage.torn(bytes, 50))?;
            return Err(error);
        }
        self.file.append(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.storage.check(Operation::Append, &self.path)?;
        self.file.flush()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.storage.check(Operation::Sync, &self.path)?;
        self.file.sync()
    }

    fn has_name(&self) -> io::Result<bool> {
        self.file.has_name()
    }

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }
}

impl RandomReader for FaultyFile<Arc<dyn RandomReader>> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.storage.check(Operation::Read, &self.path)?;
        self.storage.device.read();
        self.file.read_at(offset, buffer)
    }

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }

    fn expect_random_reads(&self) {
        self.file.expect_random_reads();
    }

    fn will_read(&self, bytes: Range<u64>) {
        self.file.will_read(bytes);
    }
}

impl Segment for FaultyFile<Box<dyn Segment>> {
    fn len(&self) -> u64 {
        self.file.len()
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.storage.check(Operation::Write, &self.path) {
            self.file.write(offset, self.storage.torn(bytes, 0))?;
            return Err(error);
        }
        self.file.write(offset, bytes)
    }

    fn write_through(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.storage.check(Operation::Append, &self.path) {
            self.file.write_through(offset, self.storage.torn(bytes, 50))?;
            return Err(error);
        }
        self.file.write_through(offset, bytes)
    }

    fn syncer(&self) -> Arc<dyn Syncer> {
        Arc::new(FaultyFile::new(&self.storage, &self.path, self.file.syncer()))
    }

    fn map_refusal(&self) -> Option<String> {
        self.file.map_refusal()
    }

    fn record_writer(&self) -> Option<Arc<dyn RecordWriter>> {
        // Relaxed: no other memory access depends on the setting.
        let is_hidden = self.storage.hides_record_writers.load(Ordering::Relaxed);
        if is_hidden { None } else { self.file.record_writer() }
    }
}

impl Syncer for FaultyFile<Arc<dyn Syncer>> {
    fn sync(&self) -> io::Result<()> {
        self.storage.check(Operation::Sync, &self.path)?;
        self.storage.device.sync();
        self.file.sync()
    }

    fn sync_start(&self, len: u64) -> io::Result<()> {
        self.storage.check(Operation::Sync, &self.path)?;
        self.storage.device.sync();
        self.file.sync_start(len)
    }
}
