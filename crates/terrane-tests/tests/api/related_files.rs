//! Damage that shows only when several files are compared: opening for writing, opening read-only and
//! verification refuse it with the same words.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{Crash, MemoryStorage, Storage, Survival};
use terrane::{
    Background, Db, Durability, ErrorKind, Keyspace, KeyspaceOptions, OpenMode, Options,
    WriteBatch, inspect,
};

use crate::support::{DIR, in_memory, small_design};

/// Returns the frame pairs of a manifest: each edit with its copy.
fn frame_pairs(manifest: &[u8]) -> Vec<Vec<u8>> {
    let (mut pairs, mut at) = (Vec::new(), 0);
    while at < manifest.len() {
        let len = u32::from_le_bytes(manifest[at + 8..at + 12].try_into().unwrap()) as usize;
        let end = at + 2 * (16 + len);
        pairs.push(manifest[at..end].to_vec());
        at = end;
    }
    pairs
}

fn manifest_path(dir: &Path) -> PathBuf {
    let name = fs::read_to_string(dir.join("CURRENT")).unwrap();
    dir.join(name.trim_end())
}

/// Checks that all three ways to read a database refuse it, and returns their common message.
fn refused(dir: &Path) -> String {
    let error = Db::open_read_only(dir).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    let text = error.to_string();
    let problems = inspect::verify(dir, &mut |_| {}).unwrap().problems;
    let reported: Vec<String> = problems.iter().map(|problem| problem.what.clone()).collect();
    let found = reported.iter().any(|what| {
        let (part, detail) = what.split_once(": ").unwrap_or((what, ""));
        text.starts_with(part) && text.contains(&format!(": {detail}; restore"))
    });
    assert!(found, "verification reports {reported:?}, and not '{text}'");
    let writing = Options::new().open_mode(OpenMode::MustExist).open(dir).unwrap_err();
    assert_eq!(writing.to_string(), text);
    assert_eq!(writing.kind(), ErrorKind::Corruption);
    text
}

/// Verification used to report such a database as sound, and a read-only opening showed an old
/// state that lacked a keyspace.
#[test]
fn a_manifest_that_lost_its_last_edits_is_refused_in_every_way() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let db = Db::open(&dir).unwrap();
    db.put("a", "1").unwrap();
    for name in ["other", "third"] {
        let keyspace = db.keyspace(name, KeyspaceOptions::new()).unwrap();
        keyspace.put("b", "2").unwrap();
    }
    db.flush().unwrap();
    drop(db);
    let path = manifest_path(&dir);
    let whole = fs::read(&path).unwrap();
    let pairs = frame_pairs(&whole);
    assert!(pairs.len() > 4, "{}", pairs.len());
    for kept in 1..pairs.len() {
        fs::write(&path, pairs[..kept].concat()).unwrap();
        let text = refused(&dir);
        assert!(text.contains("corrupt manifest"), "{kept}: {text}");
    }
    fs::write(&path, whole).unwrap();
    assert!(inspect::verify(&dir, &mut |_| {}).unwrap().problems.is_empty());
    let db = Db::open_read_only(&dir).unwrap();
    assert_eq!(db.keyspaces().len(), 3);
}

#[test]
fn a_missing_table_and_a_short_one_are_refused_in_every_way() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let db = Db::open(&dir).unwrap();
    db.put("a", "1").unwrap();
    db.close().unwrap();
    let names = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let table = names.into_iter().find(|path| path.extension().is_some_and(|end| end == "sst"));
    let table = table.unwrap();
    let whole = fs::read(&table).unwrap();
    fs::write(&table, &whole[..whole.len() - 1]).unwrap();
    assert!(refused(&dir).contains("bytes long, and was written with"));
    fs::remove_file(&table).unwrap();
    assert!(refused(&dir).contains("the file is missing"));
}

/// Puts an earlier manifest in place, as if only that file were restored from a backup.
#[test]
fn an_older_manifest_is_refused_in_every_way() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    Db::open(&dir).unwrap().close().unwrap();
    let (path, pointer) = (manifest_path(&dir), fs::read(dir.join("CURRENT")).unwrap());
    let old = fs::read(&path).unwrap();
    let db = Db::open(&dir).unwrap();
    db.keyspace("other", KeyspaceOptions::new()).unwrap().put("a", "1").unwrap();
    drop(db);
    fs::write(&path, old).unwrap();
    fs::write(dir.join("CURRENT"), pointer).unwrap();
    let text = refused(&dir);
    assert!(text.contains("it ends at version") && text.contains("the log knows of"), "{text}");
}

/// Even without the note, the writes to the keyspace show that its creation is missing.
#[test]
fn a_manifest_that_lost_a_keyspace_with_writes_in_the_log_is_refused_in_every_way() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("db");
    let db = Db::open(&dir).unwrap();
    db.keyspace("other", KeyspaceOptions::new()).unwrap().put("a", "1").unwrap();
    drop(db);
    let path = manifest_path(&dir);
    let pairs = frame_pairs(&fs::read(&path).unwrap());
    fs::write(&path, pairs[..pairs.len() - 1].concat()).unwrap();
    let log = dir.join("000001.log");
    let mut segment = fs::read(&log).unwrap();
    segment[256..288].fill(0);
    fs::write(&log, segment).unwrap();
    let text = refused(&dir);
    assert!(text.contains("corrupt manifest") && text.contains("000001.log"), "{text}");
    // The lost keyspace is salvaged, under a name made of its number.
    let target = home.path().join("repaired");
    inspect::repair(&dir, &target).unwrap();
    let db = Db::open(&target).unwrap();
    let salvaged = db.keyspace("keyspace-1", KeyspaceOptions::new()).unwrap();
    assert_eq!(salvaged.get("a").unwrap().unwrap(), "1");
}

/// Keys of a keyspace, in order.
fn numbers(keyspace: &Keyspace) -> Vec<u32> {
    let number = |key: &[u8]| u32::from_be_bytes(key.try_into().unwrap());
    keyspace.iter().unwrap().map(|entry| number(&entry.unwrap().0)).collect()
}

/// Returns the image of a storage after a restart of the machine that lost nothing.
fn restarted(storage: &MemoryStorage) -> MemoryStorage {
    storage.crash_point().image(Crash::Power(Survival { percent: 100, seed: 0 }))
}

fn with(options: &Options, storage: &MemoryStorage) -> Options {
    options.clone().storage(Arc::new(storage.clone()))
}

fn only_log(storage: &MemoryStorage) -> PathBuf {
    let names = storage.list(Path::new(DIR)).unwrap();
    let mut logs = names.iter().filter(|name| name.ends_with(".log"));
    let log = Path::new(DIR).join(logs.next().unwrap());
    assert!(logs.next().is_none());
    log
}

/// Records end at the first multiple of 8 that is followed by 16 zeros.
fn end_of_records(log: &[u8]) -> usize {
    (512..).step_by(8).find(|&at| log[at..at + 16] == [0; 16]).unwrap()
}

/// Writes batches to two keyspaces, one of which is flushed, until a flush has just synced the log.
/// Then writes `more` batches. Returns the number of all batches.
fn write_to_two_keyspaces(db: &Db, more: u32) -> u32 {
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    let write = |number: u32| {
        let mut batch = WriteBatch::new();
        batch.put(number.to_be_bytes(), "v");
        batch.put_in(&other, number.to_be_bytes(), [7; 120]);
        db.write(&batch).unwrap();
    };
    let mut count = 0;
    loop {
        write(count);
        count += 1;
        let flushes = db.stats().flushes;
        while db.run_background_job().unwrap() {}
        if count > 50 && db.stats().flushes > flushes {
            break;
        }
    }
    (count..count + more).for_each(write);
    count + more
}

/// One keyspace was flushed, which synced the log. After a restart, a damaged record before the synced
/// position used to end the log silently, and the other keyspace lost its part of some batches.
#[test]
fn keyspaces_never_stand_at_different_writes_after_damage_of_the_log() {
    let (mut refusals, mut named, mut shorter) = (0, 0, 0);
    // The next write after a sync states the durable position in the log. Without it, the manifest and
    // the notes do. A crash may lose the notes.
    for (more, keeps_notes) in [(0, true), (0, false), (5, true), (5, false)] {
        let (options, storage) = in_memory();
        let db = options.clone().design(small_design()).open(DIR).unwrap();
        let count = write_to_two_keyspaces(&db, more);
        drop(db);
        let log = only_log(&storage);
        let whole = restarted(&storage).read(&log).unwrap();
        for at in (512..end_of_records(&whole)).step_by(9) {
            let image = restarted(&storage);
            let mut bad = whole.clone();
            bad[at] ^= 1 << (at % 8);
            if !keeps_notes {
                bad[256..288].fill(0);
            }
            image.overwrite(&log, &bad).unwrap();
            match with(&options, &image).open(DIR) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}: {error}");
                    let text = error.to_string();
                    assert!(text.contains(log.to_str().unwrap()), "{text}");
                    // A reader tries again for a while, because a writer might be at work.
                    if refusals % 64 == 0 {
                        let reading = with(&options, &image).open_read_only(DIR).unwrap_err();
                        assert_eq!(reading.to_string(), text);
                    }
                    named += usize::from(text.contains("writes to 'default', 'other'"));
                    refusals += 1;
                }
                Ok(db) => {
                    let keyspace = |name| db.keyspace(name, KeyspaceOptions::new()).unwrap();
                    let found = numbers(&keyspace("default"));
                    assert_eq!(found, numbers(&keyspace("other")), "byte {at}");
                    assert!(found.iter().copied().eq(0..found.len() as u32), "byte {at}");
                    assert!(found.len() as u32 >= count - more, "byte {at}");
                    shorter += usize::from(found.len() < count as usize);
                }
            }
        }
    }
    assert!(refusals > 100 && named > 5 && shorter > 5, "{refusals}, {named}, {shorter}");
}

/// After a restart, damage in the synced part of the log used to be refused only if a later write had
/// `Durability::Sync`, because `Db::sync` and an interval leave no trace in the records of the log.
#[test]
fn damage_in_the_synced_part_of_the_log_is_refused_after_a_restart() {
    for durability in
        [Durability::Process, Durability::Interval(Duration::from_secs(3600)), Durability::Sync]
    {
        let (options, storage) = in_memory();
        let options = options.durability(durability);
        let db = options.clone().background(Background::Threads).open(DIR).unwrap();
        let count = 40u32;
        let mut last = 0;
        for number in 0..count {
            last = end_of_records(&storage.read(&only_log(&storage)).unwrap());
            db.put(number.to_be_bytes(), format!("value {number}")).unwrap();
        }
        if durability == Durability::Process {
            db.sync().unwrap();
        }
        // Syncs the pending writes of an interval.
        drop(db);
        let log = only_log(&storage);
        let whole = restarted(&storage).read(&log).unwrap();
        let (mut refused, mut silent) = (0, 0);
        for at in (512..end_of_records(&whole)).step_by(5) {
            let image = restarted(&storage);
            let mut bad = whole.clone();
            bad[at] ^= 1 << (at % 8);
            image.overwrite(&log, &bad).unwrap();
            match with(&options, &image).open(DIR) {
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "byte {at}: {error}");
                    refused += 1;
                }
                Ok(db) => {
                    let default = db.keyspace("default", KeyspaceOptions::new()).unwrap();
                    let is_last = durability == Durability::Sync && at >= last;
                    let is_short = numbers(&default).len() < count as usize;
                    // No record after the last write with `Sync` states that it was durable.
                    silent += usize::from(is_short && !is_last);
                }
            }
        }
        assert!(refused > 200 && silent == 0, "{durability}: {refused} refused, {silent} silent");
    }
}

/// Such files used to be refused as damaged: the boot id says that no power was lost, but the
/// snapshot lacks some of the pages that the kernel had not written back.
#[test]
fn a_snapshot_of_a_volume_opens_on_its_own_machine_if_the_caller_says_so() {
    let (options, storage) = in_memory();
    let db = options.open(DIR).unwrap();
    let count = 100u32;
    for number in 0..count {
        if number == count / 2 {
            db.sync().unwrap();
        }
        db.put(number.to_be_bytes(), [7; 300]).unwrap();
    }
    let point = storage.crash_point();
    let (mut refused, mut opened) = (0, 0);
    for seed in 0..40 {
        let snapshot = Crash::Snapshot(Survival { percent: 90, seed });
        let image = point.image(snapshot);
        if let Err(error) = with(&options, &point.image(snapshot)).open(DIR) {
            assert!(error.to_string().contains("after_power_loss"), "{error}");
            if refused == 0 {
                let reading = with(&options, &image).open_read_only(DIR).unwrap_err();
                assert_eq!(reading.to_string(), error.to_string());
            }
            refused += 1;
        }
        let reading = with(&options, &image).after_power_loss().open_read_only(DIR).unwrap();
        let found = numbers(&reading.keyspace("default", KeyspaceOptions::new()).unwrap());
        assert!(found.len() >= count as usize / 2, "{} writes", found.len());
        assert_eq!(found, (0..found.len() as u32).collect::<Vec<_>>());
        let writing = with(&options, &image).after_power_loss().open(DIR).unwrap();
        writing.put("later", "v").unwrap();
        drop(writing);
        // Recovery has ended the log properly.
        let again = with(&options, &image).open(DIR).unwrap();
        assert_eq!(again.iter().unwrap().count(), found.len() + 1);
        opened += 1;
    }
    assert!(refused > 3 && opened == 40, "{refused} refused, {opened} opened");
}
