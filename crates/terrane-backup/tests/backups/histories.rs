//! Clocks that are wrong, and databases that were restored and then written.

use terrane::Db;
use terrane_backup::{
    Backup, CreateOptions, Created, Directory, Memory, Notice, PruneOptions, Repository,
    RestoreOptions, Retention, VerifyOptions, Which, create, list, prune, restore, verify,
};

use crate::support::{open, read};

const DAY: u64 = 86_400_000_000;

/// A time in 2026.
const TODAY: u64 = 1_795_255_722_000_000;

fn put(db: &Db, value: &str) {
    db.put("a", value).unwrap();
}

fn back_up_at(db: &Db, repository: &dyn Repository, micros: u64) -> Created {
    create(db, repository, &CreateOptions::new().time_micros(micros)).unwrap()
}

/// Restores the chosen backup to a new directory, and returns the value in it.
fn value_of(repository: &dyn Repository, which: &Which) -> String {
    let dir = tempfile::tempdir().unwrap();
    let restored = dir.path().join("db");
    restore(repository, which, &restored, &RestoreOptions::new()).unwrap();
    let value = Db::open(&restored).unwrap().get("a").unwrap().unwrap();
    String::from_utf8(value.to_vec()).unwrap()
}

fn names(backups: &[Backup]) -> Vec<&str> {
    backups.iter().map(|backup| backup.name.as_str()).collect()
}

/// After the clock had been set back by a day, a restore took the older state, and a prune removed the newer
/// one.
#[test]
fn a_clock_that_was_set_back_does_not_make_a_backup_older() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let repository = Memory::new();
    put(&db, "1");
    let first = back_up_at(&db, &repository, TODAY);
    put(&db, "2");
    let second = back_up_at(&db, &repository, TODAY - DAY);
    assert!(first.notices.is_empty());
    assert!(matches!(second.notices[..], [Notice::Clock { is_certain: true, .. }]));
    let found = list(&repository).unwrap();
    assert_eq!(names(&found.backups), [&*first.backup.name, &second.backup.name]);
    assert_eq!(found.notices(), second.notices);
    assert_eq!(value_of(&repository, &Which::Latest), "2");
    assert_eq!(value_of(&repository, &Which::At(TODAY)), "2");
    let pruned = prune(&repository, &PruneOptions::new(Retention::last(1))).unwrap();
    assert_eq!(names(&pruned.removed), [&*first.backup.name]);
    assert_eq!(value_of(&repository, &Which::Latest), "2");
}

/// A backup of a clock a year ahead was the newest for a year.
#[test]
fn a_clock_that_was_a_year_ahead_displaces_no_backup() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let repository = Memory::new();
    let mut made = Vec::new();
    for (index, time) in [0, 1, 400, 2, 3, 4].into_iter().enumerate() {
        put(&db, &index.to_string());
        made.push(back_up_at(&db, &repository, TODAY + time * DAY).backup.name);
    }
    assert_eq!(value_of(&repository, &Which::Latest), "5");
    let daily = PruneOptions::new(Retention::default().daily(4));
    let pruned = prune(&repository, &daily).unwrap();
    // The days 4, 3, 2 and 1. The backup of the wrong year does not count as a day.
    assert_eq!(names(&pruned.removed), [&*made[0]]);
    let pruned = prune(&repository, &PruneOptions::new(Retention::default().daily(3))).unwrap();
    assert_eq!(names(&pruned.removed), [&*made[1], &made[2]]);
    assert_eq!(value_of(&repository, &Which::Latest), "5");
}

/// Restores the first of two backups in the place of the database, as after a mistake, and goes on.
#[test]
fn a_restored_database_that_goes_on_is_another_history() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let repository = Directory::new(dir.path().join("repository"));
    let db = open(&path);
    put(&db, "old");
    let old = back_up_at(&db, &repository, TODAY).backup;
    put(&db, "mistake");
    let mistake = back_up_at(&db, &repository, TODAY + 1).backup;
    db.close().unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    restore(&repository, &Which::Named(old.name.clone()), &path, &RestoreOptions::new()).unwrap();
    let db = open(&path);
    // More writes than the original had, so the sequence number alone says nothing.
    (0..9).for_each(|index| put(&db, &index.to_string()));
    let created = back_up_at(&db, &repository, TODAY + 2);
    let fork = Notice::fork(&created.backup, &mistake, old.sequence);
    assert_eq!(created.notices, std::slice::from_ref(&fork));
    let origin = created.backup.origin.clone().unwrap();
    assert_eq!((origin.backup, origin.sequence), (Some(old.name.clone()), old.sequence));
    assert_eq!(list(&repository).unwrap().notices(), std::slice::from_ref(&fork));
    // It was continued last, so it is the newest.
    assert_eq!(value_of(&repository, &Which::Latest), "8");
    let target = dir.path().join("target");
    let restored = restore(&repository, &Which::Latest, &target, &RestoreOptions::new()).unwrap();
    assert_eq!(restored.notices, std::slice::from_ref(&fork));
    // The next backup continues the history, and brings about no new fork.
    put(&db, "next");
    let next = back_up_at(&db, &repository, TODAY + 3);
    assert_eq!(next.backup.history, created.backup.history);
    // Each history keeps its newest backup, until one is given up.
    let last = PruneOptions::new(Retention::last(1));
    let pruned = prune(&repository, &last).unwrap();
    assert_eq!(names(&pruned.removed), [&*old.name, &created.backup.name]);
    assert_eq!(pruned.notices.len(), 1);
    let pruned = prune(&repository, &last.clone().remove_history(&mistake.history)).unwrap();
    assert_eq!(names(&pruned.removed), [&*mistake.name]);
    let refused = prune(&repository, &last.remove_history(&next.backup.history)).unwrap_err();
    assert!(refused.to_string().contains("the only history"), "{refused}");
    assert!(list(&repository).unwrap().notices().is_empty());
    assert_eq!(value_of(&repository, &Which::Latest), "next");
}

/// A database that is restored to its newest backup continues its history, so the rules apply to both
/// together.
#[test]
fn a_database_that_was_restored_to_its_newest_backup_has_no_fork() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let repository = Memory::new();
    let db = open(&path);
    put(&db, "1");
    let first = back_up_at(&db, &repository, TODAY).backup;
    db.close().unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    restore(&repository, &Which::Latest, &path, &RestoreOptions::new()).unwrap();
    let db = open(&path);
    put(&db, "2");
    let second = back_up_at(&db, &repository, TODAY + 1);
    assert!(second.notices.is_empty() && second.backup.history != first.history);
    let pruned = prune(&repository, &PruneOptions::new(Retention::last(1))).unwrap();
    assert_eq!(names(&pruned.removed), [&*first.name]);
    // A database with another number that is created in the directory has nothing to do with the restore.
    db.close().unwrap();
    for name in crate::support::names(&path) {
        if name != "HISTORY" {
            std::fs::remove_file(path.join(name)).unwrap();
        }
    }
    let db = open(&path);
    put(&db, "other");
    let other = back_up_at(&db, &repository, TODAY + 2).backup;
    assert_eq!((&other.history, other.origin), (&other.database, None));
}

fn copy_dir(from: &std::path::Path, to: &std::path::Path) {
    std::fs::create_dir(to).unwrap();
    for name in crate::support::names(from) {
        std::fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// A copy of the directory by another program, put in the place of the database, leaves no trace of a
/// restore.
#[test]
fn an_old_image_of_the_database_begins_another_history() {
    let dir = tempfile::tempdir().unwrap();
    let (path, image) = (dir.path().join("db"), dir.path().join("image"));
    let repository = Memory::new();
    let db = open(&path);
    put(&db, "1");
    let first = back_up_at(&db, &repository, TODAY).backup;
    db.close().unwrap();
    copy_dir(&path, &image);
    let db = open(&path);
    (0..9).for_each(|index| put(&db, &index.to_string()));
    let second = back_up_at(&db, &repository, TODAY + 1).backup;
    db.close().unwrap();
    std::fs::remove_dir_all(&path).unwrap();
    std::fs::rename(&image, &path).unwrap();
    let db = open(&path);
    put(&db, "3");
    let third = back_up_at(&db, &repository, TODAY + 2);
    assert_eq!(third.notices, [Notice::fork(&third.backup, &second, first.sequence)]);
    put(&db, "4");
    let fourth = back_up_at(&db, &repository, TODAY + 3).backup;
    assert_eq!(fourth.history, third.backup.history);
    assert_eq!(value_of(&repository, &Which::Latest), "4");
}

/// Rewrites all manifests as the first version of the format wrote them.
fn make_old(repository: &Memory) -> Vec<String> {
    let mut names = Vec::new();
    for stored in repository.list("backups/").unwrap() {
        let text = String::from_utf8(read(repository, &stored.name)).unwrap();
        let mut fields: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(text.lines().next().unwrap()).unwrap();
        for field in ["ordinal", "history", "origin"] {
            fields.remove(field);
        }
        let name = fields["name"].as_str().unwrap().to_owned();
        let parts: Vec<&str> = name.split('-').collect();
        let name = format!("{}-{}", parts[0], parts[2]);
        fields.insert("name".into(), name.as_str().into());
        write_manifest(repository, &name, &serde_json::Value::Object(fields).to_string());
        repository.delete(&stored.name).unwrap();
        names.push(name);
    }
    names
}

fn write_manifest(repository: &Memory, name: &str, line: &str) {
    let seal = terrane_backup::ContentId::of(line.as_bytes()).sha256();
    let text = format!("{line}\n{{\"sha256\":\"{seal}\"}}\n");
    repository.put(&format!("backups/{name}.json"), &mut text.as_bytes()).unwrap();
}

#[test]
fn a_repository_of_the_first_format_is_read_and_continued() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    let repository = Memory::new();
    put(&db, "1");
    back_up_at(&db, &repository, TODAY);
    put(&db, "2");
    back_up_at(&db, &repository, TODAY - DAY);
    make_old(&repository);
    assert_eq!(value_of(&repository, &Which::Latest), "2");
    // Either may be the newest, so none is removed.
    let last = PruneOptions::new(Retention::last(1));
    assert!(prune(&repository, &last).unwrap().removed.is_empty());
    put(&db, "3");
    let third = back_up_at(&db, &repository, TODAY - DAY + 1);
    assert!(third.stored_files < third.backup.files.len() as u64);
    assert_eq!((third.backup.ordinal, third.backup.origin), (1, None));
    assert_eq!(prune(&repository, &last).unwrap().removed.len(), 2);
    assert_eq!(value_of(&repository, &Which::Latest), "3");
}

/// A forged manifest without a table was ok for the verification.
#[test]
fn a_manifest_that_lacks_a_file_of_the_database_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let db = open(&dir.path().join("db"));
    put(&db, "1");
    let repository = Memory::new();
    let made = back_up_at(&db, &repository, TODAY).backup;
    assert!(verify(&repository, &VerifyOptions::new()).unwrap().is_intact());
    let table = made.files.iter().find(|file| file.name.ends_with(".sst")).unwrap();
    let text = String::from_utf8(read(&repository, &made.object())).unwrap();
    let fields: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    for (lacks, wanted) in
        [(&*table.name, "lacks 0"), ("CURRENT", "lacks CURRENT"), ("MANIFEST", "MANIFEST")]
    {
        let mut forged = fields.clone();
        let files = forged["files"].as_array_mut().unwrap();
        files.retain(|file| !file["name"].as_str().unwrap().starts_with(lacks));
        write_manifest(&repository, &made.name, &forged.to_string());
        let found = verify(&repository, &VerifyOptions::new()).unwrap();
        assert!(!found.is_intact() && found.incomplete[0].backup == made.name);
        assert!(found.incomplete[0].what.contains(wanted), "{:?}", found.incomplete);
    }
    let mut forged = fields;
    forged["files"][0]["name"] = "LOCK".into();
    write_manifest(&repository, &made.name, &forged.to_string());
    let found = verify(&repository, &VerifyOptions::new()).unwrap();
    let told = found.unreadable[0].1.to_string();
    assert!(told.contains("'LOCK' cannot be one of its files"), "{told}");
}
