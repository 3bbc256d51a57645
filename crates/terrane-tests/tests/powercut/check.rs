//! Checks the databases on a copy of the file system.

use std::path::Path;

use terrane::{Db, KeyspaceOptions, OpenMode};

use super::record::{CHECKPOINTS, Phase, Saved, THREADS, UNLOGGED};
use super::writer::{KEPT, checkpoint, count_key, database, key, options, stored_counts, value};

/// The counts of a check.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) databases: u64,
    pub(crate) checkpoints: u64,
    /// Writes that had to be there.
    pub(crate) promised: u64,
    /// Writes that were found.
    pub(crate) found: u64,
}

/// Checks every database below `root` that the records from before and after the cut name.
pub(crate) fn check(root: &Path, before: &Path, after: &Path) -> Found {
    let before = Saved::read_all(before);
    let mut found = Found::default();
    for (number, after) in Saved::read_all(after) {
        let saved = before.iter().find(|(other, _)| *other == number);
        let nothing = Saved::empty();
        let before = saved.map_or(&nothing, |(_, saved)| saved);
        if after.phase() == Phase::Removed {
            continue;
        }
        for copy in 0..CHECKPOINTS {
            check_checkpoint(root, number, copy, (before, &after), &mut found);
        }
        let dir = database(root, number);
        let mode = match before.phase() {
            Phase::Absent => OpenMode::CreateIfMissing,
            _ => OpenMode::MustExist,
        };
        check_database(&dir, mode, before.promised(), after.acknowledged(), &mut found);
        found.databases += 1;
    }
    found
}

/// Checks a checkpoint that was complete before the cut, and not being removed when the cut ended.
fn check_checkpoint(
    root: &Path,
    number: u64,
    copy: usize,
    (before, after): (&Saved, &Saved),
    found: &mut Found,
) {
    let (phase, promised) = before.checkpoint(copy);
    let (phase_after, _) = after.checkpoint(copy);
    if phase == Phase::Created && phase_after == Phase::Created {
        let dir = checkpoint(root, number, copy);
        check_database(&dir, OpenMode::MustExist, promised, after.acknowledged(), found);
        found.checkpoints += 1;
    }
}

/// Opens a database, for reading and then for writing, and compares it with the writes that it must
/// and may hold. At the end the database must accept a write and verify.
fn check_database(
    dir: &Path,
    mode: OpenMode,
    at_least: &[u64],
    acknowledged: &[u64],
    found: &mut Found,
) {
    let options = options().open_mode(mode);
    let story = format!("{}, {at_least:?} to {acknowledged:?}", dir.display());
    if mode == OpenMode::MustExist {
        let db = options.open_read_only(dir);
        let db = db.unwrap_or_else(|error| panic!("read-only: {error}\n{story}"));
        let counts = check_contents(&db, at_least, acknowledged, &story);
        found.promised += at_least.iter().sum::<u64>();
        found.found += counts.iter().sum::<u64>();
    }
    let db = options.open(dir).unwrap_or_else(|error| panic!("{error}\n{story}"));
    check_contents(&db, at_least, acknowledged, &story);
    db.put("after the cut", &story).unwrap();
    db.close().unwrap();
    let db = options.open(dir).unwrap_or_else(|error| panic!("again: {error}\n{story}"));
    check_contents(&db, at_least, acknowledged, &story);
    assert_eq!(db.get("after the cut").unwrap().unwrap(), story.as_bytes());
    drop(db);
    let verification = terrane::inspect::verify(dir, &mut |_| {}).unwrap();
    assert!(verification.problems.is_empty(), "{:?}\n{story}", verification.problems);
}

/// Checks that the database holds a prefix of all logged writes and a prefix of the unlogged ones,
/// and returns their numbers by thread.
fn check_contents(db: &Db, at_least: &[u64], acknowledged: &[u64], story: &str) -> Vec<u64> {
    let keyspaces = db.keyspaces();
    let open = |name: &str| {
        let is_there = keyspaces.iter().any(|other| other == name);
        is_there.then(|| db.keyspace(name, KeyspaceOptions::new()).unwrap())
    };
    let (default, other, unlogged) = (open("default").unwrap(), open("other"), open("unlogged"));
    let home = |thread| if thread == UNLOGGED { unlogged.as_ref() } else { Some(&default) };
    let stored: Vec<Vec<u64>> = (0..THREADS)
        .map(|thread| home(thread).map_or(vec![0; 1 + THREADS], |home| stored_counts(home, thread)))
        .collect();
    let counts: Vec<u64> = stored.iter().map(|counts| counts[0]).collect();
    for thread in 0..THREADS {
        let (count, story) = (counts[thread], format!("thread {thread}: {counts:?}, {story}"));
        // One write may have happened without being acknowledged.
        assert!((at_least[thread]..=acknowledged[thread] + 1).contains(&count), "{story}");
        if thread == UNLOGGED {
            let Some(unlogged) = &unlogged else { continue };
            for number in 0..count {
                let found = unlogged.get(key(thread, number)).unwrap();
                assert_eq!(found.as_deref(), Some(&value(thread, number)[..]), "{number}, {story}");
            }
            assert!(!unlogged.contains(key(thread, count)).unwrap(), "half a batch, {story}");
            continue;
        }
        let Some(other) = &other else {
            assert_eq!(count, 0, "the other keyspace is missing, {story}");
            continue;
        };
        for number in 0..=count {
            let is_there = other.contains(key(thread, number)).unwrap();
            assert_eq!(is_there, number < count, "{number} in the other keyspace, {story}");
            let found = default.get(key(thread, number)).unwrap();
            let is_kept = number < count && number + KEPT >= count;
            let wanted = is_kept.then(|| value(thread, number));
            assert_eq!(found.as_deref(), wanted.as_deref(), "{number}, {story}");
        }
        // Writes that had returned before the last write of this thread precede it in the log.
        for before in 0..UNLOGGED {
            let needed = stored[thread][1 + before];
            assert!(needed <= counts[before], "{needed} writes of {before} precede it, {story}");
        }
    }
    assert_eq!(default.get(count_key(UNLOGGED)).unwrap(), None, "{story}");
    counts
}
