//! Reads of several blocks from a disk at once, by batches of gets, gets of several runs, and scans.

use std::collections::BTreeMap;
use std::path::Path;

use terrane::{Db, ErrorKind, Options, ReadMode};
use terrane_testkit::Rng;

use crate::support::{tiny, value};

type Model = BTreeMap<String, String>;

fn key(number: u32) -> String {
    format!("{number:04}")
}

/// Writes several runs, and returns what they contain.
fn write(dir: &Path, design: &str) -> Model {
    let (mut model, mut rng) = (Model::new(), Rng::new(3));
    let db = Options::new().design(tiny(design)).open(dir).unwrap();
    for round in 0..8 {
        for _ in 0..200 {
            let number = rng.below(1000) as u32;
            if rng.percent(10) {
                db.delete(key(number)).unwrap();
                model.remove(&key(number));
            } else {
                db.put(key(number), value(number, round)).unwrap();
                model.insert(key(number), value(number, round));
            }
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    model
}

/// Reads in random ways. The first reads of an opening find nothing in memory.
fn check(db: &Db, model: &Model, seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..20 {
        let keys: Vec<String> = (0..100).map(|_| key(rng.below(1000) as u32)).collect();
        let expected: Vec<_> = keys.iter().map(|key| model.get(key)).collect();
        let found = db.multi_get(&keys).unwrap();
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.as_deref(), expected.map(String::as_bytes));
        }
        let from = key(rng.below(1000) as u32);
        let found = db.get(&from).unwrap();
        assert_eq!(found.as_deref(), model.get(&from).map(String::as_bytes));
        let scanned = db.range(from.clone()..).unwrap().take(20).map(Result::unwrap);
        let expected = model.range(from..).take(20);
        assert!(scanned.map(|(key, value)| (key.to_vec(), value.to_vec())).eq(
            expected.map(|(key, value)| (key.clone().into_bytes(), value.clone().into_bytes()))
        ));
    }
}

#[test]
fn answers_do_not_depend_on_how_blocks_are_read() {
    for design in ["tiering", "leveling", "tiering; values=separate(40,file=16KiB)"] {
        let dir = tempfile::tempdir().unwrap();
        let model = write(dir.path(), design);
        for read_mode in [ReadMode::Cached, ReadMode::Direct] {
            for opening in 0..4 {
                let db = Options::new()
                    .read_mode(read_mode)
                    .read_threads(4)
                    .memory_budget(8 << 20)
                    .open(dir.path())
                    .unwrap();
                std::thread::scope(|scope| {
                    for thread in 0..3 {
                        let (db, model) = (&db, &model);
                        scope.spawn(move || check(db, model, opening * 10 + thread));
                    }
                });
                db.close().unwrap();
            }
        }
    }
}

#[test]
fn a_damaged_value_fails_only_those_who_need_it() {
    let dir = tempfile::tempdir().unwrap();
    let model = write(dir.path(), "leveling; values=separate(40,file=16KiB)");
    let files = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let path = files.filter(|path| path.extension().is_some_and(|it| it == "val")).min().unwrap();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[100..].fill(b'!');
    std::fs::write(&path, bytes).unwrap();
    let db = Options::new().open(dir.path()).unwrap();
    let keys: Vec<&String> = model.keys().collect();
    let mut damaged = 0;
    for keys in keys.chunks(50) {
        match db.multi_get(keys) {
            Ok(found) => {
                for (key, found) in keys.iter().zip(found) {
                    assert_eq!(found.unwrap(), model[*key].as_bytes());
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                damaged += keys.iter().filter(|key| db.get(key).is_err()).count();
            }
        }
    }
    assert!(damaged > 0);
    drop(db);
    // A scan reads values ahead, and ends where it comes to one that is damaged.
    for start in (0..keys.len()).step_by(11) {
        let db = Options::new().open(dir.path()).unwrap();
        let scanned = db.range(keys[start].clone()..).unwrap().take(40);
        let found: Vec<_> = scanned.map_while(Result::ok).collect();
        let is_whole = |key: &&&String| db.get(key).is_ok();
        let whole = keys[start..].iter().take(40).take_while(is_whole).count();
        assert_eq!(found.len(), whole, "from {}", keys[start]);
        for (key, (found, value)) in keys[start..].iter().zip(&found) {
            assert_eq!((&found[..], &value[..]), (key.as_bytes(), model[*key].as_bytes()));
        }
    }
}
