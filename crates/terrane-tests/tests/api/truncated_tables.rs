//! Files that are damaged while the database is open: every read ends in a typed error or in the
//! right answer, and never in a signal.

#![allow(clippy::disallowed_types, reason = "another program truncates the files")]

use std::fs::OpenOptions;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane::storage::{Fault, FaultStorage, MemoryStorage, Operation};
use terrane::{Background, Db, ErrorKind, Options, ReadMode};

use crate::support::{DIR, small_design};

const KEYS: u32 = 2000;

fn open(dir: &Path, mode: ReadMode) -> Db {
    // The pool is too small for the tables, so reads go to the files.
    let options = Options::new().memory_budget(1 << 20).background(Background::Inline);
    options.read_mode(mode).design(small_design()).open(dir).unwrap()
}

fn tables(dir: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "sst")).collect()
}

/// Reading a mapped table that another program had truncated ended the process with SIGBUS.
#[test]
fn a_table_truncated_while_it_is_open_is_an_error() {
    for mode in [ReadMode::Cached, ReadMode::Direct] {
        let dir = tempfile::tempdir().unwrap();
        let db = open(dir.path(), mode);
        for number in 0..KEYS {
            db.put(number.to_be_bytes(), [number as u8; 500]).unwrap();
        }
        db.flush().unwrap();
        assert_eq!(db.iter().unwrap().map(Result::unwrap).count(), KEYS as usize);
        for path in tables(dir.path()) {
            OpenOptions::new().write(true).open(path).unwrap().set_len(10).unwrap();
        }
        let mut errors = 0;
        for number in 0..KEYS {
            match db.get(number.to_be_bytes()) {
                Ok(value) => assert_eq!(value.unwrap(), [number as u8; 500]),
                Err(error) => {
                    let kind = error.kind();
                    assert!(matches!(kind, ErrorKind::Io | ErrorKind::Corruption), "{error}");
                    assert!(error.to_string().contains(".sst"), "{error}");
                    errors += 1;
                }
            }
        }
        assert!(errors > KEYS / 2, "{errors}");
        assert!(db.iter().unwrap().any(|entry| entry.is_err()));
        assert!(db.multi_get((0..KEYS).map(u32::to_be_bytes)).is_err());
    }
}

#[test]
fn a_disk_that_fails_to_read_is_an_error_until_it_reads_again() {
    for mode in [ReadMode::Cached, ReadMode::Direct] {
        let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
        let options = Options::new().storage(Arc::new(storage.clone()));
        let options = options.memory_budget(1 << 20).background(Background::Inline);
        let db = options.read_mode(mode).design(small_design()).open(DIR).unwrap();
        for number in 0..KEYS {
            db.put(number.to_be_bytes(), [number as u8; 500]).unwrap();
        }
        db.flush().unwrap();
        let read = |number: u32| db.get(number.to_be_bytes());
        (0..KEYS).for_each(|number| assert!(read(number).unwrap().is_some()));
        storage.set(Some(Fault {
            operation: Some(Operation::Read),
            path_contains: ".sst".into(),
            after: 0,
            is_permanent: true,
            error: io::ErrorKind::Other,
        }));
        let failed = (0..KEYS).filter_map(|number| read(number).err()).collect::<Vec<_>>();
        assert!(failed.len() > KEYS as usize / 4, "{}", failed.len());
        failed.iter().for_each(|error| assert_eq!(error.kind(), ErrorKind::Io, "{error}"));
        storage.set(None);
        for number in 0..KEYS {
            assert_eq!(read(number).unwrap().unwrap(), [number as u8; 500]);
        }
    }
}
