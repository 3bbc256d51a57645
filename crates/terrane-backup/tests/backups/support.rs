//! Databases, and comparisons of them.

use std::collections::BTreeMap;
use std::path::Path;

use terrane::{Db, Design, KeyspaceOptions, Options};
use terrane_backup::{
    CreateOptions, Created, Memory, Repository, RestoreOptions, Which, create, restore,
};

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A design with many small files, and with large separated values.
pub(crate) fn small_design() -> Design {
    "balanced L0=2 base=64KiB; buffer=32KiB; table=32KiB; block=512; values=separate(256,file=32KiB)"
        .parse()
        .unwrap()
}

pub(crate) fn open(dir: &Path) -> Db {
    Options::new().design(small_design()).log_segment_bytes(64 << 10).open(dir).unwrap()
}

/// Writes keys of a range with values of both sizes, to two keyspaces.
pub(crate) fn fill(db: &Db, keys: std::ops::Range<u32>, round: u32) {
    let other = db.keyspace("other", KeyspaceOptions::new().design(small_design())).unwrap();
    for key in keys {
        // Values that do not compress.
        let mut rng = terrane_testkit::Rng::new(u64::from(key) << 32 | u64::from(round));
        let words = if key % 8 == 0 { 64 } else { 8 };
        let value: Vec<u8> = (0..words).flat_map(|_| rng.bits().to_be_bytes()).collect();
        db.put(key.to_be_bytes(), &value).unwrap();
        other.put(key.to_be_bytes(), round.to_be_bytes()).unwrap();
    }
}

/// Returns the entries of both keyspaces.
pub(crate) fn contents(db: &Db) -> [Model; 2] {
    let all = |iter: terrane::Iter| {
        iter.map(Result::unwrap).map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
    };
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    [all(db.iter().unwrap()), all(other.iter().unwrap())]
}

pub(crate) fn back_up(db: &Db, repository: &dyn Repository) -> Created {
    create(db, repository, &CreateOptions::new()).unwrap()
}

/// Restores a backup, and returns the entries of the database.
pub(crate) fn restored(repository: &dyn Repository, which: &Which, dir: &Path) -> [Model; 2] {
    let options = RestoreOptions::new().verify();
    let restored = restore(repository, which, dir, &options).unwrap();
    let verification = restored.verification.unwrap();
    assert!(verification.problems.is_empty(), "{:?}", verification.problems);
    let names = names(dir);
    let is_left = |name: &String| name.ends_with(".part") || name == "RESTORE";
    assert!(!names.iter().any(|name| is_left(name) || name == "CHECKPOINT"), "{names:?}");
    contents(&Options::new().open(dir).unwrap())
}

pub(crate) fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Returns the bytes of all objects.
pub(crate) fn object_bytes(repository: &dyn Repository) -> u64 {
    repository.list("objects/").unwrap().iter().map(|stored| stored.bytes).sum()
}

/// Returns the contents of an object.
pub(crate) fn read(repository: &Memory, name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Read::read_to_end(&mut repository.get(name).unwrap(), &mut bytes).unwrap();
    bytes
}
