//! Writers that place records concurrently, and processes that die before they finish.

use super::*;
use crate::base::expiry::EXPIRY_BYTES;
use crate::base::types::KeyspaceId;
use crate::files::batch::Op;
use crate::files::storage::{Access, LARGE_PIECE_BYTES};
use crate::files::wal::format::{RECORD_HEADER_BYTES, TERMINATOR_BYTES, record_bytes};
use crate::files::wal::slice::{LogSlice, PreparedRecord, RecordBuffer, RecordOps};

/// A record that a writer has reserved: where it begins, its sequence number and its operations.
type Reserved = (u64, SeqNo, Vec<u8>);

/// Reserves records of random lengths in a slice, at most `count` and as many as fit.
fn reserve(log: &Log, slice: &LogSlice, count: u64, rng: &mut Rng) -> (Vec<Reserved>, u64) {
    let (mut reserved, mut units) = (Vec::new(), 0);
    let first = log.written.len() as u64 + 1;
    for seq in first..first + count {
        let len = rng.index(200);
        let payload: Vec<u8> = (0..len).map(|_| rng.bits() as u8).collect();
        let own = RecordOps::encoded(&payload).units();
        if units + own > slice.units() {
            break;
        }
        reserved.push((units, seq, payload));
        units += own;
    }
    (reserved, units)
}

fn put(slice: &LogSlice, (before, seq): (u64, SeqNo), ops: RecordOps<'_>) {
    slice.put(before, seq, &mut PreparedRecord::of(&ops, &mut RecordBuffer::new())).unwrap();
}

fn shuffle(reserved: &mut [Reserved], rng: &mut Rng) {
    for at in 1..reserved.len() {
        reserved.swap(at, rng.index(at + 1));
    }
}

/// A log whose current segment is a reused file with old records in it.
fn reused_log(storage: &MemoryStorage, rng: &mut Rng) -> Log {
    let mut log = Log::open(storage, 32 << 10).unwrap();
    for _ in 0..4 {
        while log.writer.current.offset < 30_000 {
            log.append(rng);
        }
        log.writer.end_segment(Ending::Aged).unwrap();
        log.sync.sync(log.writer.end(), |_| ()).unwrap();
        for segment in log.writer.release(log.writer.end()).reused {
            let _surplus = log.writer.add_cleaned(Some(segment.run(storage).unwrap()));
        }
    }
    log
}

fn needed_from(log: &Log) -> Lsn {
    log.writer.current.header.base
}

/// Returns the sequence numbers that recovery finds after the process died.
fn recovered(log: &Log, storage: &MemoryStorage) -> Result<Vec<SeqNo>> {
    let storage = storage.crash_point().image(Crash::Process);
    let (batches, ..) = recover(&storage, needed_from(log))?;
    for (_, seq, payload) in &batches {
        let written = log.written.iter().find(|(of, _)| of == seq);
        assert!(written.is_none_or(|(_, written)| written == payload));
    }
    Ok(batches.into_iter().map(|(_, seq, _)| seq).collect())
}

/// The writers of a killed process had reserved records without writing them, or had written one in
/// part, while later records were complete. Recovery reported the log as damaged.
#[test]
fn records_that_a_killed_process_never_completed_end_the_log() {
    let seed = seed_from_env(91);
    let mut holes = 0;
    for round in 0..200 {
        let mut rng = Rng::new(seed + round);
        let storage = MemoryStorage::new(round);
        let mut log = reused_log(&storage, &mut rng);
        for _ in 0..rng.below(4) {
            log.append(&mut rng);
        }
        let Some(slice) = log.writer.open_slice() else { continue };
        let (mut reserved, _) = reserve(&log, &slice, 8, &mut rng);
        let first = log.written.len() as u64 + 1;
        shuffle(&mut reserved, &mut rng);
        let (left_out, complete) = reserved.split_at(rng.index(4).min(reserved.len()));
        for (before, seq, payload) in complete {
            put(&slice, (*before, *seq), RecordOps::encoded(payload));
        }
        for (before, _, payload) in left_out {
            if rng.percent(50) {
                continue;
            }
            // Anything except the second word, which is written last.
            let offset = log.writer.current.offset + before * 8;
            let mut part: Vec<u8> = vec![0xee; record_bytes(payload.len())];
            part[8..16].fill(0);
            if rng.percent(50) {
                part[..RECORD_HEADER_BYTES].fill(0);
            }
            log.writer.current.segment.write(offset, &part).unwrap();
        }
        let hole = left_out.iter().map(|(_, seq, _)| *seq).min();
        holes += u64::from(hole.is_some());
        let end = hole.unwrap_or(first + reserved.len() as u64);
        let found = recovered(&log, &storage)
            .unwrap_or_else(|error| panic!("seed {}: {error}", seed + round));
        assert_eq!(found.last(), Some(&(end - 1)).filter(|_| !found.is_empty()));
        assert!(found.contains(&(end - 1)) || end == first, "seed {}", seed + round);
    }
    assert!(holes > 50);
}

/// The records of a slice ended exactly where the zeros did, and old records of the file followed.
#[test]
fn zeros_follow_a_slice_that_is_filled() {
    let mut rng = Rng::new(seed_from_env(95));
    let storage = MemoryStorage::new(1);
    let mut log = Log::open(&storage, 256 << 10).unwrap();
    log.append(&mut rng);
    // Left by an earlier use of the file.
    let current = &mut log.writer.current;
    let end = current.offset + TERMINATOR_BYTES as u64;
    current.segment.write(end, &vec![0xee; (current.len - end) as usize]).unwrap();
    current.zero_tail.as_ref().unwrap().move_back(end);
    for _ in 0..3 {
        let slice = log.writer.open_slice().unwrap();
        let bytes = slice.units() * 8;
        let payload = vec![7; bytes as usize - RECORD_HEADER_BYTES];
        let seq = log.written.len() as u64 + 1;
        put(&slice, (0, seq), RecordOps::encoded(&payload));
        log.written.push((seq, payload));
        log.writer.close_slice(slice.units());
        log.writer.set_complete();
        let mut after = [1; TERMINATOR_BYTES];
        let file = storage.open(&log.writer.current.path, Access::Buffered).unwrap();
        file.read_at(log.writer.current.offset, &mut after).unwrap();
        assert_eq!(after, [0; TERMINATOR_BYTES]);
    }
}

/// A record failed after it was partly written. A slice was opened over that part, and recovery
/// reported the places of unwritten records as damage.
#[test]
fn a_slice_after_a_record_that_failed_lies_in_zeros() {
    let seed = seed_from_env(94);
    let fault = |operation, after| Fault {
        operation: Some(operation),
        path_contains: ".log".into(),
        after,
        is_permanent: false,
        error: std::io::ErrorKind::StorageFull,
    };
    let mut failures = 0;
    for round in 0..100 {
        let mut rng = Rng::new(seed + round);
        let storage = MemoryStorage::new(round);
        let faulty = FaultStorage::new(Arc::new(storage.clone()));
        faulty.tear_writes(*rng.pick(&[0, 50, 90, 100]));
        let mut log = Log::open_by(&storage, Arc::new(faulty.clone()), 1 << 20).unwrap();
        for _ in 0..rng.below(4) {
            log.append(&mut rng);
        }
        let operation = *rng.pick(&[Operation::Write, Operation::Append]);
        faulty.set(Some(fault(operation, rng.below(3))));
        let seq = log.written.len() as u64 + 1;
        // Longer ones are large pieces, which no slice follows.
        let large = vec![0xee; rng.between(100, LARGE_PIECE_BYTES as u64 - 1) as usize];
        let failed = log.writer.append(seq, &[&large], operation == Operation::Append).is_err();
        faulty.set(None);
        if !failed {
            continue;
        }
        failures += 1;
        for _ in 0..rng.below(3) {
            let payload = vec![1; rng.index(50)];
            let seq = log.written.len() as u64 + 1;
            log.writer.append(seq, &[&payload], false).unwrap();
            log.written.push((seq, payload));
        }
        let slice = log.writer.open_slice().unwrap();
        let (reserved, _) = reserve(&log, &slice, 20, &mut rng);
        let hole = rng.index(reserved.len());
        let (first, rest) = reserved.split_at(hole);
        for (before, seq, payload) in first.iter().chain(&rest[1..]) {
            put(&slice, (*before, *seq), RecordOps::encoded(payload));
        }
        let found = recovered(&log, &storage)
            .unwrap_or_else(|error| panic!("seed {}: {error}", seed + round));
        assert_eq!(found.len(), log.written.len() + hole, "seed {}", seed + round);
    }
    assert!(failures > 30, "{failures}");
}

/// A damaged record before complete ones is reported, as in a log with one writer.
#[test]
fn damage_before_records_of_a_slice_is_reported() {
    let mut rng = Rng::new(seed_from_env(92));
    let storage = MemoryStorage::new(1);
    let mut log = reused_log(&storage, &mut rng);
    let slice = log.writer.open_slice().unwrap();
    let (reserved, _) = reserve(&log, &slice, 8, &mut rng);
    for (before, seq, payload) in &reserved {
        put(&slice, (*before, *seq), RecordOps::encoded(payload));
    }
    assert_eq!(recovered(&log, &storage).unwrap().len(), reserved.len());
    let at = log.writer.current.offset + reserved[3].0 * 8;
    log.writer.current.segment.write(at, &[0x55; 20]).unwrap();
    let error = recovered(&log, &storage).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption);
}

/// Slices alternate with records that are appended under the lock, over many segments.
#[test]
fn slices_and_appended_records_follow_each_other() {
    let seed = seed_from_env(93);
    for round in 0..20 {
        let mut rng = Rng::new(seed + round);
        let storage = MemoryStorage::new(round);
        let mut log = reused_log(&storage, &mut rng);
        for _ in 0..60 {
            for _ in 0..rng.below(5) {
                log.append(&mut rng);
            }
            let Some(slice) = log.writer.open_slice() else { continue };
            let count = rng.below(30);
            let (mut reserved, units) = reserve(&log, &slice, count, &mut rng);
            log.written.extend(reserved.iter().map(|(_, seq, payload)| (*seq, payload.clone())));
            shuffle(&mut reserved, &mut rng);
            for (before, seq, payload) in &reserved {
                put(&slice, (*before, *seq), RecordOps::encoded(payload));
            }
            log.writer.close_slice(units);
            log.writer.set_complete();
            if rng.percent(20) {
                log.sync.sync(log.writer.end(), |_| ()).unwrap();
                let needed = log.writer.end();
                let freed = log.writer.release(needed);
                freed.removed.iter().for_each(|path| storage.remove(path).unwrap());
                for wanted in freed.reused {
                    let _surplus = log.writer.add_cleaned(Some(wanted.run(&storage).unwrap()));
                }
            }
        }
        let oldest = log.writer.full.first();
        let oldest = oldest.map(|oldest| Lsn(oldest.end.0 + HEADER_BYTES - oldest.bytes));
        let from = oldest.unwrap_or(needed_from(&log));
        let image = storage.crash_point().image(Crash::Process);
        let (batches, replayed, _) = recover(&image, from).unwrap();
        let found: Vec<_> = batches.into_iter().map(|(_, seq, payload)| (seq, payload)).collect();
        assert_eq!(found, log.written[log.written.len() - found.len()..], "seed {}", seed + round);
        assert_eq!((replayed.end, replayed.dropped_records), (log.writer.end(), 0));
    }
}

/// Nothing is prepared behind a large record, and small records are placed in slices again.
#[test]
fn no_slice_follows_a_large_record() {
    let (storage, mut rng) = (MemoryStorage::new(1), Rng::new(1));
    let mut log = Log::open(&storage, 16 << 20).unwrap();
    log.append(&mut rng);
    for round in 0..3 {
        let seq = log.written.len() as u64 + 1;
        // Longer than what is prepared at once.
        let large = vec![round; 36 * LARGE_PIECE_BYTES];
        log.writer.append(seq, &[&large], false).unwrap();
        log.written.push((seq, large));
        assert!(log.writer.open_slice().is_none());
        assert!(log.writer.due_requests().is_none_or(|due| due.pages.is_none()));
        log.append(&mut rng);
        assert!(log.writer.due_requests().is_some_and(|due| due.pages.is_some()));
        assert!(log.writer.open_slice().is_some());
        log.writer.close_slice(0);
        let seqs = recovered(&log, &storage).unwrap();
        assert_eq!(seqs.last().copied(), Some(log.written.len() as u64));
    }
}

/// Checks that zeros follow the payload of the first record of a slice, although the buffer has been used before.
fn assert_padded(storage: &MemoryStorage, log: &Log, (units, payload): (u64, usize)) {
    let current = &log.writer.current;
    let len = units as usize * 8 - RECORD_HEADER_BYTES - payload;
    let mut padding = [1; 7];
    let file = storage.open(&current.path, Access::Buffered).unwrap();
    file.read_at(current.offset + units * 8 - len as u64, &mut padding[..len]).unwrap();
    assert_eq!(padding[..len], [0; 7][..len], "a payload of {payload} bytes");
}

/// Operations whose records are encoded on the stack, in a buffer, or without their tails, in a slice and under the
/// lock.
#[test]
fn single_operations_of_all_lengths_read_back() {
    let long = vec![0x5a; 100 << 10];
    let storage = MemoryStorage::new(1);
    let mut log = Log::open(&storage, 8 << 20).unwrap();
    for keyspace in [KeyspaceId(0), KeyspaceId(200)] {
        for len in [0, 1, 127, 190, 200, 210, 220, 300, 2047, 2048, 2049, 16 << 10, 40 << 10] {
            let (key, tail) = (&b"key"[..], &long[..len]);
            let ops = [
                Op::Put { key, value: tail },
                Op::PutExpiring { key, stored: &long[..len + EXPIRY_BYTES] },
                Op::Merge { key, operand: tail },
                Op::Delete { key: tail },
                Op::DeleteRange { start: key, end: Some(tail) },
                Op::DeleteRange { start: tail, end: None },
            ];
            for op in ops {
                let mut encoded = Vec::new();
                op.encode(keyspace, &mut encoded);
                let next = |log: &Log| log.written.len() as u64 + 1;
                if let Some(slice) = log.writer.open_slice() {
                    let (seq, record) = (next(&log), RecordOps::one(keyspace, &op));
                    let units = record.units();
                    if units <= slice.units() {
                        put(&slice, (0, seq), record);
                        log.written.push((seq, encoded.clone()));
                        assert_padded(&storage, &log, (units, encoded.len()));
                    }
                    log.writer.close_slice(if units <= slice.units() { units } else { 0 });
                    log.writer.set_complete();
                }
                let seq = next(&log);
                log.writer.append_one(seq, keyspace, &op, false).unwrap();
                log.written.push((seq, encoded));
            }
        }
    }
    let (batches, ..) = recover(&storage, Lsn(0)).unwrap();
    let read: Vec<_> = batches.into_iter().map(|(_, seq, operations)| (seq, operations)).collect();
    assert!(read == log.written);
    assert!(log.written.len() > 2 * 13 * 6 * 3 / 2, "few records were placed in slices");
}
