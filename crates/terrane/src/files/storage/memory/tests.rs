//! Files, names and directories, and their state after crashes.

use super::*;

/// A power failure after which nothing unsynced survives.
const NOTHING_UNSYNCED: Crash = Crash::Power(Survival { percent: 0, seed: 0 });

/// A storage with the durable directory `db`.
fn with_dir() -> MemoryStorage {
    let storage = MemoryStorage::new(1);
    storage.create_dir_all(Path::new("db")).unwrap();
    storage.sync_dir(Path::new(".")).unwrap();
    storage
}

/// Creates a durable file, whose name is not durable.
fn create(storage: &MemoryStorage, path: &str) {
    let mut file = storage.create(Path::new(path), Access::Buffered).unwrap();
    file.append(path.as_bytes()).unwrap();
    file.sync().unwrap();
}

#[test]
fn unsynced_contents_and_names_are_lost_with_power_and_kept_without_the_process() {
    let storage = with_dir();
    let (dir, path) = (Path::new("db"), Path::new("db/file"));
    let mut file = storage.create(path, Access::Buffered).unwrap();
    file.append(b"synced").unwrap();
    file.sync().unwrap();
    assert!(storage.crash_point().image(NOTHING_UNSYNCED).read(path).is_err());
    storage.sync_dir(dir).unwrap();
    file.append(b" and not").unwrap();
    assert_eq!(storage.crash_point().image(NOTHING_UNSYNCED).read(path).unwrap(), b"synced");
    let alive = storage.crash_point().image(Crash::Process);
    assert_eq!(alive.read(path).unwrap(), b"synced and not");
    assert_eq!(alive.boot_id(), storage.boot_id());
    assert_ne!(storage.crash_point().image(NOTHING_UNSYNCED).boot_id(), storage.boot_id());
}

#[test]
fn renames_happen_wholly_or_not_at_all() {
    let storage = with_dir();
    for name in ["db/old", "db/new"] {
        create(&storage, name);
    }
    storage.sync_dir(Path::new("db")).unwrap();
    storage.rename(Path::new("db/new"), Path::new("db/old")).unwrap();
    let mut seen = [0, 0];
    for seed in 0..20 {
        let crash = Crash::Power(Survival { percent: 50, seed });
        let image = storage.crash_point().image(crash);
        let renamed = image.read(Path::new("db/old")).unwrap() == b"db/new";
        assert_eq!(image.read(Path::new("db/new")).is_err(), renamed);
        seen[usize::from(renamed)] += 1;
    }
    assert!(seen[0] > 0 && seen[1] > 0);
}

#[test]
fn writes_are_torn_between_sectors_only() {
    let storage = with_dir();
    let path = Path::new("db/log");
    let mut segment = storage.create_segment(path, 4096).unwrap();
    storage.sync_dir(Path::new("db")).unwrap();
    segment.write(500, &[1; 2000]).unwrap();
    let mut torn = false;
    for seed in 0..20 {
        let crash = Crash::Power(Survival { percent: 50, seed });
        let data = storage.crash_point().image(crash).read(path).unwrap();
        for sector in data.chunks(crash::SECTOR_BYTES).skip(1).take(3) {
            assert!(sector.iter().all(|byte| *byte == sector[0]));
        }
        torn |= data[512] != data[1024];
    }
    assert!(torn);
}

#[test]
fn files_are_kept_while_named_durably_named_or_open() {
    let storage = with_dir();
    let (dir, path) = (Path::new("db"), Path::new("db/file"));
    let files = || storage.lock_state().nodes.len();
    let mut file = storage.create(path, Access::Buffered).unwrap();
    file.append(b"bytes").unwrap();
    file.sync().unwrap();
    storage.sync_dir(dir).unwrap();
    drop(file);
    let reader = storage.open(path, Access::Buffered).unwrap();
    storage.remove(path).unwrap();
    assert_eq!(files(), 1, "a power failure would bring it back");
    storage.sync_dir(dir).unwrap();
    let mut read = [0; 5];
    reader.read_at(0, &mut read).unwrap();
    assert_eq!((&read, files()), (b"bytes", 1));
    drop(reader);
    storage.sync_dir(dir).unwrap();
    assert_eq!(files(), 0);
}

#[test]
fn files_that_a_rename_replaced_are_gone() {
    let storage = with_dir();
    for number in 0..10 {
        let mut file = storage.create(Path::new("db/new"), Access::Buffered).unwrap();
        file.append(&[number]).unwrap();
        storage.rename(Path::new("db/new"), Path::new("db/current")).unwrap();
        storage.sync_dir(Path::new("db")).unwrap();
    }
    assert!(storage.lock_state().nodes.len() <= 2);
    assert_eq!(storage.read(Path::new("db/current")).unwrap(), [9]);
}

#[test]
fn synced_contents_are_shared_until_the_next_write() {
    let storage = with_dir();
    let path = Path::new("db/file");
    let mut file = storage.create(path, Access::Buffered).unwrap();
    file.append(b"one").unwrap();
    file.sync().unwrap();
    let image = storage.crash_point();
    file.append(b" two").unwrap();
    let synced = image.image(Crash::Process);
    assert_eq!(synced.read(path).unwrap(), b"one");
    assert_eq!(storage.read(path).unwrap(), b"one two");
}

#[test]
fn nothing_is_in_a_directory_that_does_not_exist() {
    use io::ErrorKind::{AlreadyExists, IsADirectory, NotADirectory, NotFound};
    let storage = MemoryStorage::new(1);
    let path = Path::new("a/b/file");
    let kind = |error: io::Error| error.kind();
    assert_eq!(kind(storage.create(path, Access::Buffered).err().unwrap()), NotFound);
    assert_eq!(kind(storage.create_segment(path, 512).err().unwrap()), NotFound);
    assert_eq!(kind(storage.lock(path).unwrap_err()), NotFound);
    assert_eq!(kind(storage.list(Path::new("a")).unwrap_err()), NotFound);
    assert_eq!(kind(storage.sync_dir(Path::new("a")).unwrap_err()), NotFound);
    assert!(storage.list(Path::new("")).unwrap().is_empty());
    assert!(storage.list(Path::new("/")).unwrap().is_empty());
    storage.create_dir_all(Path::new("a/b")).unwrap();
    storage.create_dir_all(Path::new("a/b")).unwrap();
    create(&storage, "a/b/file");
    assert_eq!(kind(storage.hard_link(path, Path::new("c/file")).unwrap_err()), NotFound);
    assert_eq!(kind(storage.rename(path, Path::new("c/file")).unwrap_err()), NotFound);
    assert_eq!(kind(storage.rename(path, Path::new("a/b")).unwrap_err()), IsADirectory);
    assert_eq!(kind(storage.create_dir_all(path).unwrap_err()), NotADirectory);
    assert_eq!(kind(storage.create_dir_all(&path.join("c")).unwrap_err()), NotADirectory);
    assert_eq!(kind(storage.read(Path::new("a/b")).unwrap_err()), IsADirectory);
    let taken = storage.create(Path::new("a/b"), Access::Buffered);
    assert_eq!(kind(taken.err().unwrap()), AlreadyExists);
    // A list of files has no directories.
    assert!(storage.list(Path::new("a")).unwrap().is_empty());
    assert_eq!(storage.list(Path::new("a/b")).unwrap(), ["file"]);
}

#[test]
fn paths_to_one_file_are_one_name() {
    let storage = with_dir();
    create(&storage, "./db/file");
    for same in ["db/file", "db/./file", "./db//file", "db/../db/file", "x/../db/file"] {
        assert!(storage.read(Path::new(same)).is_ok(), "{same}");
    }
    for same in ["db", "./db", "db/", "db/."] {
        assert_eq!(storage.list(Path::new(same)).unwrap(), ["file"], "{same}");
    }
    assert!(storage.read(Path::new("/db/file")).is_err());
    let lock = storage.lock(Path::new("db/LOCK")).unwrap();
    let second = storage.lock(Path::new("./db/LOCK")).unwrap_err();
    assert_eq!(second.kind(), io::ErrorKind::WouldBlock);
    drop(lock);
    storage.lock(Path::new("./db/LOCK")).unwrap();
}

/// Directories used to exist without being created, so no test noticed that the engine did not sync
/// them.
#[test]
fn a_file_is_lost_with_any_of_its_directories() {
    let levels = ["a", "a/b", "a/b/db"];
    for root in ["", "/"] {
        for unsynced in levels {
            let storage = MemoryStorage::new(1);
            let dir = format!("{root}a/b/db");
            storage.create_dir_all(Path::new(&dir)).unwrap();
            let file = format!("{dir}/file");
            create(&storage, &file);
            storage.sync_dir(Path::new(&dir)).unwrap();
            for level in levels.iter().filter(|level| **level != unsynced) {
                let level = PathBuf::from(format!("{root}{level}"));
                storage.sync_dir(level.parent().unwrap()).unwrap();
            }
            let lost = storage.crash_point().image(NOTHING_UNSYNCED);
            assert!(lost.read(Path::new(&file)).is_err(), "{unsynced} in '{root}'");
            let kept = Crash::Power(Survival { percent: 100, seed: 0 });
            assert!(storage.crash_point().image(kept).read(Path::new(&file)).is_ok());
            let parent = PathBuf::from(format!("{root}{unsynced}"));
            storage.sync_dir(parent.parent().unwrap()).unwrap();
            let kept = storage.crash_point().image(NOTHING_UNSYNCED);
            assert_eq!(kept.read(Path::new(&file)).unwrap(), file.as_bytes());
        }
    }
}

#[test]
fn the_free_space_is_the_rest_of_the_capacity() {
    let (storage, dir) = (with_dir(), Path::new("db"));
    assert_eq!(storage.free_bytes(dir), None);
    storage.set_capacity(Some(100));
    drop(storage.create_segment(&dir.join("1"), 70).unwrap());
    assert_eq!(storage.free_bytes(dir), Some(30));
    assert!(storage.create_segment(&dir.join("2"), 31).is_err());
    storage.set_capacity(Some(50));
    assert_eq!(storage.free_bytes(dir), Some(0));
}
