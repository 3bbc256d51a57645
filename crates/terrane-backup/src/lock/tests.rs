//! Locks of processes that are alive, dead, or on other machines.

use super::*;
use crate::memory::Memory;

fn put(repository: &Memory, name: &str, lock: &Lock) {
    write(repository, &format!("{LOCKS}{name}"), &serde_json::to_vec(lock).unwrap()).unwrap();
}

fn try_lock(repository: &Memory, kind: LockKind) -> Result<()> {
    with_lock(repository, kind, "test", |held| {
        held.check()?;
        held.check_object()
    })
}

#[test]
fn exclusive_locks_exclude_all_and_shared_ones_do_not_exclude_each_other() {
    let repository = Memory::new();
    with_lock(&repository, LockKind::Shared, "create", |_| {
        try_lock(&repository, LockKind::Shared).unwrap();
        let refused = try_lock(&repository, LockKind::Exclusive).unwrap_err();
        let told = refused.to_string();
        assert!(told.contains("'create' of process") && told.contains("try again"), "{told}");
        Ok(())
    })
    .unwrap();
    with_lock(&repository, LockKind::Exclusive, "prune", |_| {
        for kind in [LockKind::Shared, LockKind::Exclusive] {
            assert!(matches!(try_lock(&repository, kind), Err(Error::InUse { .. })));
        }
        Ok(())
    })
    .unwrap();
    assert!(repository.list(LOCKS).unwrap().is_empty());
}

#[test]
fn locks_of_dead_processes_and_old_ones_are_stale() {
    let repository = Memory::new();
    let live = Lock::new(LockKind::Exclusive, "prune");
    // Process numbers are below 2^22 on Linux.
    let dead = Lock { process: u32::MAX, ..live.clone() };
    let elsewhere = Lock { boot: "other".into(), ..dead.clone() };
    let old_micros = now_micros() - STALE.as_micros() as u64;
    let old = Lock { refreshed_micros: old_micros, ..live.clone() };
    assert!(!live.is_stale() && !elsewhere.is_stale() && old.is_stale());
    assert_eq!(dead.is_stale(), cfg!(target_os = "linux") && sees_all_processes());
    put(&repository, "old", &old);
    try_lock(&repository, LockKind::Exclusive).unwrap();
    // The next process removes a stale lock.
    assert!(repository.list(LOCKS).unwrap().is_empty());
    put(&repository, "elsewhere", &elsewhere);
    assert!(try_lock(&repository, LockKind::Shared).is_err());
}

#[test]
fn a_lock_that_was_removed_is_noticed_and_one_of_another_version_respected() {
    let repository = Memory::new();
    with_lock(&repository, LockKind::Shared, "create", |held| {
        repository.delete(&held.object).unwrap();
        let told = held.check_object().unwrap_err().to_string();
        assert!(told.contains("run the operation again"), "{told}");
        Ok(())
    })
    .unwrap();
    write(&repository, &format!("{LOCKS}x"), b"[]").unwrap();
    assert!(matches!(try_lock(&repository, LockKind::Shared), Err(Error::InUse { .. })));
}

#[test]
fn processes_that_begin_together_do_not_all_fail_for_ever() {
    let repository = Memory::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| while try_lock(&repository, LockKind::Exclusive).is_err() {});
        }
    });
}

fn hold_once(repository: &Memory) -> Held<'_> {
    acquire(repository, LockKind::Shared, "create").unwrap()
}

/// A lock that another process had removed came back, and a prune's removals went unnoticed.
#[test]
fn a_lock_that_was_removed_is_not_stored_again() {
    let repository = Memory::new();
    let held = hold_once(&repository);
    assert!(held.store_again(LockKind::Shared, "create") && held.check().is_ok());
    repository.delete(&held.object).unwrap();
    assert!(!held.store_again(LockKind::Shared, "create"));
    assert!(repository.list(LOCKS).unwrap().is_empty());
    // The process notices it without reading the repository.
    assert!(held.check().is_err());
}

#[test]
fn a_process_that_slept_for_too_long_does_not_store_its_lock_again() {
    let repository = Memory::new();
    let held = hold_once(&repository);
    let before = now_micros() - STALE.as_micros() as u64;
    held.stored.lock().unwrap().as_mut().unwrap().1 = before;
    assert!(!held.store_again(LockKind::Shared, "create"));
    assert!(held.check().is_err());
}

/// Nothing removed a lock whose machine had a clock ahead of all others, or whose contents were damaged.
#[test]
fn unlock_removes_stale_locks_and_on_request_all() {
    let repository = Memory::new();
    let live = Lock::new(LockKind::Shared, "create");
    let old = Lock { refreshed_micros: 0, ..live.clone() };
    let ahead = Lock { refreshed_micros: u64::MAX, boot: "other".into(), ..live.clone() };
    for (name, lock) in [("live", &live), ("old", &old), ("ahead", &ahead)] {
        put(&repository, name, lock);
    }
    write(&repository, &format!("{LOCKS}damaged"), b"\xff").unwrap();
    write(&repository, "repository.json", br#"{"format":"terrane-backup","schema":1}"#).unwrap();
    let refused = try_lock(&repository, LockKind::Exclusive).unwrap_err().to_string();
    assert!(refused.contains("terrane backup unlock"), "{refused}");
    let removed = |found: Vec<RepositoryLock>| {
        let removed = found.into_iter().filter(|lock| lock.is_removed);
        let mut names: Vec<String> = removed.map(|lock| lock.object).collect();
        names.sort();
        names
    };
    assert_eq!(removed(unlock(&repository, Unlock::Stale).unwrap()), ["locks/old"]);
    assert!(removed(unlock(&repository, Unlock::Stale).unwrap()).is_empty());
    let all = ["locks/ahead", "locks/damaged", "locks/live"];
    assert_eq!(removed(unlock(&repository, Unlock::All).unwrap()), all);
    try_lock(&repository, LockKind::Exclusive).unwrap();
}
