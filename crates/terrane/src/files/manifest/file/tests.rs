//! Manifest files: written, damaged, cut, crashed.

use super::*;
use crate::base::error::ErrorKind;
use crate::base::error::tests::expecting_internal;
use crate::files::manifest::{Change, Edit, load, remove_interrupted_creation};
use crate::files::storage::{Crash, Fault, FaultStorage, MemoryStorage, Operation, Survival};

const DIR: &str = ".";

fn versioned(version: u64) -> Versioned {
    let changes =
        vec![Change::Option { name: "n".into(), value: "v".repeat(version as usize * 3) }];
    Versioned { version, bytes: Edit { version, epoch: 1, changes }.encode() }
}

/// The length of an edit with its copy.
fn frames_bytes(version: u64) -> u64 {
    2 * (FRAME_HEADER_BYTES + versioned(version).bytes.len()) as u64
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
fn edits_are_read_back_and_replaced_by_snapshots() {
    let storage = written(4);
    assert_eq!(versions(&storage).unwrap(), [1, 2, 3, 4]);
    let mut manifest = FileManifest::new(Arc::new(storage.clone()), Path::new(DIR), 4).unwrap();
    assert!(expecting_internal(|| manifest.keep(&versioned(5))).is_err());
    manifest.rewrite(&versioned(4)).unwrap();
    assert_eq!(manifest.keep(&versioned(4)).unwrap(), PutResult::VersionExists);
    manifest.keep(&versioned(5)).unwrap();
    assert_eq!(versions(&storage).unwrap(), [4, 5]);
    assert_eq!(storage.list(Path::new(DIR)).unwrap(), ["CURRENT", "MANIFEST-000002"]);
    assert_eq!(manifest.sizes(), Some((frames_bytes(5), frames_bytes(4))));
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
    let (second, third) = (frames_bytes(1) as usize, frames_bytes(1) + frames_bytes(2));
    let copy = second + frames_bytes(2) as usize / 2;
    assert!(third < bytes.len() as u64);
    bytes[second + 17] ^= 1;
    bytes[copy + 17] ^= 1;
    storage.overwrite(&path, &bytes).unwrap();
    assert_eq!(versions(&storage).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn crashes_keep_every_edit_that_was_kept() {
    let storage = MemoryStorage::new(1);
    storage.track_crash_points();
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
    assert!(expecting_internal(|| manifest.keep(&versioned(3))).is_err());
    manifest.rewrite(&versioned(2)).unwrap();
    manifest.keep(&versioned(3)).unwrap();
    assert_eq!(versions(&storage).unwrap(), [2, 3]);
}

/// A file with the number 2^64 - 1 made the next number 0, and `CURRENT` no longer named a
/// manifest.
#[test]
fn numbers_of_files_from_elsewhere_are_not_used() {
    let storage = written(2);
    let mut numbers = Vec::new();
    let mut manifest = FileManifest::new(Arc::new(storage.clone()), Path::new(DIR), 2).unwrap();
    for (version, stray) in [(3, 2), (4, 4), (5, 6)] {
        for stray in [stray, u64::MAX - 1, u64::MAX] {
            let path = Path::new(DIR).join(manifest_file_name(stray));
            storage.create(&path, Access::Buffered).unwrap();
        }
        manifest.rewrite(&versioned(version)).unwrap();
        numbers.push(read_pointer(&storage, Path::new(DIR)).unwrap().unwrap());
        assert_eq!(versions(&storage).unwrap(), [version]);
        assert_eq!(storage.list(Path::new(DIR)).unwrap().len(), 2);
    }
    assert_eq!(numbers, [3, 5, 7]);
    // An earlier version may have used the highest number.
    let highest = manifest_file_name(u64::MAX);
    storage.create(&Path::new(DIR).join(&highest), Access::Buffered).unwrap();
    storage.overwrite(&Path::new(DIR).join(CURRENT), format!("{highest}\n").as_bytes()).unwrap();
    let mut manifest = FileManifest::new(Arc::new(storage.clone()), Path::new(DIR), 5).unwrap();
    manifest.rewrite(&versioned(6)).unwrap();
    assert_eq!(versions(&storage).unwrap(), [6]);
}

#[test]
fn a_failed_rewrite_leaves_no_files() {
    let storage = written(2);
    let before = storage.list(Path::new(DIR)).unwrap();
    let faults = FaultStorage::new(Arc::new(storage.clone()));
    let mut manifest = FileManifest::new(Arc::new(faults.clone()), Path::new(DIR), 2).unwrap();
    for operation in [Operation::Create, Operation::Append, Operation::Sync, Operation::SyncDir] {
        for after in 0..2 {
            faults.set(Some(Fault {
                operation: Some(operation),
                path_contains: String::new(),
                after,
                is_permanent: false,
                error: std::io::ErrorKind::StorageFull,
            }));
            let failed = manifest.rewrite(&versioned(3));
            // The second sync of the directory follows the rename, which is not undone.
            if (operation, after) == (Operation::SyncDir, 1) {
                assert!(failed.is_err() && versions(&storage).unwrap() == [3]);
                continue;
            }
            assert!(failed.is_err(), "{operation:?} {after}");
            assert_eq!(storage.list(Path::new(DIR)).unwrap(), before, "{operation:?} {after}");
            assert_eq!(versions(&storage).unwrap(), [1, 2]);
        }
    }
}

fn lost_pointer(storage: &MemoryStorage) -> Result<LoadedManifest> {
    storage.remove(&Path::new(DIR).join(CURRENT)).unwrap();
    load(storage, Path::new(DIR))
}

#[test]
fn manifests_of_an_interrupted_creation_are_no_database() {
    let storage = written(1);
    let whole = storage.read(&Path::new(DIR).join(manifest_file_name(1))).unwrap();
    let first = Path::new(DIR).join(manifest_file_name(1));
    assert!(lost_pointer(&storage).unwrap().edits.is_empty());
    for len in 0..whole.len() {
        storage.overwrite(&first, &whole[..len]).unwrap();
        assert!(load(&storage, Path::new(DIR)).unwrap().edits.is_empty(), "{len} bytes");
    }
    for number in [2, 9, u64::MAX] {
        let path = Path::new(DIR).join(manifest_file_name(number));
        let mut bytes = Vec::new();
        put_frame(&mut bytes, number, 0, &versioned(1).bytes).unwrap();
        storage.create(&path, Access::Buffered).unwrap().append(&bytes).unwrap();
    }
    storage.create(&Path::new(DIR).join(CURRENT_NEW), Access::Buffered).unwrap();
    storage.create(&Path::new(DIR).join("notes"), Access::Buffered).unwrap();
    assert!(load(&storage, Path::new(DIR)).unwrap().edits.is_empty());
    remove_interrupted_creation(&storage, Path::new(DIR));
    assert_eq!(storage.list(Path::new(DIR)).unwrap(), ["notes"]);
}

#[test]
fn a_lost_pointer_is_corruption_if_a_file_shows_it() {
    let check = |storage: &MemoryStorage, name: &str| {
        let error = lost_pointer(storage).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        let text = error.to_string();
        assert!(text.contains(&format!("it is missing, but {name} exists")), "{text}");
    };
    for name in ["000001.log", "00000001-0123456789abcdef.sst"] {
        let storage = written(1);
        storage.create(&Path::new(DIR).join(name), Access::Buffered).unwrap();
        check(&storage, name);
    }
    // The log was created before its segment was required.
    let storage = written(1);
    let mut manifest = FileManifest::new(Arc::new(storage.clone()), Path::new(DIR), 1).unwrap();
    manifest.rewrite(&versioned(2)).unwrap();
    let edit = Edit { version: 3, epoch: 1, changes: vec![Change::RequiredSegment(1)] };
    manifest.keep(&Versioned { version: 3, bytes: edit.encode() }).unwrap();
    check(&storage, "MANIFEST-000002");
    // No creation writes a manifest as large as this.
    let storage = written(1);
    let large = Path::new(DIR).join(manifest_file_name(5));
    storage.create(&large, Access::Buffered).unwrap().append(&vec![0; 2 << 20]).unwrap();
    check(&storage, "MANIFEST-000005");
}
