//! Checkpoints of databases that are open for reading, such as those on a read-only file system.

use std::io::{self, ErrorKind as IoErrorKind};
use std::path::Path;
use std::sync::Arc;

use terrane::storage::{Access, Appender, Crash, Lock, MemoryStorage, Segment, Storage};
use terrane::{Background, Db, Durability, ErrorKind, KeyspaceOptions, Options};

use crate::support::{DIR, fill, in_memory, pairs, small_design};

/// Files in memory that refuse every change outside of the directory `copy`, as a read-only file system does.
#[derive(Debug, Clone)]
struct ReadOnlyStorage {
    inner: MemoryStorage,
}

/// Fails for paths that are not those of the copy.
fn writable(path: &Path) -> io::Result<()> {
    if path.starts_with("copy") { Ok(()) } else { Err(IoErrorKind::ReadOnlyFilesystem.into()) }
}

impl Storage for ReadOnlyStorage {
    terrane_tests::forward_storage! { list len open boot_id entropy }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        writable(dir).and_then(|()| self.inner.create_dir_all(dir))
    }

    fn create(&self, path: &Path, access: Access) -> io::Result<Box<dyn Appender>> {
        writable(path).and_then(|()| self.inner.create(path, access))
    }

    fn create_segment(&self, path: &Path, len: u64) -> io::Result<Box<dyn Segment>> {
        writable(path).and_then(|()| self.inner.create_segment(path, len))
    }

    fn open_segment(&self, path: &Path) -> io::Result<Box<dyn Segment>> {
        writable(path).and_then(|()| self.inner.open_segment(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        writable(from).and_then(|()| self.inner.rename(from, to))
    }

    fn hard_link(&self, _: &Path, _: &Path) -> io::Result<()> {
        Err(IoErrorKind::CrossesDevices.into())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        writable(path).and_then(|()| self.inner.remove(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let is_of_copy = dir == Path::new("") || dir == Path::new(".") || dir.starts_with("copy");
        if is_of_copy { self.inner.sync_dir(dir) } else { writable(dir) }
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Lock>> {
        writable(path).and_then(|()| self.inner.lock(path))
    }
}

#[test]
fn a_database_on_a_read_only_file_system_is_copied_with_what_is_only_in_its_log() {
    for design in [small_design(), "leveling; values=separate(64); buffer=64KiB".parse().unwrap()] {
        let (options, storage) = in_memory();
        let options: Options = options.log_segment_bytes(64 << 10);
        let db = options.clone().design(design).open(DIR).unwrap();
        let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
        fill(&db, 300, 0);
        db.flush().unwrap();
        // More than one segment, so that the copy has a chain.
        for number in 0..1500u32 {
            db.put(number.to_be_bytes(), [3; 100]).unwrap();
        }
        other.put("k", "only in the log").unwrap();
        db.delete_range("050".."100").unwrap();
        let before = pairs(db.iter().unwrap());
        // The process dies.
        let image = storage.crash_point().image(Crash::Process);
        let files = image.list(Path::new(DIR)).unwrap();
        let frozen = ReadOnlyStorage { inner: image.clone() };
        let options = options.storage(Arc::new(frozen));
        let refused = options.clone().open(DIR).unwrap_err();
        assert!(
            matches!(&refused, terrane::Error::Io(failure)
            if failure.source.kind() == IoErrorKind::ReadOnlyFilesystem),
            "{refused}"
        );
        let reader = options.open_read_only(DIR).unwrap();
        reader.checkpoint("copy").unwrap();
        assert_eq!(image.list(Path::new(DIR)).unwrap(), files);
        let copy = Options::new()
            .storage(Arc::new(image))
            .background(Background::Inline)
            .open("copy")
            .unwrap();
        assert_eq!(pairs(copy.iter().unwrap()), before);
        assert_eq!(pairs(reader.iter().unwrap()), before);
        let other = copy.keyspace("other", KeyspaceOptions::new()).unwrap();
        assert_eq!(other.get("k").unwrap().unwrap(), "only in the log");
        copy.put("new", "1").unwrap();
        copy.close().unwrap();
    }
}

/// A reader that has been open for long, beside a writer.
#[test]
fn a_copy_of_what_a_reader_sees_is_whole_or_fails_if_a_writer_went_on() {
    let dir = tempfile::tempdir().unwrap();
    let (source, copy) = (dir.path().join("db"), dir.path().join("copy"));
    let options = Options::new().log_segment_bytes(64 << 10).log_bytes_max(1 << 20);
    let db = options.design(small_design()).background(Background::Inline).open(&source).unwrap();
    fill(&db, 100, 0);
    let reader = Db::open_read_only(&source).unwrap();
    // The writer appends to the log that the reader has replayed.
    db.put_with("later", "1", terrane::WriteOptions::new().durability(Durability::Sync)).unwrap();
    reader.checkpoint(&copy).unwrap();
    let seen = Db::open(&copy).unwrap();
    assert_eq!(pairs(seen.iter().unwrap()), pairs(reader.iter().unwrap()));
    assert!(seen.get("later").unwrap().is_none());
    seen.close().unwrap();
    // The writer reuses the log, and replaces all tables.
    for number in 0..20_000u32 {
        db.put(number.to_be_bytes(), [2; 100]).unwrap();
    }
    db.compact_range(..).unwrap();
    let target = dir.path().join("late");
    let error = reader.checkpoint(&target).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    let left: Vec<_> = std::fs::read_dir(&target).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    // A new reader sees, and copies, the present state.
    let reader = Db::open_read_only(&source).unwrap();
    reader.checkpoint(&target).unwrap();
    assert_eq!(Db::open(&target).unwrap().iter().unwrap().count(), 20_101);
}

#[test]
fn a_closed_reader_makes_no_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("db");
    Db::open(&source).unwrap().close().unwrap();
    let reader = Db::open_read_only(&source).unwrap();
    reader.clone().close().unwrap();
    let error = reader.checkpoint(dir.path().join("copy")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed);
    assert!(!dir.path().join("copy").exists());
}
