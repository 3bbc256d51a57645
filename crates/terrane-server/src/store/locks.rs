//! Locks of keys, so that commands that read and write are atomic, and keys that clients watch.
//!
//! A key belongs to one of a fixed number of shards. A command that writes locks the shards of all its
//! keys, in the order of their numbers, before it runs; a command that only reads locks none, because a
//! lookup and a batch are atomic by themselves.
//!
//! 1. Two commands that change a key never overlap, because both hold the lock of its shard.
//! 2. No deadlock: locks are taken in the order of the shards, and all at once.
//! 3. A client that watches a key is notified by every command that changes it, because the watch is
//!    registered under the same lock.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Few enough that `FLUSHALL` locks all of them in microseconds, and enough that threads rarely meet.
const SHARDS: usize = 1024;

/// The locks of all keys.
#[derive(Debug)]
pub(crate) struct KeyLocks {
    shards: Box<[Mutex<Watches>]>,
    hasher: RandomState,
    /// The number of watches. If it is 0, writers search no table of watches.
    watches: AtomicUsize,
}

/// The clients that watch the keys of a shard, by database and key.
#[derive(Debug, Default)]
struct Watches(HashMap<WatchedKey, Vec<Arc<AtomicBool>>>);

/// A database and a key.
type WatchedKey = (usize, Box<[u8]>);

/// Locked shards.
#[derive(Debug, Default)]
pub(crate) struct Held<'a>(Shards<'a>);

#[derive(Debug, Default)]
enum Shards<'a> {
    #[default]
    None,
    One(MutexGuard<'a, Watches>),
    /// In the order of the shards.
    Many(Vec<(usize, MutexGuard<'a, Watches>)>),
}

impl Held<'_> {
    /// Returns whether these are no locks.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self.0, Shards::None)
    }
}

impl KeyLocks {
    pub(crate) fn new() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            watches: AtomicUsize::new(0),
        }
    }

    fn shard(&self, key: &[u8]) -> usize {
        self.hasher.hash_one(key) as usize % SHARDS
    }

    fn lock(&self, shard: usize) -> MutexGuard<'_, Watches> {
        // A panic leaves the table of watches whole.
        self.shards[shard % SHARDS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks one key.
    pub(crate) fn hold(&self, key: &[u8]) -> Held<'_> {
        Held(Shards::One(self.lock(self.shard(key))))
    }

    /// Locks several keys.
    pub(crate) fn hold_all<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) -> Held<'_> {
        let mut shards: Vec<usize> = keys.map(|key| self.shard(key)).collect();
        shards.sort_unstable();
        shards.dedup();
        Held(Shards::Many(shards.into_iter().map(|shard| (shard, self.lock(shard))).collect()))
    }

    /// Locks every key.
    pub(crate) fn hold_everything(&self) -> Held<'_> {
        Held(Shards::Many((0..SHARDS).map(|shard| (shard, self.lock(shard))).collect()))
    }

    /// Notifies the clients that watch a key, whose lock the caller holds.
    #[inline]
    pub(crate) fn touch(&self, held: &mut Held<'_>, db: usize, key: &[u8]) {
        if self.watches.load(Ordering::Relaxed) > 0 {
            self.notify(held, db, key);
        }
    }

    #[cold]
    fn notify(&self, held: &mut Held<'_>, db: usize, key: &[u8]) {
        let watches = match &mut held.0 {
            Shards::None => return,
            Shards::One(watches) => Some(watches),
            Shards::Many(shards) => {
                let shard = self.shard(key);
                let at = shards.binary_search_by_key(&shard, |(shard, _)| *shard);
                at.ok().and_then(|at| shards.get_mut(at)).map(|(_, watches)| watches)
            }
        };
        let flags = watches.and_then(|watches| watches.0.get(&(db, Box::from(key))));
        flags.into_iter().flatten().for_each(|flag| flag.store(true, Ordering::SeqCst));
    }

    /// Notifies the clients that watch a key of a database that `exists`. All keys are locked.
    pub(crate) fn touch_database<E>(
        &self,
        held: &Held<'_>,
        db: usize,
        exists: impl Fn(&[u8]) -> Result<bool, E>,
    ) -> Result<(), E> {
        if self.watches.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        let Shards::Many(shards) = &held.0 else { return Ok(()) };
        for ((of, key), flags) in shards.iter().flat_map(|(_, watches)| &watches.0) {
            if *of == db && exists(key)? {
                flags.iter().for_each(|flag| flag.store(true, Ordering::SeqCst));
            }
        }
        Ok(())
    }

    /// Sets `flag` from now on when a command changes the key, until [`Self::unwatch`]. `first` runs with
    /// the key locked.
    pub(crate) fn watch<T>(
        &self,
        db: usize,
        key: &[u8],
        flag: &Arc<AtomicBool>,
        first: impl FnOnce() -> T,
    ) -> T {
        let mut watches = self.lock(self.shard(key));
        self.watches.fetch_add(1, Ordering::Relaxed);
        watches.0.entry((db, Box::from(key))).or_default().push(Arc::clone(flag));
        first()
    }

    /// Ends a watch.
    pub(crate) fn unwatch(&self, db: usize, key: &[u8], flag: &Arc<AtomicBool>) {
        let mut watches = self.lock(self.shard(key));
        let id = (db, Box::from(key));
        if let Some(flags) = watches.0.get_mut(&id) {
            if let Some(at) = flags.iter().position(|other| Arc::ptr_eq(other, flag)) {
                flags.swap_remove(at);
                self.watches.fetch_sub(1, Ordering::Relaxed);
            }
            if flags.is_empty() {
                watches.0.remove(&id);
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
        locks.watch(1, b"a", &flag, || ());
        locks.touch(&mut locks.hold(b"a"), 0, b"a");
        locks.touch(&mut locks.hold(b"b"), 1, b"b");
        let touch = |db, exists| {
            locks.touch_database(&locks.hold_everything(), db, |_| Ok::<_, ()>(exists)).unwrap();
        };
        touch(0, true);
        touch(1, false);
        assert!(!flag.load(Ordering::SeqCst));
        locks.touch(&mut locks.hold_all([&b"b"[..], b"a", b"a"].into_iter()), 1, b"a");
        assert!(flag.swap(false, Ordering::SeqCst));
        touch(1, true);
        assert!(flag.swap(false, Ordering::SeqCst));
        locks.unwatch(1, b"a", &flag);
        locks.touch(&mut locks.hold(b"a"), 1, b"a");
        assert!(!flag.load(Ordering::SeqCst) && locks.watches.load(Ordering::SeqCst) == 0);
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
