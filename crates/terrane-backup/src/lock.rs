//! Locks of a repository: objects in `locks/`, because an object store offers nothing else.
//!
//! A backup holds a shared lock, a prune an exclusive one. A process first stores its lock, and then lists
//! the other locks, so of two processes that begin concurrently at least one sees the other, and gives up.
//! While it works, a process renews its lock every minute.
//!
//! 1. A lock is stale if it is older than [`STALE`], or if its process ran on this machine since
//!    it last booted, in the same PID namespace, and no longer exists.
//! 2. A process that could not renew its lock for half of that time stops, because others will consider
//!    the lock stale. From then on it does not renew the lock either, for example when its machine wakes
//!    from sleep. The clocks of the machines may therefore differ by a quarter of an hour.
//! 3. A lock remains forever if the clock of its machine is ahead, or if it cannot be read, because a newer
//!    version may have written it. [`unlock`] removes it; its process notices that when it renews the lock.
//! 4. The next process removes stale locks before it does anything else. A backup that finds its lock
//!    removed stops before it writes its manifest.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::catalog::{check, delete, list_folder, location, read, write};
use crate::error::{Error, Result};
use crate::moment::{now_micros, utc};
use crate::repository::Repository;

/// The folder of the locks.
const LOCKS: &str = "locks/";

/// The age from which a lock is ignored.
pub(crate) const STALE: Duration = Duration::from_secs(30 * 60);

/// How often a lock is renewed.
const REFRESH: Duration = Duration::from_secs(60);

/// How many times a process tries if another one begins concurrently.
const TRIES: u32 = 4;

/// The locks that a lock excludes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LockKind {
    /// Exclusive locks.
    Shared,
    /// All locks.
    Exclusive,
}

/// The contents of a lock.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Lock {
    kind: LockKind,
    operation: String,
    process: u32,
    host: String,
    /// Identifies the boot of the machine and the PID namespace of the process; empty if unknown.
    boot: String,
    refreshed: String,
    refreshed_micros: u64,
}

impl Lock {
    fn new(kind: LockKind, operation: &str) -> Self {
        let now = now_micros();
        Self {
            kind,
            operation: operation.to_owned(),
            process: std::process::id(),
            host: host(),
            boot: boot(),
            refreshed: utc(now),
            refreshed_micros: now,
        }
    }

    fn is_stale(&self) -> bool {
        let age = now_micros().saturating_sub(self.refreshed_micros);
        Duration::from_micros(age) >= STALE || self.is_of_dead_process()
    }

    fn is_of_dead_process(&self) -> bool {
        let here = boot();
        let process = std::path::Path::new("/proc").join(self.process.to_string());
        !here.is_empty() && self.boot == here && sees_all_processes() && !process.exists()
    }

    fn describe(&self) -> String {
        let Self { operation, process, host, refreshed, .. } = self;
        format!("'{operation}' of process {process} on {host} (active at {refreshed})")
    }
}

fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname");
    name.map_or_else(|_| "another machine".to_owned(), |name| name.trim().to_owned())
}

/// Identifies the boot of the machine and the PID namespace, of which each container has its own;
/// empty on systems without them.
fn boot() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id");
    let space = std::fs::read_link("/proc/self/ns/pid");
    match (boot, space) {
        (Ok(boot), Ok(space)) => format!("{} {}", boot.trim(), space.display()),
        _ => String::new(),
    }
}

/// Returns true if `/proc` lists every process under the PID that the process itself sees.
/// Otherwise `/proc` may hide processes of other users, or belong to another PID namespace.
fn sees_all_processes() -> bool {
    let own = std::fs::read_link("/proc/self").ok();
    let own = own.as_deref().and_then(|path| path.to_str());
    own == Some(&std::process::id().to_string()) && std::path::Path::new("/proc/1").exists()
}

/// A lock that this process holds.
pub(crate) struct Held<'a> {
    repository: &'a dyn Repository,
    object: String,
    /// When the lock was last stored: the clock of the process, which may stop while the machine sleeps,
    /// and the time of day, which may be set back. `None` if another process has removed the lock.
    stored: Mutex<Option<(Instant, u64)>>,
}

impl Held<'_> {
    /// Checks that no other process can consider the lock stale.
    ///
    /// # Errors
    /// Another process can.
    pub(crate) fn check(&self) -> Result<()> {
        let stored = *self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((stored, micros)) = stored else { return Err(self.lost()) };
        let by_day = Duration::from_micros(now_micros().saturating_sub(micros));
        if stored.elapsed().max(by_day) < STALE / 2 {
            return Ok(());
        }
        Err(self.lost())
    }

    /// Checks that no other process has removed the lock either.
    ///
    /// # Errors
    /// Another process has.
    pub(crate) fn check_object(&self) -> Result<()> {
        self.check()?;
        match read(self.repository, &self.object)? {
            Some(_) => Ok(()),
            None => Err(self.lost()),
        }
    }

    /// Renews the lock. Returns false once another process has removed the lock, or may have,
    /// because it may then have removed objects as well.
    fn store_again(&self, kind: LockKind, operation: &str) -> bool {
        let now = (Instant::now(), now_micros());
        let Ok(bytes) = encode(kind, operation) else { return false };
        let replaced = match self.check() {
            Ok(()) => self.repository.replace(&self.object, &bytes),
            Err(_) => Ok(false),
        };
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        match replaced {
            Ok(true) => *stored = Some(now),
            Ok(false) => *stored = None,
            Err(_) => {}
        }
        stored.is_some()
    }

    fn lost(&self) -> Error {
        Error::Invalid(format!(
            "the lock {} was removed, or not renewed in time, so another process may have removed \
             objects; run the operation again, which continues it",
            location(self.repository, &self.object)
        ))
    }
}

/// Runs an operation while holding a lock.
///
/// # Errors
/// The lock is held by another process, or cannot be stored, or the operation failed.
pub(crate) fn with_lock<T>(
    repository: &dyn Repository,
    kind: LockKind,
    operation: &str,
    run: impl FnOnce(&Held<'_>) -> Result<T>,
) -> Result<T> {
    hold(&acquire(repository, kind, operation)?, kind, operation, run)
}

/// Runs an operation, and renews the lock meanwhile.
fn hold<T>(
    held: &Held<'_>,
    kind: LockKind,
    operation: &str,
    run: impl FnOnce(&Held<'_>) -> Result<T>,
) -> Result<T> {
    let done = (Mutex::new(false), Condvar::new());
    let result = std::thread::scope(|scope| {
        let refresher = scope.spawn(|| refresh(held, kind, operation, &done));
        // The thread ends even if the operation panics.
        let stop = Stop(&done);
        let result = remove_stale(held.repository, held).and_then(|()| run(held));
        drop(stop);
        let _ = refresher.join();
        result
    });
    // If the lock cannot be deleted, it soon becomes stale.
    let _ = held.repository.delete(&held.object);
    result
}

/// Runs a read-only operation: with a lock if one can be stored, and otherwise without, because a
/// repository that cannot be written is not pruned either.
///
/// # Errors
/// An exclusive lock is held by another process, or the operation failed.
pub(crate) fn with_lock_if_writable<T>(
    repository: &dyn Repository,
    kind: LockKind,
    operation: &str,
    run: impl FnOnce() -> Result<T>,
) -> Result<T> {
    match acquire(repository, kind, operation) {
        Ok(held) => hold(&held, kind, operation, |_| run()),
        Err(Error::Io { operation: "write", .. }) => run(),
        Err(error) => Err(error),
    }
}

struct Stop<'a>(&'a (Mutex<bool>, Condvar));

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.1.notify_all();
    }
}

/// Renews the lock every minute until the operation is done.
fn refresh(held: &Held<'_>, kind: LockKind, operation: &str, done: &(Mutex<bool>, Condvar)) {
    let mut is_done = done.0.lock().unwrap_or_else(PoisonError::into_inner);
    while !*is_done {
        let waited = done.1.wait_timeout(is_done, REFRESH);
        let (guard, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        is_done = guard;
        if waited.timed_out() && !*is_done && !held.store_again(kind, operation) {
            return;
        }
    }
}

fn encode(kind: LockKind, operation: &str) -> Result<Vec<u8>> {
    serde_json::to_vec(&Lock::new(kind, operation))
        .map_err(|error| Error::io("encode", LOCKS, error.into()))
}

fn acquire<'a>(
    repository: &'a dyn Repository,
    kind: LockKind,
    operation: &str,
) -> Result<Held<'a>> {
    for attempt in 1.. {
        let begun = (Instant::now(), now_micros());
        let object = unique_object();
        write(repository, &object, &encode(kind, operation)?)?;
        match conflict(repository, kind, &object) {
            Ok(None) => return Ok(Held { repository, object, stored: Mutex::new(Some(begun)) }),
            Ok(Some(_)) if attempt < TRIES => {
                delete(repository, &object)?;
                // Processes that began concurrently retry at different times.
                let wait = 50 * u64::from(attempt) + now_micros() % 100;
                std::thread::sleep(Duration::from_millis(wait));
            }
            Ok(Some(holder)) => {
                delete(repository, &object)?;
                let location = repository.location();
                let advice = ", or remove its lock with 'terrane backup unlock' if its process no longer exists";
                return Err(Error::InUse { location, holder: holder.describe(), advice });
            }
            Err(error) => {
                let _ = repository.delete(&object);
                return Err(error);
            }
        }
    }
    Err(Error::Cancelled)
}

/// Returns a name that no other lock has.
fn unique_object() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("{LOCKS}{:x}-{:x}-{count:x}.json", now_micros(), std::process::id())
}

/// Returns a lock that excludes ours.
fn conflict(repository: &dyn Repository, kind: LockKind, own: &str) -> Result<Option<Lock>> {
    for (object, lock) in all(repository)? {
        let excludes = kind == LockKind::Exclusive || lock.kind == LockKind::Exclusive;
        if object != own && excludes && !lock.is_stale() {
            return Ok(Some(lock));
        }
    }
    Ok(None)
}

/// Removes the stale locks of others, so that their processes stop if they are still running.
fn remove_stale(repository: &dyn Repository, held: &Held<'_>) -> Result<()> {
    for (object, lock) in all(repository)? {
        if object != held.object && lock.is_stale() {
            delete(repository, &object)?;
        }
    }
    Ok(())
}

/// The locks that [`unlock`] removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Unlock {
    /// Ignored locks: those of processes that ended or stopped renewing them.
    #[default]
    Stale,
    /// All. A process whose lock is removed stops within a minute, and creates no backup.
    All,
}

/// A lock that [`unlock`] found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepositoryLock {
    /// The name of the object.
    pub object: String,
    /// The operation, its process, and when the process was last active.
    pub holder: String,
    /// True if it was removed.
    pub is_removed: bool,
}

/// Removes locks, and returns all that existed. Operations remove stale locks themselves. A lock remains if
/// the clock of its machine was ahead, or if it cannot be read; then ensure that no process uses the
/// repository, and remove all.
///
/// # Errors
/// The location is not a repository, or a lock cannot be read or removed.
pub fn unlock(repository: &dyn Repository, which: Unlock) -> Result<Vec<RepositoryLock>> {
    check(repository)?;
    let mut found = Vec::new();
    for (object, lock) in all(repository)? {
        let is_removed = which == Unlock::All || lock.is_stale();
        if is_removed {
            delete(repository, &object)?;
        }
        found.push(RepositoryLock { object, holder: lock.describe(), is_removed });
    }
    Ok(found)
}

/// Returns all locks. One that cannot be understood counts as just stored by a process that excludes all
/// others, because a newer version may have written it.
fn all(repository: &dyn Repository) -> Result<Vec<(String, Lock)>> {
    let mut locks = Vec::new();
    for stored in list_folder(repository, LOCKS)? {
        let Some(bytes) = read(repository, &stored.name)? else { continue };
        let lock = serde_json::from_slice(&bytes).unwrap_or_else(|_| Lock {
            process: 0,
            host: format!("another machine, whose lock is {}", stored.name),
            boot: String::new(),
            ..Lock::new(LockKind::Exclusive, "an operation of another version")
        });
        locks.push((stored.name, lock));
    }
    Ok(locks)
}

#[cfg(test)]
mod tests;
