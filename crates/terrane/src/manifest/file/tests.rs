//! Manifest files: written, damaged, cut, crashed.

use super::*;
use crate::error::ErrorKind;
use crate::storage::{Crash, Fault, FaultStorage, MemoryStorage, Operation, Survival};

const DIR: &str = ".";

fn versioned(version: u64) -> Versioned {
    let mut bytes = version.to_le_bytes().to_vec();
    bytes.resize(8 + version as usize * 3, version as u8);
    Versioned { version, bytes }
}

fn written(versions: u64) -> MemoryStorage {
    let storage = MemoryStorage::new(1);
    let mut manifest = FileManifest::new(Arc::new(storage.clone()), Path::new(DIR), 0).unwrap();
    manifest.rewrite(&versioned(1)).unwrap();
    for version in 2..=versions {
        assert_eq!(manifest.keep(&versioned(version)).unwrap(), PutResult::Durable);
    }
    storage
}

fn versions(storage: &dyn Storage) -> Result<Vec<u64>> {
    let loaded = load(storage, Path::new(DIR))?;
    for edit in &loaded.edits {
        assert_eq!(*edit, versioned(edit.version));
    }
    Ok(loaded.edits.iter().map(|edit| edit.version).collect())
}

#[test]
#[cfg_attr(invariants, ignore = "internal errors are panics")]
fn edits_are_read_back_and_replaced_by_snapshots() {
    let storage = written(4);
    assert_eq!(versions(&storage).unwrap(), [1, 2, 3, 4]);
    let mut manifest = FileManifest::new(Arc::new(storage.clone()), Path::new(DIR), 4).unwrap();
    assert!(manifest.keep(&versioned(5)).is_err());
    manifest.rewrite(&versioned(4)).unwrap();
    assert_eq!(manifest.keep(&versioned(4)).unwrap(), PutResult::VersionExists);
    manifest.keep(&versioned(5)).unwrap();
    assert_eq!(versions(&storage).unwrap(), [4, 5]);
    assert_eq!(storage.list(Path::new(DIR)).unwrap(), ["CURRENT", "MANIFEST-000002"]);
    assert_eq!(manifest.sizes(), (2 * (16 + 23), 2 * (16 + 20)));
}

#[test]
fn no_flipped_byte_loses_an_edit() {
    let storage = written(4);
    for name in storage.list(Path::new(DIR)).unwrap() {
        let path = Path::new(DIR).join(name);
        let good = storage.read(&path).unwrap();
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            storage.overwrite(&path, &bad).unwrap();
            match versions(&storage) {
                Ok(read) => assert_eq!(read, [1, 2, 3, 4], "byte {at}"),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
            }
        }
        storage.overwrite(&path, &good).unwrap();
    }
}

#[test]
fn every_cut_leaves_a_prefix_or_an_error() {
    let storage = written(4);
    let path = Path::new(DIR).join(manifest_file_name(1));
    let good = storage.read(&path).unwrap();
    for len in 0..good.len() {
        storage.overwrite(&path, &good[..len]).unwrap();
        if let Ok(read) = versions(&storage) {
            assert_eq!(read, [1, 2, 3, 4][..read.len()]);
        }
    }
}

#[test]
fn two_damaged_frames_in_the_middle_are_reported() {
    let storage = written(3);
    let path = Path::new(DIR).join(manifest_file_name(1));
    let mut bytes = storage.read(&path).unwrap();
    let second = 2 * (16 + 11);
    bytes[second + 17] ^= 1;
    bytes[second + 30 + 17] ^= 1;
    storage.overwrite(&path, &bytes).unwrap();
    assert_eq!(versions(&storage).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn crashes_keep_every_edit_that_was_kept() {
    let storage = MemoryStorage::new(1);
    storage.record_crash_points();
    let mut manifest = FileManifest::new(Arc::new(storage.clone()), Path::new(DIR), 0).unwrap();
    for version in 1..8 {
        if version % 3 == 1 {
            manifest.rewrite(&versioned(version)).unwrap();
        } else {
            manifest.keep(&versioned(version)).unwrap();
        }
        storage.mark(version);
    }
    for point in storage.take_crash_points() {
        for seed in 0..10 {
            for percent in [0, 50, 100] {
                let image = point.image(Crash::Power(Survival { percent, seed }));
                let read = versions(&image)
                    .unwrap_or_else(|error| panic!("{}: {error}", point.operation()));
                let last = read.last().copied().unwrap_or(0);
                assert!(last >= point.mark(), "{}: {read:?}", point.operation());
            }
        }
    }
}

#[test]
#[cfg_attr(invariants, ignore = "internal errors are panics")]
fn nothing_is_appended_after_a_failed_append() {
    let storage = written(2);
    let faults = FaultStorage::new(Arc::new(storage.clone()));
    let mut manifest = FileManifest::new(Arc::new(faults.clone()), Path::new(DIR), 2).unwrap();
    manifest.rewrite(&versioned(2)).unwrap();
    faults.set(Some(Fault {
        operation: Some(Operation::Append),
        path_contains: "MANIFEST".into(),
        after: 0,
        is_permanent: false,
        error: std::io::ErrorKind::StorageFull,
    }));
    assert!(matches!(manifest.keep(&versioned(3)), Err(Error::DiskFull(_))));
    assert!(manifest.keep(&versioned(3)).is_err());
    manifest.rewrite(&versioned(2)).unwrap();
    manifest.keep(&versioned(3)).unwrap();
    assert_eq!(versions(&storage).unwrap(), [2, 3]);
}
