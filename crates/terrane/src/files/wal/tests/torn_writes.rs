//! Writes that fail after writing some of their bytes, like a system call on a full disk.

use super::*;

const FULL: std::io::ErrorKind = std::io::ErrorKind::StorageFull;

fn fault(operation: Operation, after: u64, is_permanent: bool) -> Fault {
    let path_contains = ".log".into();
    Fault { operation: Some(operation), path_contains, after, is_permanent, error: FULL }
}

/// Frees all segments that have ended, so that their files are reused with old records in them.
fn free(log: &mut Log, storage: &MemoryStorage) {
    log.sync.sync(log.writer.end(), |_| ()).unwrap();
    for segment in log.writer.release(log.writer.end()).reused {
        let _surplus = log.writer.add_cleaned(Some(segment.run(storage).unwrap()));
    }
}

/// Returns where the records that are still needed begin.
fn needed_from(log: &Log) -> Lsn {
    log.writer.current.header.base
}

/// Checks what recovery finds if the process dies now: the records of the current segment, then
/// perhaps one of the records that failed after the last successful one.
fn check_death(log: &Log, storage: &MemoryStorage, failed: &[(SeqNo, Vec<u8>)]) {
    let storage = storage.crash_point().image(Crash::Process);
    let (batches, replayed, _) = recover(&storage, needed_from(log)).unwrap();
    assert_eq!(replayed.dropped_records, 0);
    let found: Vec<_> = batches.into_iter().map(|(_, seq, payload)| (seq, payload)).collect();
    let start = found.first().map_or(log.written.len(), |first| first.0 as usize - 1);
    let acknowledged = &log.written[start.min(log.written.len())..];
    let (sure, more) = found.split_at(acknowledged.len());
    assert_eq!(sure, acknowledged);
    assert!(more.is_empty() || (more.len() == 1 && failed.contains(&more[0])), "{more:?}");
}

#[test]
fn the_next_record_overwrites_one_that_stopped_halfway() {
    let seed = seed_from_env(81);
    let mut failures = 0;
    for (round, percent) in [0, 1, 25, 50, 75, 90, 97, 100].repeat(12).into_iter().enumerate() {
        let mut rng = Rng::new(seed + round as u64);
        let storage = MemoryStorage::new(1);
        let faulty = FaultStorage::new(Arc::new(storage.clone()));
        faulty.tear_writes(percent);
        let mut log = Log::open_by(&storage, Arc::new(faulty.clone()), 4096).unwrap();
        let mut failed = Vec::new();
        for _ in 0..300 {
            if rng.percent(10) {
                let operation = *rng.pick(&[Operation::Write, Operation::Append]);
                faulty.set(Some(fault(operation, rng.below(4), false)));
            }
            if rng.percent(4) {
                faulty.set(None);
                free(&mut log, &storage);
            }
            // A large payload takes several writes.
            let len = if rng.percent(2) { 20_000 } else { rng.index(200) };
            let write = (log.written.len() as u64 + 1, vec![rng.bits() as u8; len]);
            let is_synced = rng.percent(40);
            match log.writer.append(write.0, &[&write.1], is_synced) {
                Ok(_) => {
                    log.written.push(write);
                    failed.clear();
                }
                Err(error) => {
                    assert!(matches!(error, Error::DiskFull(_)), "{error}");
                    failed.push(write);
                    check_death(&log, &storage, &failed);
                    failures += 1;
                }
            }
        }
        check_death(&log, &storage, &failed);
    }
    assert!(failures > 1000, "{failures}");
}

/// On a full disk every write that needed another segment left a file behind, which used up more
/// space.
#[test]
fn segments_that_cannot_begin_do_not_pile_up() {
    for percent in [0, 30, 70, 100] {
        for after in 0..30 {
            let storage = MemoryStorage::new(1);
            let faulty = FaultStorage::new(Arc::new(storage.clone()));
            faulty.tear_writes(percent);
            let mut log = Log::open_by(&storage, Arc::new(faulty.clone()), 1024).unwrap();
            faulty.set(Some(fault(Operation::Write, after, true)));
            let files = || storage.list(Path::new(DIR)).unwrap().len();
            let mut before = None;
            for number in 0..60u8 {
                let seq = log.written.len() as u64 + 1;
                match log.writer.append(seq, &[&[number; 100]], false) {
                    Ok(_) => log.written.push((seq, vec![number; 100])),
                    Err(_) => drop(before.get_or_insert_with(files)),
                }
            }
            let before = before.unwrap();
            assert!(files() <= before + 1, "{before} became {}", files());
            // Files do not pile up if the log cannot even begin.
            let before = files();
            assert!(Log::open_by(&storage, Arc::new(faulty.clone()), 1024).is_err());
            assert_eq!(files(), before);
            faulty.set(None);
            let seq = log.written.len() as u64 + 1;
            log.writer.append(seq, &[b"again"], false).unwrap();
            log.written.push((seq, b"again".to_vec()));
            let (batches, ..) = recover(&storage, Lsn(0)).unwrap();
            assert_prefix(&batches, &log.written, log.written.len());
        }
    }
}
