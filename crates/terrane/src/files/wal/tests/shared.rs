//! Logs that a writer changes while they are read. The callback of the replay plays the writer.

use std::path::{Path, PathBuf};

use super::{DATABASE, DIR, Log};
use crate::base::error::{ErrorKind, Result};
use crate::base::types::Lsn;
use crate::files::storage::{MemoryStorage, Storage};
use crate::files::wal::format::{HEADER_BYTES, record_bytes};
use crate::files::wal::{Ending, Recovery, segment_file_number};

/// A log with ten batches in its first segment and ten in its second, unless they share one.
struct Fixture {
    storage: MemoryStorage,
    files: Vec<PathBuf>,
    /// The offset of each of the first ten batches in the first file, and of their end.
    offsets: Vec<usize>,
}

fn fixture(has_two_segments: bool) -> Fixture {
    let storage = MemoryStorage::new(1);
    let mut log = Log::open(&storage, 1 << 20).unwrap();
    let mut offsets = vec![HEADER_BYTES as usize];
    for seq in 1..=20 {
        if seq == 11 && has_two_segments {
            log.writer.end_segment(Ending::Aged).unwrap();
        }
        let end = log.writer.append(seq, &[format!("batch {seq:03}").as_bytes()], false).unwrap();
        if seq <= 10 {
            offsets.push(HEADER_BYTES as usize + end.0 as usize);
        }
    }
    let names = storage.list(Path::new(DIR)).unwrap().into_iter();
    let logs = names.filter(|name| segment_file_number(name).is_some());
    let files = logs.map(|name| Path::new(DIR).join(name)).collect();
    Fixture { storage, files, offsets }
}

impl Fixture {
    /// Changes the bytes of a file from `offset` on. Returns the original contents.
    fn damage(&self, file: usize, offset: usize, bytes: &[u8]) -> Vec<u8> {
        let good = self.storage.read(&self.files[file]).unwrap();
        let mut bad = good.clone();
        bad[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.storage.overwrite(&self.files[file], &bad).unwrap();
        good
    }

    /// Reads the log. The writer acts after the first batch was read. Returns the number of
    /// batches.
    fn read(&self, mut writer: impl FnMut()) -> Result<u64> {
        let dir = Path::new(DIR);
        let recovery = Recovery::open_shared(&self.storage, dir, DATABASE, Lsn(0))?;
        let boot = self.storage.boot_id();
        let replayed = recovery.replay(&self.storage, boot, dir, Lsn(0), 0, |_| {
            writer();
            Ok(())
        })?;
        Ok(replayed.batches)
    }

    fn assert_corrupt(&self, writer: impl FnMut(), text: &str) {
        let error = self.read(writer).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(text), "{error}");
    }
}

#[test]
fn a_record_that_is_being_written_is_read_again() {
    let log = fixture(false);
    assert_eq!(log.read(|| ()).unwrap(), 20);
    let torn = log.damage(0, log.offsets[5] + 26, b"????");
    log.assert_corrupt(|| (), "a record is damaged, but 14 later ones are intact");
    assert_eq!(log.read(|| log.storage.overwrite(&log.files[0], &torn).unwrap()).unwrap(), 20);
    // A crash left the last record incomplete.
    let last = log.damage(0, log.offsets[10] + 20, &[0; 10 * 40]);
    assert_eq!(log.read(|| ()).unwrap(), 10);
    log.storage.overwrite(&log.files[0], &last).unwrap();
}

#[test]
fn the_log_may_continue_in_a_segment_that_was_begun_later() {
    let log = fixture(true);
    assert_eq!(log.read(|| ()).unwrap(), 20);
    let (newest, hidden) = (&log.files[1], Path::new("hidden"));
    log.storage.rename(newest, hidden).unwrap();
    log.assert_corrupt(|| (), "segment 2 is missing");
    let mut appears = || {
        let _ = log.storage.rename(hidden, newest);
    };
    assert_eq!(log.read(&mut appears).unwrap(), 10);
}

#[test]
fn the_end_of_a_segment_may_be_written_after_the_next_header() {
    let log = fixture(true);
    let continued = vec![0; record_bytes(0)];
    let whole = log.damage(0, log.offsets[10], &continued);
    log.assert_corrupt(|| (), "later ones are intact");
    assert_eq!(log.read(|| log.storage.overwrite(&log.files[0], &whole).unwrap()).unwrap(), 20);
    // A crash came after the header.
    log.damage(0, log.offsets[10], &continued);
    log.damage(1, HEADER_BYTES as usize, &[0; 10 * 40]);
    assert_eq!(log.read(|| ()).unwrap(), 10);
}

#[test]
fn a_segment_that_is_reused_while_it_is_read_does_not_end_the_log() {
    let log = fixture(false);
    log.damage(0, log.offsets[5], &[0; 15 * 40]);
    assert_eq!(log.read(|| ()).unwrap(), 5);
    let reuse = || drop(log.damage(0, 0, &[0; HEADER_BYTES as usize]));
    log.assert_corrupt(reuse, "replaced segment 1");
}

#[test]
fn a_file_that_is_gone_or_not_begun_is_no_part_of_the_log() {
    let log = fixture(true);
    log.storage.create_segment(&Path::new(DIR).join("000099.log"), 4096).unwrap();
    assert_eq!(log.read(|| ()).unwrap(), 20);
    log.storage.remove(&log.files[0]).unwrap();
    log.assert_corrupt(|| (), "the log begins at position");
}
