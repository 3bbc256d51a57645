//! Tests repair: every kind of damage that opening refuses leaves a database that repair can read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use terrane::inspect::{self, RepairReport};
use terrane::{Db, Durability, ErrorKind, KeyspaceOptions, Options, WriteOptions};

/// Every value that each key ever had, by keyspace.
type History = BTreeMap<(&'static str, String), Vec<String>>;

/// A database on disk: `a` and `b` keys in a table each, `c` keys in the log, and another keyspace
/// with a table and the log. It is not closed, so the log is needed.
struct Original {
    dir: tempfile::TempDir,
    history: History,
}

impl Original {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::new();
        let options = Options::new().log_segment_bytes(64 << 10);
        let db = options.open(dir.path().join("db")).unwrap();
        let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
        let synced = WriteOptions::new().durability(Durability::Sync);
        for prefix in ["a", "b", "c"] {
            for number in 0..40 {
                let (key, value) = (format!("{prefix}{number:02}"), format!("{prefix} {number}"));
                db.put_with(&key, &value, synced).unwrap();
                history.entry(("default", key)).or_default().push(value);
            }
            let value = format!("other {prefix}");
            other.put_with(prefix, &value, synced).unwrap();
            history.entry(("other", prefix.to_owned())).or_default().push(value);
            if prefix != "c" {
                db.flush().unwrap();
            }
        }
        drop(db);
        Self { dir, history }
    }

    fn path(&self) -> PathBuf {
        self.dir.path().join("db")
    }

    fn repair(&self) -> (RepairReport, PathBuf) {
        let target = self.dir.path().join("repaired");
        (inspect::repair(self.path(), &target).unwrap(), target)
    }

    /// Checks that a repaired database is sound, has only values that were written, and has all
    /// entries for which `is_kept` holds. Without a manifest a keyspace loses its name.
    fn check(&self, target: &Path, what: &str, is_kept: impl Fn(&str, &str) -> bool) {
        let found = inspect::verify(target, &mut |_| {}).unwrap();
        assert!(found.problems.is_empty(), "{what}: {:?}", found.problems);
        let db = Db::open(target).unwrap();
        let mut entries = BTreeMap::new();
        for name in db.keyspaces() {
            let keyspace = db.keyspace(&name, KeyspaceOptions::new()).unwrap();
            let known = if name == "default" { "default" } else { "other" };
            for entry in keyspace.iter().unwrap() {
                let (key, value) = entry.unwrap();
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                entries.insert((known, text(&key)), text(&value));
            }
        }
        for (key, value) in &entries {
            let written = self.history.get(key);
            assert!(written.is_some_and(|all| all.contains(value)), "{what}: {key:?} {value}");
        }
        for (keyspace, key) in self.history.keys().filter(|(space, key)| is_kept(space, key)) {
            assert!(entries.contains_key(&(*keyspace, key.clone())), "{what}: {keyspace} {key}");
        }
    }
}

fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.to_str().unwrap().contains(ending)).collect();
    files.sort();
    files
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

/// The table that holds a key of the default keyspace.
fn table_of(dir: &Path, key: &str) -> PathBuf {
    let holds = |path: &PathBuf| {
        inspect::table(path).unwrap().iter().any(|entry| entry.unwrap().key == key.as_bytes())
    };
    files(dir, ".sst").into_iter().find(holds).unwrap()
}

/// Returns the lengths of a manifest at which its frames end; each frame is followed by its copy.
fn frame_ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = vec![0];
    while let Some(len) = bytes.get(ends[ends.len() - 1] + 8..).and_then(|rest| rest.first_chunk())
    {
        ends.push(ends[ends.len() - 1] + 16 + u32::from_le_bytes(*len) as usize);
    }
    ends
}

struct Damage {
    name: &'static str,
    /// Damages the database and returns the name of the file that the refusal must mention.
    damage: fn(&Path) -> String,
    is_kept: fn(&str, &str) -> bool,
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

fn all(_: &str, _: &str) -> bool {
    true
}

fn damage(
    name: &'static str,
    damage: fn(&Path) -> String,
    is_kept: fn(&str, &str) -> bool,
) -> Damage {
    Damage { name, damage, is_kept }
}

fn damaged_pointers() -> Vec<Damage> {
    vec![
        damage(
            "missing CURRENT",
            |dir| {
                fs::remove_file(dir.join("CURRENT")).unwrap();
                "CURRENT".into()
            },
            all,
        ),
        damage(
            "damaged CURRENT",
            |dir| {
                fs::write(dir.join("CURRENT"), "MANIFEST").unwrap();
                "CURRENT".into()
            },
            all,
        ),
        damage(
            "missing manifest",
            |dir| {
                files(dir, "MANIFEST-").iter().for_each(|path| fs::remove_file(path).unwrap());
                "CURRENT".into()
            },
            all,
        ),
    ]
}

fn damaged_manifests() -> Vec<Damage> {
    vec![
        damage(
            "damaged snapshot in the manifest",
            |dir| {
                let path = files(dir, "MANIFEST-").pop().unwrap();
                let ends = frame_ends(&fs::read(&path).unwrap());
                edit(&path, |bytes| bytes[..ends[2]].iter_mut().for_each(|byte| *byte ^= 1));
                file_name(&path)
            },
            all,
        ),
        damage(
            "damaged edit in the middle of the manifest",
            |dir| {
                let path = files(dir, "MANIFEST-").pop().unwrap();
                let ends = frame_ends(&fs::read(&path).unwrap());
                edit(&path, |bytes| {
                    bytes[ends[2]..ends[4]].iter_mut().for_each(|byte| *byte ^= 1);
                });
                file_name(&path)
            },
            all,
        ),
        damage(
            "lost edits",
            |dir| {
                let path = files(dir, "MANIFEST-").pop().unwrap();
                let ends = frame_ends(&fs::read(&path).unwrap());
                edit(&path, |bytes| bytes.truncate(ends[ends.len() - 3]));
                "manifest".into()
            },
            all,
        ),
        damage(
            "all edits lost but the snapshot",
            |dir| {
                let path = files(dir, "MANIFEST-").pop().unwrap();
                let ends = frame_ends(&fs::read(&path).unwrap());
                edit(&path, |bytes| bytes.truncate(ends[2]));
                "manifest".into()
            },
            all,
        ),
    ]
}

fn damaged_tables() -> Vec<Damage> {
    vec![
        damage(
            "missing table",
            |dir| {
                let path = table_of(dir, "a05");
                fs::remove_file(&path).unwrap();
                file_name(&path)
            },
            |space, key| space == "other" || !key.starts_with('a'),
        ),
        damage(
            "table that was cut",
            |dir| {
                let path = table_of(dir, "b05");
                edit(&path, |bytes| bytes.truncate(bytes.len() / 2));
                file_name(&path)
            },
            |space, key| space == "other" || !key.starts_with('b'),
        ),
        damage(
            "table with bytes after its end",
            |dir| {
                let path = table_of(dir, "b05");
                edit(&path, |bytes| bytes.push(0));
                file_name(&path)
            },
            |space, key| space == "other" || !key.starts_with('b'),
        ),
    ]
}

fn damaged_logs() -> Vec<Damage> {
    vec![
        damage(
            "damaged log record before synced ones",
            |dir| {
                let path = files(dir, ".log").pop().unwrap();
                edit(&path, |bytes| {
                    let at = bytes.windows(4).position(|key| key == b"c 10").unwrap();
                    bytes[at] ^= 1;
                });
                file_name(&path)
            },
            |space, key| space == "other" || key != "c10",
        ),
        damage(
            "missing log",
            |dir| {
                files(dir, ".log").iter().for_each(|path| fs::remove_file(path).unwrap());
                "log".into()
            },
            |_, key| !key.starts_with('c'),
        ),
        damage(
            "damaged header of the log",
            |dir| {
                for path in files(dir, ".log") {
                    edit(&path, |bytes| bytes[..64].fill(0x55));
                }
                "log".into()
            },
            |_, key| !key.starts_with('c'),
        ),
    ]
}

#[test]
fn every_refused_directory_is_repaired() {
    let all = [damaged_pointers(), damaged_manifests(), damaged_tables(), damaged_logs()];
    for Damage { name, damage, is_kept } in all.into_iter().flatten() {
        let original = Original::new();
        let file = damage(&original.path());
        let error = Db::open(original.path()).expect_err(name);
        assert_eq!(error.kind(), ErrorKind::Corruption, "{name}: {error}");
        let text = error.to_string();
        assert!(text.contains(&file) && text.contains("terrane repair"), "{name}: {text}");
        let found = inspect::verify(original.path(), &mut |_| {}).unwrap();
        let (report, target) = original.repair();
        assert!(!report.problems.is_empty(), "{name}");
        original.check(&target, name, is_kept);
        assert!(!found.problems.is_empty(), "{name}: verify says ok");
    }
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let path = file.unwrap().path();
        fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
    }
}

/// A killed process left a complete record after an incomplete one. The next opening dropped that record
/// and reused its sequence number, but repair used to prefer the dropped record.
#[test]
fn records_that_an_opening_dropped_are_not_salvaged() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let db = Db::open(path("first")).unwrap();
    for key in ["a", "b", "c"] {
        db.put(key, "1").unwrap();
    }
    copy_dir(&path("first"), &path("killed"));
    drop(db);
    edit(&files(&path("killed"), ".log")[0], |bytes| {
        // The record of `a` follows the header. The length and the kind of the next record are zeros
        // until it is complete.
        let len = u32::from_le_bytes(*bytes[512 + 8..].first_chunk().unwrap()) as usize;
        let second = 512 + (24 + len).next_multiple_of(8);
        bytes[second + 8..second + 16].fill(0);
    });
    let db = Db::open(path("killed")).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    assert!(db.get("b").unwrap().is_none() && db.get("c").unwrap().is_none());
    db.put("c", "2").unwrap();
    copy_dir(&path("killed"), &path("killed again"));
    drop(db);
    inspect::repair(path("killed again"), path("repaired")).unwrap();
    let db = Db::open(path("repaired")).unwrap();
    assert_eq!(db.get("a").unwrap().unwrap(), "1");
    assert_eq!(db.get("c").unwrap().unwrap(), "2");
    assert!(db.get("b").unwrap().is_none());
}

/// If a table had another table's name, its entries used to go to the keyspace of that other table.
#[test]
fn tables_under_names_of_others_keep_their_keyspace() {
    let original = Original::new();
    let dir = original.path();
    let (default, other) = (table_of(&dir, "a05"), table_of(&dir, "a"));
    let swap = dir.join("swap");
    fs::rename(&default, &swap).unwrap();
    fs::rename(&other, &default).unwrap();
    fs::rename(&swap, &other).unwrap();
    let (report, target) = original.repair();
    for (path, holds) in [(&default, &other), (&other, &default)] {
        let what = format!("the file holds the table {}", file_name(holds));
        let is_told = report.problems.iter().any(|one| one.path == *path && one.what == what);
        assert!(is_told, "{:?}", report.problems);
    }
    original.check(&target, "swapped tables", |_, _| true);
    let db = Db::open(&target).unwrap();
    assert_eq!(db.get("a").unwrap(), None, "an entry of the other keyspace");
    let found = inspect::verify(&dir, &mut |_| {}).unwrap();
    assert_eq!(found.problems.len(), 2, "{:?}", found.problems);
}

#[test]
fn a_live_table_under_a_new_name_is_found() {
    let original = Original::new();
    let path = table_of(&original.path(), "a05");
    fs::rename(&path, path.with_file_name("99999999-00000000000000ff.sst")).unwrap();
    let (report, target) = original.repair();
    let told: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|one| one.contains("99999999") && one.contains("holds")), "{told:?}");
    original.check(&target, "renamed table", |_, _| true);
}

/// Without the manifest, tables of an unfinished ingest look like those of a committed one.
#[test]
fn an_unfinished_ingest_is_salvaged_only_without_the_manifest() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let options = Options::new().design("leveling; table=16KiB; block=1KiB".parse().unwrap());
    let db = options.open(path("db")).unwrap();
    let synced = WriteOptions::new().durability(Durability::Sync);
    db.put_with("0000", "put", synced).unwrap();
    db.ingest((1000..1100_u32).map(|number| (format!("{number}"), [b'c'; 100]))).unwrap();
    let mut ingest = db.default_keyspace().begin_ingest().unwrap();
    (0..500_u32).for_each(|number| ingest.put(format!("{number:04}"), [b'u'; 100]).unwrap());
    // The directory is not copied at one moment, so nothing may change it meanwhile.
    db.wait_for_compactions().unwrap();
    copy_dir(&path("db"), &path("killed"));
    drop((ingest, db));
    let report = inspect::repair(path("killed"), path("repaired")).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    let db = Db::open(path("repaired")).unwrap();
    assert_eq!(db.get("0000").unwrap().unwrap(), "put");
    assert_eq!(db.iter().unwrap().count(), 101);
    for ending in ["CURRENT", "MANIFEST-"] {
        files(&path("killed"), ending).iter().for_each(|file| fs::remove_file(file).unwrap());
    }
    let report = inspect::repair(path("killed"), path("salvaged")).unwrap();
    let told: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    let is_told = |what: &str| told.iter().any(|one| one.contains(what));
    assert!(is_told("tables of ingests are used") && is_told(".sst"), "{told:?}");
    let db = Db::open(path("salvaged")).unwrap();
    // The committed ingest is complete. The other one has the tables that were complete.
    assert_eq!(db.range("1000"..).unwrap().count(), 100);
    assert_eq!(db.get("0000").unwrap().unwrap(), [b'u'; 100]);
    let unfinished = db.range(.."1000").unwrap().count();
    assert!((100..500).contains(&unfinished), "{unfinished}");
}

/// A table that was compacted away would bring back old values.
#[test]
fn a_table_that_is_not_part_of_the_database_is_not_used() {
    let original = Original::new();
    let (old, live) = (table_of(&original.path(), "a05"), table_of(&original.path(), "b05"));
    let saved = original.dir.path().join("saved");
    fs::copy(&old, &saved).unwrap();
    let db = Db::open(original.path()).unwrap();
    db.delete_range("a".."b").unwrap();
    db.compact_range(..).unwrap();
    db.close().unwrap();
    assert!(!old.exists() && !live.exists());
    let live = table_of(&original.path(), "b05");
    fs::copy(&saved, &live).unwrap();
    let (report, target) = original.repair();
    let told: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
    assert!(told.iter().any(|one| one.contains("not part of the database")), "{told:?}");
    let db = Db::open(target).unwrap();
    assert_eq!(db.get("a05").unwrap(), None);
}

#[test]
fn repair_says_which_ranges_of_keys_were_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("db");
    let options = Options::new().design("leveling; buffer=16MiB; block=1KiB".parse().unwrap());
    let db = options.open(&path).unwrap();
    for number in 0..2000 {
        db.put(format!("k{number:04}"), [7; 50]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    db.close().unwrap();
    let table = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let table = table.into_iter().find(|path| path.extension().is_some_and(|end| end == "sst"));
    let table = table.unwrap();
    let whole = fs::read(&table).unwrap();
    let repair = |name: &str| {
        let mut done = Vec::new();
        let target = dir.path().join(name);
        let report = inspect::repair_with_progress(&path, &target, &mut |progress| {
            done.push((progress.done_bytes, progress.total_bytes));
        });
        (report.unwrap(), Db::open(target).unwrap(), done)
    };
    let mut damaged = whole.clone();
    damaged[20_000] ^= 1;
    fs::write(&table, &damaged).unwrap();
    let (report, repaired, _) = repair("block");
    assert_eq!(report.lost.len(), 1, "{:?}", report.lost);
    let lost = &report.lost[0];
    assert_eq!((lost.keyspace.as_str(), &lost.path), ("default", &table));
    let last = lost.last.clone().unwrap();
    let is_lost = |key: &String| *key.as_bytes() > *lost.first && *key.as_bytes() < *last;
    let keys: Vec<String> = (0..2000).map(|number| format!("k{number:04}")).collect();
    for key in &keys {
        assert_eq!(repaired.get(key).unwrap().is_none(), is_lost(key), "{key} of {lost:?}");
    }
    assert!(keys.iter().filter(|key| is_lost(key)).count() > 5);
    // A table that cannot be opened is lost as a whole.
    fs::write(&table, &whole[..whole.len() - 100]).unwrap();
    let (report, repaired, _) = repair("table");
    assert_eq!(report.lost.len(), 1, "{:?}", report.lost);
    assert_eq!(report.lost[0].first, b"k0000");
    assert_eq!(report.lost[0].last.as_deref(), Some(&b"k1999"[..]));
    assert_eq!(repaired.iter().unwrap().count(), 0);
    fs::write(&table, &whole).unwrap();
    assert!(repair("whole").0.lost.is_empty());
}
