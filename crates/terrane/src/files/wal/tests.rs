//! Tests whole logs: they are written, damaged or left by a crash, and recovered.

mod shared;
mod slices;
mod syncs;
mod torn_writes;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_testkit::{Rng, seed_from_env};

use super::format::HEADER_BYTES;
use super::*;
use crate::base::clock::ManualClock;
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::stats::Counters;
use crate::base::types::{Lsn, SeqNo};
use crate::files::storage::{
    Crash, Fault, FaultStorage, MemoryStorage, Operation, Storage, Survival,
};

const DATABASE: u64 = 42;
const DIR: &str = ".";

/// A log being written, with its written batches.
struct Log {
    writer: LogWriter,
    sync: Arc<LogSync>,
    written: Vec<(SeqNo, Vec<u8>)>,
}

/// Batches of a log with their positions.
type Batches = Vec<(Lsn, SeqNo, Vec<u8>)>;

/// Recovers a log, and checks that a reader alongside an idle writer finds the same.
fn recover(storage: &MemoryStorage, from: Lsn) -> Result<(Batches, Replayed, Recovery)> {
    let recovered = recover_alone(storage, from);
    let mut batches = Vec::new();
    let recovery = Recovery::open_shared(storage, Path::new(DIR), DATABASE, from);
    let shared = recovery.and_then(|recovery| {
        recovery.replay(storage, storage.boot_id(), Path::new(DIR), from, 0, |batch| {
            batches.push((batch.lsn, batch.seq, batch.operations.to_vec()));
            Ok(())
        })
    });
    match (&recovered, &shared) {
        (Ok((alone, replayed, _)), Ok(shared)) => {
            assert_eq!(alone, &batches);
            assert_eq!(replayed.end, shared.end);
            assert_eq!(replayed.dropped_records, shared.dropped_records);
        }
        (Err(alone), Err(shared)) => assert_eq!(alone.to_string(), shared.to_string()),
        (alone, shared) => panic!("{alone:?} {shared:?}"),
    }
    recovered
}

fn recover_alone(storage: &MemoryStorage, from: Lsn) -> Result<(Batches, Replayed, Recovery)> {
    let dir = Path::new(DIR);
    let recovery = Recovery::open(storage, dir, DATABASE)?;
    let again = Recovery::open(storage, dir, DATABASE)?;
    let mut batches = Vec::new();
    let replayed = recovery.replay(storage, storage.boot_id(), dir, from, 0, |batch| {
        batches.push((batch.lsn, batch.seq, batch.operations.to_vec()));
        Ok(())
    })?;
    Ok((batches, replayed, again))
}

impl Log {
    fn open(storage: &MemoryStorage, segment_bytes: u64) -> Result<Self> {
        Self::open_by(storage, Arc::new(storage.clone()), segment_bytes)
    }

    /// Opens the log through `shared`, a wrapper of `storage`.
    fn open_by(
        storage: &MemoryStorage,
        shared: Arc<dyn Storage>,
        segment_bytes: u64,
    ) -> Result<Self> {
        let (batches, replayed, recovery) = recover(storage, Lsn(0))?;
        let counters = Arc::new(Counters::default());
        let environment = LogEnvironment {
            storage: shared,
            clock: Arc::new(ManualClock::new(5)),
            counters: Arc::clone(&counters),
            dir: PathBuf::from(DIR),
            segments: Arc::default(),
            database: DATABASE,
            is_mapped: true,
            lock: None,
        };
        let config = LogConfig {
            segment_bytes,
            reuses_files: true,
            may_be_linked: false,
            retention: None,
            retained_from: None,
        };
        let sync = Arc::new(LogSync::new(counters));
        let newest = recovery.newest_segment;
        let writer =
            LogWriter::begin(environment, config, Arc::clone(&sync), &replayed, newest, Lsn(0))?;
        let written = batches.into_iter().map(|(_, seq, payload)| (seq, payload)).collect();
        Ok(Self { writer, sync, written })
    }

    /// Ends the segment early; whether the next header becomes durable at once is random.
    fn end_segment(&mut self, rng: &mut Rng) {
        let ended = self.writer.end_segment(Ending::Aged).unwrap();
        if let Some(ended) = ended.filter(|_| rng.percent(70)) {
            self.sync.sync_header(&ended.header).unwrap();
        }
    }

    fn append(&mut self, rng: &mut Rng) -> Lsn {
        let len = if rng.percent(5) { 40_000 } else { rng.index(200) };
        let payload: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
        let seq = self.written.len() as u64 + 1;
        let (a, b) = payload.split_at(rng.index(len + 1));
        let end = self.writer.append(seq, &[a, b], false).unwrap();
        self.written.push((seq, payload));
        end
    }
}

fn assert_prefix(batches: &Batches, written: &[(SeqNo, Vec<u8>)], at_least: usize) {
    assert!(batches.len() >= at_least, "{} of {at_least} promised", batches.len());
    assert!(batches.len() <= written.len());
    for ((_, seq, payload), wrote) in batches.iter().zip(written) {
        assert_eq!((seq, payload), (&wrote.0, &wrote.1));
    }
}

#[test]
fn everything_survives_the_process_through_many_openings() {
    let mut rng = Rng::new(seed_from_env(51));
    let mut storage = MemoryStorage::new(1);
    for _ in 0..10 {
        let mut log = Log::open(&storage, 70_000).unwrap();
        for _ in 0..rng.below(60) {
            log.append(&mut rng);
        }
        if rng.percent(30) {
            log.writer.close().unwrap();
        }
        storage = storage.crash_point().image(Crash::Process);
        let (batches, replayed, _) = recover(&storage, Lsn(0)).unwrap();
        assert_prefix(&batches, &log.written, log.written.len());
        assert_eq!(replayed.dropped_records, 0);
    }
}

#[test]
fn power_loss_leaves_what_was_synced_and_a_prefix_of_the_rest() {
    let seed = seed_from_env(52);
    for round in 0..150 {
        let mut rng = Rng::new(seed + round);
        let mut storage = MemoryStorage::new(round);
        // The log is opened several times; each opening recovers from the previous crash.
        for _ in 0..3 {
            let Ok(mut log) = Log::open(&storage, 70_000) else { panic!("seed {}", seed + round) };
            let mut promised = log.written.len();
            for _ in 0..rng.below(40) {
                let end = log.append(&mut rng);
                if rng.percent(15) {
                    log.sync.sync(end, |_| ()).unwrap();
                    promised = log.written.len();
                    if rng.percent(50) {
                        log.writer.note_durable().unwrap();
                    }
                }
                if rng.percent(10) {
                    log.end_segment(&mut rng);
                }
            }
            let survival = Survival { percent: *rng.pick(&[0, 20, 50, 80, 99]), seed: rng.bits() };
            storage = storage.crash_point().image(Crash::Power(survival));
            let (batches, ..) = recover(&storage, Lsn(0))
                .unwrap_or_else(|error| panic!("seed {}: {error}", seed + round));
            assert_prefix(&batches, &log.written, promised);
        }
    }
}

#[test]
fn released_segments_are_used_again_and_never_resurrect_records() {
    let seed = seed_from_env(53);
    for round in 0..40 {
        let mut rng = Rng::new(seed + round);
        let storage = MemoryStorage::new(round);
        let mut log = Log::open(&storage, 70_000).unwrap();
        let mut ends = Vec::new();
        for _ in 0..400 {
            ends.push(log.append(&mut rng));
            if rng.percent(2) {
                log.end_segment(&mut rng);
            }
        }
        // All records before some position are in tables.
        let released = rng.index(ends.len());
        let freed = log.writer.release(ends[released]);
        freed.removed.iter().for_each(|path| storage.remove(path).unwrap());
        for wanted in freed.reused {
            // Some files are synced late, and some syncs fail.
            let cleaned = rng.percent(80).then(|| wanted.run(&storage).unwrap());
            let _surplus = log.writer.add_cleaned(cleaned);
        }
        for _ in 0..200 {
            ends.push(log.append(&mut rng));
        }
        assert!(storage.list(Path::new(DIR)).unwrap().len() < 400);
        let crash = if rng.percent(50) {
            Crash::Process
        } else {
            Crash::Power(Survival { percent: rng.below(100), seed: rng.bits() })
        };
        let image = storage.crash_point().image(crash);
        let (batches, ..) = match recover(&image, ends[released]) {
            Ok(recovered) => recovered,
            Err(error) => panic!("seed {}: {error}", seed + round),
        };
        assert_prefix(&batches, &log.written[released + 1..], 0);
        if crash == Crash::Process {
            assert_eq!(batches.len(), log.written.len() - released - 1);
        }
    }
}

#[test]
fn a_segment_that_ends_early_can_go_and_an_empty_one_does_not_end() {
    let mut rng = Rng::new(seed_from_env(55));
    let storage = MemoryStorage::new(1);
    let mut log = Log::open(&storage, 70_000).unwrap();
    log.writer.config.reuses_files = false;
    let first = log.writer.segment();
    log.writer.note_record(|| 9);
    assert!(log.writer.end_segment(Ending::Aged).unwrap().is_none());
    assert_eq!((log.writer.segment(), log.writer.holds_since()), (first, None));
    let end = log.append(&mut rng);
    log.writer.note_record(|| 9);
    log.writer.note_record(|| 10);
    assert_eq!(log.writer.holds_since(), Some(9));
    // A background thread creates this file before it is needed.
    let wanted = log.writer.creation_to_end(Ending::Aged).unwrap();
    assert!(log.writer.creation_to_end(Ending::Aged).is_none());
    let _surplus = log.writer.add_created(wanted.run(&storage, Path::new(DIR)));
    let header = log.writer.end_segment(Ending::Aged).unwrap().unwrap().header;
    assert_eq!((log.writer.segment(), log.writer.holds_since()), (first + 1, None));
    let begins = log.writer.end();
    assert_eq!(log.writer.oldest_end(), Some(begins));
    assert!(begins > end);
    assert!(log.writer.release(begins).removed.is_empty(), "its successor is not durable");
    log.sync.sync_header(&header).unwrap();
    let freed = log.writer.release(begins);
    assert_eq!((freed.removed.len(), freed.reused.len()), (1, 0));
    freed.removed.iter().for_each(|path| storage.remove(path).unwrap());
    let lost = Crash::Power(Survival { percent: 0, seed: 1 });
    let (batches, replayed, _) = recover(&storage.crash_point().image(lost), begins).unwrap();
    assert_eq!((batches.len(), replayed.last_segment), (0, first + 1));
}

#[test]
fn a_segment_stays_until_the_header_of_the_next_one_is_durable() {
    let mut rng = Rng::new(seed_from_env(54));
    let storage = MemoryStorage::new(1);
    let mut log = Log::open(&storage, 70_000).unwrap();
    let first = log.writer.segment();
    while log.writer.segment() == first {
        log.append(&mut rng);
    }
    // All records are in tables, but after a power failure there must still be a log.
    let end = log.writer.end();
    let freed = log.writer.release(end);
    assert!(freed.reused.is_empty() && freed.removed.is_empty());
    let lost = Crash::Power(Survival { percent: 0, seed: 1 });
    let (batches, replayed, _) = recover(&storage.crash_point().image(lost), end).unwrap();
    assert_eq!((batches.len(), replayed.last_segment, replayed.end), (0, first, end));
    let requests = log.writer.due_requests().unwrap();
    log.sync.sync_header(&requests.header.unwrap()).unwrap();
    let freed = log.writer.release(end);
    assert_eq!(freed.reused.len() + freed.removed.len(), 1);
    let (_, replayed, _) = recover(&storage.crash_point().image(lost), end).unwrap();
    assert_eq!(replayed.last_segment, first + 1);
    // The header is handed out once only.
    assert!(log.writer.due_requests().is_none_or(|requests| requests.header.is_none()));
}

#[test]
fn a_value_that_holds_a_whole_log_is_not_replayed() {
    let storage = MemoryStorage::new(1);
    let mut log = Log::open(&storage, 1 << 20).unwrap();
    for _ in 0..20 {
        log.append(&mut Rng::new(1));
    }
    let stolen = storage.read(Path::new("000001.log")).unwrap();
    let seq = log.written.len() as u64 + 1;
    log.writer.append(seq, &[&stolen[..50_000]], false).unwrap();
    log.written.push((seq, stolen[..50_000].to_vec()));
    // The record that contains the copied log is cut. Replay must stop there, and must not continue
    // inside the copy.
    let path = Path::new("000001.log");
    let mut bytes = storage.read(path).unwrap();
    let at = bytes.windows(8).rposition(|word| word == &stolen[512..520]).unwrap();
    bytes[at - 24] ^= 1;
    let image = storage.crash_point().image(Crash::Power(Survival { percent: 100, seed: 0 }));
    image.overwrite(path, &bytes).unwrap();
    let (batches, ..) = recover(&image, Lsn(0)).unwrap();
    assert_prefix(&batches, &log.written, 20);
    assert_eq!(batches.len(), 20);
}

#[test]
fn damage_before_the_end_of_a_closed_log_is_reported() {
    let storage = MemoryStorage::new(1);
    let mut log = Log::open(&storage, 4096).unwrap();
    let mut rng = Rng::new(9);
    for _ in 0..60 {
        let payload: Vec<u8> = (0..rng.index(100)).map(|_| rng.bits() as u8).collect();
        let seq = log.written.len() as u64 + 1;
        log.writer.append(seq, &[&payload], true).unwrap();
        log.written.push((seq, payload));
    }
    log.writer.close().unwrap();
    let names = storage.list(Path::new(DIR)).unwrap();
    assert!(names.len() > 1);
    for crash in [Crash::Process, Crash::Power(Survival { percent: 0, seed: 0 })] {
        for name in &names {
            let path = Path::new(DIR).join(name);
            let good = storage.read(&path).unwrap();
            for at in 0..good.len() {
                let image = storage.crash_point().image(crash);
                let mut bad = good.clone();
                bad[at] ^= 1 << (at % 8);
                image.overwrite(&path, &bad).unwrap();
                // The manifest knows the number of the newest segment.
                let recovery = Recovery::open(&image, Path::new(DIR), DATABASE).unwrap();
                let mut batches = Vec::new();
                let replayed = recovery.replay(
                    &image,
                    image.boot_id(),
                    Path::new(DIR),
                    Lsn(0),
                    names.len() as u64,
                    |batch| {
                        batches.push((batch.lsn, batch.seq, batch.operations.to_vec()));
                        Ok(())
                    },
                );
                match replayed {
                    Ok(_) => assert_prefix(&batches, &log.written, log.written.len()),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Corruption, "{error}"),
                }
            }
            let image = storage.crash_point().image(crash);
            image.remove(&path).unwrap();
            let recovery = Recovery::open(&image, Path::new(DIR), DATABASE).unwrap();
            let missing = recovery.replay(
                &image,
                image.boot_id(),
                Path::new(DIR),
                Lsn(0),
                names.len() as u64,
                |_| Ok(()),
            );
            assert_eq!(missing.unwrap_err().kind(), ErrorKind::Corruption, "{name}");
        }
    }
}

#[test]
fn a_full_disk_refuses_the_record_and_changes_nothing() {
    let storage = MemoryStorage::new(1);
    let mut log = Log::open(&storage, 8192).unwrap();
    storage.set_capacity(Some(storage.used_bytes() + 9000));
    let mut refused = None;
    for seq in 1..200 {
        match log.writer.append(seq, &[&[7; 500]], false) {
            Ok(_) => log.written.push((seq, vec![7; 500])),
            Err(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    assert!(matches!(refused, Some(Error::DiskFull(_))), "{refused:?}");
    storage.set_capacity(None);
    let seq = log.written.len() as u64 + 1;
    until_written(&mut log.writer, seq, b"again");
    log.written.push((seq, b"again".to_vec()));
    let (batches, ..) = recover(&storage, Lsn(0)).unwrap();
    assert_prefix(&batches, &log.written, log.written.len());
}

/// Appends a record once a full disk that has space again is asked for a segment again.
fn until_written(log: &mut LogWriter, seq: u64, payload: &[u8]) {
    let since = std::time::Instant::now();
    while let Err(error) = log.append(seq, &[payload], false) {
        assert!(matches!(error, Error::DiskFull(_)), "{error}");
        assert!(since.elapsed().as_secs() < 60, "writes do not resume");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Every refused write created a file, failed to allocate it and removed it, and used up a file number.
#[test]
fn refused_records_do_not_create_files() {
    let storage = MemoryStorage::new(1);
    let fault = FaultStorage::new(Arc::new(storage.clone()));
    let mut log = Log::open_by(&storage, Arc::new(fault.clone()), 8192).unwrap().writer;
    let next_file = log.next_file;
    fault.set(Some(Fault {
        operation: Some(Operation::Create),
        path_contains: ".log".into(),
        after: 0,
        is_permanent: true,
        error: std::io::ErrorKind::StorageFull,
    }));
    let since = std::time::Instant::now();
    let refused = (1..20_000).filter(|seq| log.append(*seq, &[&[7; 500]], false).is_err()).count();
    assert!(refused > 19_900, "{refused}");
    let pauses = since.elapsed().as_millis() as u64 / 250;
    assert!((1..=1 + pauses).contains(&fault.fired()), "{} after {pauses}", fault.fired());
    assert_eq!(log.next_file, next_file);
    fault.set(None);
    until_written(&mut log, 20_000, &[7; 500]);
    assert_eq!(log.next_file, next_file + 1);
}

/// After a write failed between the end of a segment and the first record of the next one, the old
/// segment was never freed, or continued beyond the end stated in the next header.
#[test]
fn a_write_that_fails_at_a_change_of_segments_loses_neither_records_nor_files() {
    let mut failures = 0;
    for after in 0..40 {
        let storage = MemoryStorage::new(1);
        let fault = FaultStorage::new(Arc::new(storage.clone()));
        let mut log = Log::open_by(&storage, Arc::new(fault.clone()), 1024).unwrap();
        fault.set(Some(Fault {
            operation: Some(Operation::Write),
            path_contains: String::new(),
            after,
            is_permanent: false,
            error: std::io::ErrorKind::Other,
        }));
        for number in 0..30u8 {
            let seq = log.written.len() as u64 + 1;
            let payload = vec![number; if number % 3 == 0 { 300 } else { 20 }];
            match log.writer.append(seq, &[&payload], false) {
                Ok(_) => log.written.push((seq, payload)),
                Err(_) => failures += 1,
            }
        }
        assert_eq!(fault.fired(), 1);
        let (batches, ..) = recover(&storage, Lsn(0)).unwrap();
        assert_prefix(&batches, &log.written, log.written.len());
        // Every file with records is tracked, so that it is freed or reused later.
        let known = log.writer.files();
        for name in storage.list(Path::new(DIR)).unwrap() {
            let path = Path::new(DIR).join(name);
            let records = storage.read(&path).unwrap().split_off(HEADER_BYTES as usize);
            let is_empty = records.iter().all(|&byte| byte == 0);
            assert!(is_empty || known.contains(&path), "{path:?} after failure {after}");
        }
    }
    assert_eq!(failures, 40);
}

/// On a full disk every write requested a free segment again, which created and removed a file.
#[test]
fn a_spare_that_could_not_be_created_is_not_wanted_by_every_write() {
    let mut log = Log::open(&MemoryStorage::new(1), 1 << 20).unwrap().writer;
    let mut seq = 0;
    for _ in 0..3 {
        let (segment, mut wanted) = (log.segment(), 0);
        while log.segment() == segment {
            if log.due_creation().is_some() {
                wanted += 1;
                let failed = std::io::ErrorKind::Other.into();
                let _ = log.add_created(Err(Error::io("create", Path::new("9.log"), failed)));
            }
            seq += 1;
            log.append(seq, &[&[7; 100]], false).unwrap();
        }
        assert_eq!(wanted, 4);
    }
}

/// A full disk refused a free segment of the usual length, and then deletes were refused whose short segment
/// had space.
#[test]
fn a_spare_that_could_not_be_created_refuses_no_short_segment() {
    for is_early in [true, false] {
        let mut log = Log::open(&MemoryStorage::new(1), 1 << 20).unwrap().writer;
        log.append(1, &[b"x"], false).unwrap();
        let _requested = log.creation_to_end(Ending::Aged).unwrap();
        if is_early {
            log.set_short(true);
        }
        let full = std::io::ErrorKind::StorageFull.into();
        assert!(log.add_created(Err(Error::io("create", Path::new("9.log"), full))).is_none());
        log.set_short(true);
        assert!(log.end_segment(Ending::Aged).unwrap().is_some(), "{is_early}");
    }
}

#[test]
fn writers_share_syncs() {
    let storage = MemoryStorage::new(1);
    let log = Log::open(&storage, 1 << 20).unwrap();
    let writer = std::sync::Mutex::new(log.writer);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (writer, sync) = (&writer, &log.sync);
            scope.spawn(move || {
                for number in 0..50 {
                    let end = writer
                        .lock()
                        .unwrap()
                        .append(thread * 1000 + number, &[b"x"], false)
                        .unwrap();
                    sync.sync(end, |_| ()).unwrap();
                    assert!(sync.synced() >= end);
                }
            });
        }
    });
    let crash = Crash::Power(Survival { percent: 0, seed: 0 });
    let (batches, ..) = recover(&storage.crash_point().image(crash), Lsn(0)).unwrap();
    assert_eq!(batches.len(), 200);
}
