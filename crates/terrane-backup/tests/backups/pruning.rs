//! Pruning: the rules, and that no object is lost that a backup needs.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use terrane_backup::{
    CreateOptions, Directory, Error, Memory, PruneOptions, Repository, Retention, VerifyOptions,
    Which, create, list, plan_prune, prune, verify,
};
use terrane_testkit::{Rng, StopOnDrop, seed_from_env};

use crate::support::{back_up, contents, fill, object_bytes, open, restored};

#[test]
fn a_prune_removes_what_was_planned() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let repository = Directory::new(dir.path().join("repository"));
    let mut names = Vec::new();
    for round in 0..4 {
        fill(&db, 0..300, round);
        db.flush().unwrap();
        names.push(back_up(&db, &repository).backup.name);
    }
    let left = repository.path().join("tmp/left");
    std::fs::write(&left, "by a killed process").unwrap();
    let file = std::fs::File::options().write(true).open(&left).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
    let used = repository.path().join("tmp/used");
    std::fs::write(&used, "by another process").unwrap();
    let options = PruneOptions::new(Retention::last(2));
    let before = object_bytes(&repository);
    let planned = plan_prune(&repository, &options).unwrap();
    assert_eq!(object_bytes(&repository), before);
    let pruned = prune(&repository, &options).unwrap();
    for plan in [&planned, &pruned] {
        let removed: Vec<&String> = plan.removed.iter().map(|backup| &backup.name).collect();
        assert_eq!(removed, [&names[0], &names[1]]);
    }
    assert_eq!(planned.objects, pruned.objects);
    assert_eq!(pruned.bytes, planned.bytes + 19);
    assert_eq!(object_bytes(&repository), before - planned.bytes);
    assert!(!left.exists() && used.exists() && planned.bytes > 0);
    let found = verify(&repository, &VerifyOptions::new()).unwrap();
    assert!(found.is_intact() && found.unreferenced_objects == 0 && found.backups == 2);
    assert_eq!(restored(&repository, &Which::Latest, &dir.path().join("new")), contents(&db));
    let nothing = prune(&repository, &PruneOptions::new(Retention::default())).unwrap_err();
    assert!(nothing.to_string().contains("no rule keeps any backup"), "{nothing}");
}

/// Random backups of two databases, interrupted backups and prunes, with other people's files: every listed
/// backup can be verified at any time.
#[test]
fn no_prune_loses_an_object_that_a_backup_needs() {
    let seed = seed_from_env(4000);
    let mut rng = Rng::new(seed);
    let dir = tempfile::tempdir().unwrap();
    let repository = Memory::new();
    let dbs = ["one", "two"].map(|name| open(&dir.path().join(name)));
    let mut interrupted = 0;
    for step in 0..60u32 {
        let db = &dbs[rng.below(2) as usize];
        match rng.below(6) {
            0 | 1 => fill(db, rng.below(200) as u32..250, step),
            2 => {
                let end = 1 + rng.below(100);
                let calls = AtomicU64::new(0);
                let options = CreateOptions::new().on_progress(move |_| {
                    match calls.fetch_add(1, Ordering::Relaxed) >= end {
                        true => std::ops::ControlFlow::Break(()),
                        false => std::ops::ControlFlow::Continue(()),
                    }
                });
                interrupted += u32::from(create(db, &repository, &options).is_err());
            }
            3 | 4 => drop(back_up(db, &repository)),
            _ => {
                let retention = Retention::last(1 + rng.below(3) as u32);
                let mut options = PruneOptions::new(retention);
                let found = list(&repository).map(|found| found.backups).unwrap_or_default();
                if rng.percent(50)
                    && let Some(backup) = found.first()
                {
                    options = options.database(&backup.database);
                }
                if !found.is_empty() {
                    prune(&repository, &options).unwrap();
                }
            }
        }
        if !repository.list("").unwrap().is_empty() {
            let found = verify(&repository, &VerifyOptions::new()).unwrap();
            assert!(found.is_intact(), "step {step}, seed {seed}: {found:?}");
        }
    }
    assert!(interrupted > 0, "seed {seed}");
    for (index, db) in dbs.iter().enumerate() {
        let created = back_up(db, &repository);
        prune(&repository, &PruneOptions::new(Retention::last(1))).unwrap();
        let which = Which::Named(created.backup.name);
        let target = dir.path().join(format!("restored {index}"));
        assert_eq!(restored(&repository, &which, &target), contents(db), "seed {seed}");
    }
    let found = verify(&repository, &VerifyOptions::new()).unwrap();
    assert!(found.is_intact() && found.unreferenced_objects == 0, "seed {seed}");
    assert!(found.backups <= 2, "seed {seed}");
}

#[test]
fn backups_and_prunes_at_the_same_time_exclude_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..300, 0);
    let repository = Directory::new(dir.path().join("repository"));
    back_up(&db, &repository);
    let is_done = AtomicBool::new(false);
    let (created, pruned) = std::thread::scope(|scope| {
        // Even after a failure, so that the pruner ends.
        let _stop = StopOnDrop(&is_done);
        let pruner = scope.spawn(|| {
            let mut pruned = 0;
            while !is_done.load(Ordering::Relaxed) {
                match prune(&repository, &PruneOptions::new(Retention::last(1))) {
                    Ok(_) => pruned += 1,
                    Err(error) => assert!(matches!(error, Error::InUse { .. }), "{error}"),
                }
                // Gives backups a chance.
                std::thread::sleep(Duration::from_millis(100));
            }
            pruned
        });
        let mut created = 0;
        for round in 1.. {
            fill(&db, 0..60, round);
            match create(&db, &repository, &CreateOptions::new()) {
                Ok(_) => created += 1,
                Err(error) => assert!(matches!(error, Error::InUse { .. }), "{error}"),
            }
            match verify(&repository, &VerifyOptions::new()) {
                Ok(found) => assert!(found.is_intact(), "{found:?}"),
                Err(error) => assert!(matches!(error, Error::InUse { .. }), "{error}"),
            }
            if round >= 30 || created >= 5 {
                break;
            }
        }
        is_done.store(true, Ordering::Relaxed);
        (created, pruner.join().unwrap())
    });
    assert!(created > 0 && pruned > 0, "{created} {pruned}");
    back_up(&db, &repository);
    assert!(verify(&repository, &VerifyOptions::new()).unwrap().is_intact());
    assert_eq!(restored(&repository, &Which::Latest, &dir.path().join("new")), contents(&db));
}

#[test]
fn a_damaged_manifest_stops_a_prune_until_it_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    fill(&db, 0..100, 0);
    let repository = Memory::new();
    let first = back_up(&db, &repository).backup;
    fill(&db, 0..100, 1);
    back_up(&db, &repository);
    repository.put(&first.object(), &mut &b"{}"[..]).unwrap();
    let options = PruneOptions::new(Retention::last(1));
    let refused = prune(&repository, &options).unwrap_err();
    assert!(refused.to_string().contains("--remove-damaged"), "{refused}");
    assert!(refused.to_string().contains(&first.object()), "{refused}");
    let pruned = prune(&repository, &options.clone().remove_damaged()).unwrap();
    assert_eq!(pruned.damaged, [first.object()]);
    assert!(pruned.objects > 0);
    assert!(verify(&repository, &VerifyOptions::new()).unwrap().is_intact());
    // A manifest of a newer version is never removed.
    let newer = br#"{"schema":9}"#;
    let seal = terrane_backup::ContentId::of(newer).sha256();
    let text = format!("{}\n{{\"sha256\":\"{seal}\"}}\n", String::from_utf8_lossy(newer));
    repository.put(&first.object(), &mut text.as_bytes()).unwrap();
    let refused = prune(&repository, &options.remove_damaged()).unwrap_err();
    assert!(matches!(refused, Error::Unsupported { found: 9, .. }), "{refused}");
}
