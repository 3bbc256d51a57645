//! Locks of keys, so that commands that read and write are atomic, and keys that clients watch.
//!
//! A key belongs to one of a fixed number of shards. A command that writes locks the shards of all its
//! keys, in the order of their numbers, before it runs; a command that only reads locks none, because a
//! lookup and a batch are atomic by themselves.
//!
//! 1. Two commands that change a key never overlap, because both hold the lock of its shard.
//! 2. No deadlock: locks are taken in the order of the shards, and all at once.
//! 3. No event loop waits for a thread that keeps its locks for long, because it takes locks with the functions
//!    that fail then.
//! 4. A client that watches a key is notified by every command that changes it, because the watch is
//!    registered under the same lock. The tables of watches have locks of their own, which are taken last and
//!    never kept for long, so that the end of a watch waits for no command.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

/// Few enough that `FLUSHALL` locks all of them in about a millisecond, and enough that two threads
/// that lock 64 keys each rarely contend: once in 16 times.
const SHARDS: usize = 1 << 16;

/// The number of tables of watches.
const WATCH_TABLES: usize = 1024;

/// The locks of all keys.
#[derive(Debug)]
pub(crate) struct KeyLocks {
    /// The locks of the keys.
    shards: Box<[Mutex<()>]>,
    watch_tables: Box<[Mutex<Watches>]>,
    hasher: RandomState,
    /// The number of watches. If it is 0, writers search no table of watches.
    watches: AtomicUsize,
    /// The number of threads that keep their locks for long.
    long: AtomicUsize,
}

/// Marks a thread as one that keeps its locks for long. It outlives the locks.
#[derive(Debug)]
pub(crate) struct LongHolder<'a>(&'a KeyLocks);

impl Drop for LongHolder<'_> {
    fn drop(&mut self) {
        self.0.long.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The clients that watch some of the keys, by database and key.
type Watches = HashMap<WatchedKey, Vec<Arc<AtomicBool>>>;

/// A database and a key.
type WatchedKey = (usize, Box<[u8]>);

/// Locked shards.
#[derive(Debug, Default)]
pub(crate) struct Held<'a>(Shards<'a>);

#[derive(Debug, Default)]
enum Shards<'a> {
    #[default]
    None,
    One {
        _locked: MutexGuard<'a, ()>,
    },
    /// In the order of the shards.
    Many(Vec<MutexGuard<'a, ()>>),
}

impl Held<'_> {
    /// Returns whether no lock is held.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.0, Shards::None)
    }

    /// Returns whether `keys` keys, all covered by these locks, are certainly distinct.
    pub(crate) fn are_distinct(&self, keys: usize) -> bool {
        match &self.0 {
            Shards::None => keys == 0,
            Shards::One { .. } => keys <= 1,
            Shards::Many(shards) => shards.len() == keys,
        }
    }
}

fn watches(table: &Mutex<Watches>) -> MutexGuard<'_, Watches> {
    // A panic does not leave a table half changed.
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

impl KeyLocks {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            watch_tables: (0..WATCH_TABLES).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            watches: AtomicUsize::new(0),
            long: AtomicUsize::new(0),
        }
    }

    /// Called before this thread takes locks that it keeps for long.
    pub(crate) fn hold_long(&self) -> LongHolder<'_> {
        self.long.fetch_add(1, Ordering::SeqCst);
        LongHolder(self)
    }

    fn shard(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % SHARDS
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, ()> {
        self.shards[shard % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn watches_of(&self, key: &[u8]) -> MutexGuard<'_, Watches> {
        let table = self.hasher.hash_one(key) as usize % WATCH_TABLES;
        watches(&self.watch_tables[table])
    }

    /// Locks a shard; fails if it may be locked for long.
    fn try_lock(&self, shard: usize) -> Option<MutexGuard<'_, ()>> {
        match self.shards[shard % SHARDS].try_lock() {
            Ok(locked) => Some(locked),
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Err(TryLockError::WouldBlock) if self.long.load(Ordering::SeqCst) > 0 => None,
            Err(TryLockError::WouldBlock) => Some(self.lock(shard)),
        }
    }

    /// Locks one key.
    pub(crate) fn hold(&self, key: &[u8]) -> Held<'_> {
        Held(Shards::One { _locked: self.lock(self.shard(key)) })
    }

    /// Locks one key; fails if it may be locked for long.
    #[inline]
    pub(crate) fn try_hold(&self, key: &[u8]) -> Option<Held<'_>> {
        Some(Held(Shards::One { _locked: self.try_lock(self.shard(key))? }))
    }

    /// Locks some keys, so that no other command locks every key meanwhile; fails if all may be locked for
    /// long.
    pub(crate) fn try_hold_any(&self) -> Option<Held<'_>> {
        let free = self.shards.iter().find_map(|shard| shard.try_lock().ok());
        free.or_else(|| self.try_lock(0)).map(|_locked| Held(Shards::One { _locked }))
    }

    /// Locks several keys.
    pub(crate) fn hold_all<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Held<'_> {
        let shards = self.shards_of(keys);
        Held(Shards::Many(shards.into_iter().map(|shard| self.lock(shard)).collect()))
    }

    /// Locks several keys; fails if one of them may be locked for long.
    pub(crate) fn try_hold_all<'k>(
        &self,
        keys: impl Iterator<Item = &'k [u8]>,
    ) -> Option<Held<'_>> {
        let shards = self.shards_of(keys).into_iter();
        let shards: Option<_> = shards.map(|shard| self.try_lock(shard)).collect();
        Some(Held(Shards::Many(shards?)))
    }

    /// Returns the shards of keys, in order and each once.
    fn shards_of<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Vec<usize> {
        let mut shards: Vec<usize> = keys.map(|key| self.shard(key)).collect();
        shards.sort_unstable();
        shards.dedup();
        shards
    }

    /// Locks every key.
    pub(crate) fn hold_everything(&self) -> Held<'_> {
        Held(Shards::Many((0..SHARDS).map(|shard| self.lock(shard)).collect()))
    }

    /// Locks every key; fails if one of them may be locked for long.
    pub(crate) fn try_hold_everything(&self) -> Option<Held<'_>> {
        let shards: Option<_> = (0..SHARDS).map(|shard| self.try_lock(shard)).collect();
        Some(Held(Shards::Many(shards?)))
    }

    /// Notifies the clients that watch a key, whose lock the caller holds.
    #[inline]
    pub(crate) fn touch(&self, db: usize, key: &[u8]) {
        if self.watches.load(Ordering::Relaxed) > 0 {
            self.notify(db, key);
        }
    }

    #[cold]
    fn notify(&self, db: usize, key: &[u8]) {
        let watches = self.watches_of(key);
        let flags = watches.get(&(db, Box::from(key)));
        flags.into_iter().flatten().for_each(|flag| flag.store(true, Ordering::SeqCst));
    }

    /// Notifies the clients that watch a key for which `exists` returns true. The caller holds all locks.
    pub(crate) fn touch_database<E>(
        &self,
        db: usize,
        exists: impl Fn(&[u8]) -> Result<bool, E>,
    ) -> Result<(), E> {
        if self.watches.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        for table in &self.watch_tables {
            for ((of, key), flags) in &*watches(table) {
                if *of == db && exists(key)? {
                    flags.iter().for_each(|flag| flag.store(true, Ordering::SeqCst));
                }
            }
        }
        Ok(())
    }

    /// Until [`Self::unwatch`], sets `flag` when a command changes the key. `first` runs with the
    /// key locked. Does nothing, and returns `None`, if the key may be locked for long.
    pub(crate) fn watch<T>(
        &self,
        db: usize,
        key: &[u8],
        flag: &Arc<AtomicBool>,
        first: impl FnOnce() -> T,
    ) -> Option<T> {
        let _locked = self.try_lock(self.shard(key))?;
        self.watches.fetch_add(1, Ordering::Relaxed);
        let id = (db, Box::from(key));
        self.watches_of(key).entry(id).or_default().push(Arc::clone(flag));
        Some(first())
    }

    /// Ends a watch.
    pub(crate) fn unwatch(&self, db: usize, key: &[u8], flag: &Arc<AtomicBool>) {
        let mut watches = self.watches_of(key);
        let id = (db, Box::from(key));
        if let Some(flags) = watches.get_mut(&id) {
            if let Some(at) = flags.iter().position(|other| Arc::ptr_eq(other, flag)) {
                flags.swap_remove(at);
                self.watches.fetch_sub(1, Ordering::Relaxed);
            }
            if flags.is_empty() {
                watches.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watch_is_notified_of_its_key_and_database_only() {
        let locks = KeyLocks::new();
        let flag = Arc::new(AtomicBool::new(false));
        locks.watch(1, b"a", &flag, || ()).unwrap();
        locks.touch(0, b"a");
        locks.touch(1, b"b");
        let touch = |db, exists| locks.touch_database(db, |_| Ok::<_, ()>(exists)).unwrap();
        touch(0, true);
        touch(1, false);
        assert!(!flag.load(Ordering::SeqCst));
        locks.touch(1, b"a");
        assert!(flag.swap(false, Ordering::SeqCst));
        touch(1, true);
        assert!(flag.swap(false, Ordering::SeqCst));
        locks.unwatch(1, b"a", &flag);
        locks.touch(1, b"a");
        assert!(!flag.load(Ordering::SeqCst) && locks.watches.load(Ordering::SeqCst) == 0);
    }

    #[test]
    fn a_watch_ends_while_its_key_is_locked_for_long() {
        let locks = KeyLocks::new();
        let flag = Arc::new(AtomicBool::new(false));
        locks.watch(0, b"a", &flag, || ()).unwrap();
        let _long = locks.hold_long();
        let held = locks.hold(b"a");
        let (ended, end) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                locks.unwatch(0, b"a", &flag);
                ended.send(()).unwrap();
            });
            let found = end.recv_timeout(std::time::Duration::from_secs(20));
            drop(held);
            found.unwrap();
        });
        assert_eq!(locks.watches.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn only_locks_that_are_kept_for_long_are_refused() {
        let locks = KeyLocks::new();
        let (inside, outside) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _long = locks.hold_long();
                let _held = locks.hold(b"a");
                inside.wait();
                outside.wait();
            });
            inside.wait();
            assert!(locks.try_hold(b"a").is_none() && locks.try_hold_everything().is_none());
            let other = (0..99_u8).find(|key| locks.shard(&[*key]) != locks.shard(b"a")).unwrap();
            assert!(locks.try_hold_all([&[other][..], b"a"].into_iter()).is_none());
            // The lock taken before the refused one is free again.
            assert!(locks.try_hold(&[other]).is_some());
            outside.wait();
        });
        assert!(locks.try_hold_everything().is_some());
    }

    #[test]
    fn locks_of_many_keys_are_taken_in_one_order() {
        let locks = KeyLocks::new();
        let keys: Vec<Vec<u8>> = (0..200_u32).map(|n| n.to_le_bytes().to_vec()).collect();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (locks, keys) = (&locks, &keys);
                scope.spawn(move || {
                    for round in 0..200 {
                        let from = (round * 7 + thread * 31) % 150;
                        let some = keys[from..from + 50].iter().map(Vec::as_slice);
                        drop(if thread % 2 == 0 {
                            locks.hold_all(some)
                        } else {
                            locks.hold_all(some.rev())
                        });
                    }
                });
            }
        });
    }
}
