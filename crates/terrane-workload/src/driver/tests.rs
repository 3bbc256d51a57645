//! Tests the driver with a correct engine, and with engines that have one fault each.

mod mixed;
mod spy;

use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::Duration;

use super::*;
use crate::key::KeyOrder;
use crate::mem_store::MemStore;
use crate::progress::Silent;
use crate::value::{ValueCheck, ValueSize};
use crate::workload::YcsbMix;
use spy::{Calls, Fault, Spy};

const NUM: u64 = 2_000;

fn options() -> RunOptions {
    RunOptions { num: NUM, ..RunOptions::default() }
}

/// Returns a store with the data that `workload` needs.
fn loaded(workload: Workload, options: &RunOptions) -> MemStore {
    let store = MemStore::new();
    if let Some(load) = workload.loaded_by() {
        run(&store, load, options, &Silent).unwrap();
        assert_eq!(store.len() as u64, options.num);
    }
    store
}

/// Returns all keys and values of a store.
fn content(store: &MemStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    store
        .scan(None, Direction::Forward, usize::MAX, &mut |key, value| {
            entries.push((key.to_vec(), value.to_vec()));
        })
        .unwrap();
    entries
}

#[test]
fn every_workload_runs_without_failures_on_a_correct_engine() {
    for threads in [1, 3] {
        for key_size_bytes in [4, 16] {
            let options = RunOptions { threads, key_size_bytes, ..options() };
            for workload in Workload::ALL {
                let store = loaded(workload, &options);
                let report = run(&store, workload, &options, &Silent).unwrap();
                assert_eq!(report.failures(), 0, "{report}");
                assert_eq!(report.operations, workload.operations(&options), "{report}");
                assert_eq!(report.user_bytes_written > 0, workload.writes(), "{report}");
                let samples = report.operations / u64::from(report.operations_per_sample);
                assert!(
                    report.latency.samples() >= samples.saturating_sub(u64::from(threads)),
                    "{report}"
                );
                assert!(report.seconds > 0.0);
                assert_eq!(report.distribution, workload.distribution(&options));
            }
        }
    }
}

#[test]
fn fills_write_every_key_once_with_a_value_of_its_own() {
    for workload in ["fillseq", "fillrandom", "fillbatch:7", "ycsb-load"] {
        let workload: Workload = workload.parse().unwrap();
        for threads in [1, 3] {
            let options = RunOptions { threads, ..options() };
            let store = MemStore::new();
            let report = run(&store, workload, &options, &Silent).unwrap();
            let keys = workload.key_space(&options).unwrap();
            let mut expected: Vec<_> = (0..NUM).map(|index| keys.key(index)).collect();
            expected.sort();
            let content = content(&store);
            assert!(content.iter().map(|(key, _)| key).eq(&expected), "{workload}");
            let check = ValueCheck::new(options.value_size);
            assert!(content.iter().all(|(key, value)| check.accepts(key, value)), "{workload}");
            assert_eq!(report.user_bytes_written, NUM * 116);
        }
    }
}

#[test]
fn fillseq_data_is_found_by_readers_of_ordered_keys_alone() {
    let store = MemStore::new();
    let options = options();
    run(&store, Workload::FillSeq, &options, &Silent).unwrap();
    let hashed = run(&store, Workload::ReadRandom, &options, &Silent).unwrap();
    assert_eq!(hashed.not_found, NUM);
    let key_order = Workload::FillSeq.key_order_loaded(&options).unwrap();
    assert_eq!(key_order, KeyOrder::Ordered);
    let ordered = RunOptions { key_order, ..options };
    for workload in [Workload::ReadRandom, Workload::ReadMissing, Workload::ReadSeq] {
        assert_eq!(run(&store, workload, &ordered, &Silent).unwrap().failures(), 0);
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another() {
    let run_with = |seed| {
        let options = RunOptions { seed, threads: 2, ..options() };
        let store = loaded(Workload::Ycsb(YcsbMix::D), &options);
        let report = run(&store, Workload::Ycsb(YcsbMix::D), &options, &Silent).unwrap();
        (content(&store), report.found, report.user_bytes_read)
    };
    assert_eq!(run_with(1), run_with(1));
    assert_ne!(run_with(1), run_with(2));
}

#[test]
fn each_workload_makes_the_calls_of_its_name() {
    let none = Calls::default();
    for (workload, expected) in [
        ("fillrandom", Calls { puts: NUM, ..none }),
        ("fillsync", Calls { synced_puts: NUM / 100, ..none }),
        ("fillbatch:300", Calls { batches: NUM.div_ceil(300), ..none }),
        ("deleterandom", Calls { deletes: NUM, ..none }),
        ("readmissing", Calls { gets: NUM, ..none }),
        ("multireadrandom:32", Calls { multi_gets: NUM.div_ceil(32), ..none }),
        ("readreverse", Calls { scans: 1, scanned: NUM, ..none }),
        ("settle", Calls { settles: 1, ..none }),
    ] {
        let workload: Workload = workload.parse().unwrap();
        let spy = Spy::over(loaded(workload, &options()), Fault::None);
        run(&spy, workload, &options(), &Silent).unwrap();
        assert_eq!(spy.calls(), expected, "{workload}");
    }
}

#[test]
fn mixes_have_their_shares_of_calls() {
    let options = RunOptions { reads: Some(20_000), ..options() };
    let calls = |mix| {
        let workload = Workload::Ycsb(mix);
        let store = loaded(workload, &options);
        let spy = Spy::over(store, Fault::None);
        assert_eq!(run(&spy, workload, &options, &Silent).unwrap().operations, 20_000);
        let calls = spy.calls();
        [calls.gets, calls.puts, calls.scans].map(|calls| calls as f64 / 20_000.0)
    };
    for (mix, shares) in [
        (YcsbMix::A, [0.5, 0.5, 0.0]),
        (YcsbMix::B, [0.95, 0.05, 0.0]),
        (YcsbMix::C, [1.0, 0.0, 0.0]),
        (YcsbMix::D, [0.95, 0.05, 0.0]),
        (YcsbMix::E, [0.0, 0.05, 0.95]),
        (YcsbMix::F, [1.0, 0.5, 0.0]),
    ] {
        for (measured, share) in calls(mix).into_iter().zip(shares) {
            assert!((measured - share).abs() < 0.015, "{mix:?}: {measured}, not {share}");
        }
    }
}

#[test]
fn inserts_add_records_and_updates_do_not() {
    for (mix, grows) in [(YcsbMix::A, false), (YcsbMix::D, true), (YcsbMix::E, true)] {
        let store = loaded(Workload::Ycsb(mix), &options());
        run(&store, Workload::Ycsb(mix), &options(), &Silent).unwrap();
        let inserted = store.len() as u64 - NUM;
        assert_eq!(inserted > 50, grows, "{mix:?}: {inserted} inserted");
    }
}

#[test]
fn faulty_engines_are_detected() {
    for (fault, workload, failures) in [
        (Fault::LosesEveryTenth, "readrandom", NUM / 10),
        (Fault::LosesEveryTenth, "multireadrandom", NUM / 10),
        (Fault::AnswersWithTheKey, "readrandom", NUM),
        (Fault::AnswersWithTheKey, "ycsb-c", NUM),
        (Fault::AnswersWithTheKey, "multireadrandom", NUM),
        (Fault::CutsValues, "readrandom", NUM),
        (Fault::FindsEverything, "readmissing", NUM),
        (Fault::SkipsEveryTenth, "readseq", NUM / 10),
        (Fault::SkipsEveryTenth, "readreverse", NUM / 10),
        (Fault::RepeatsEntries, "readseq", NUM / 2),
        // A skipped entry and its replacement both count, so one seek in nine is wrong.
        (Fault::SkipsEveryTenth, "seekrandom:1", NUM / 9),
    ] {
        let workload: Workload = workload.parse().unwrap();
        let spy = Spy::over(loaded(workload, &options()), fault);
        let report = run(&spy, workload, &options(), &Silent).unwrap();
        let counted = report.failures();
        assert!(
            (failures * 9 / 10..=failures * 11 / 10).contains(&counted),
            "{fault:?}, {workload}: {counted} failures, not {failures}"
        );
    }
}

#[test]
fn seeks_read_their_entries_from_the_key_that_was_sought() {
    let workload = Workload::SeekRandom { entries: 5 };
    let spy = Spy::over(loaded(workload, &options()), Fault::None);
    let report = run(&spy, workload, &options(), &Silent).unwrap();
    assert_eq!(spy.calls().scans, NUM);
    assert_eq!(spy.calls().scanned, report.found);
    // Seeks near the last key find fewer entries.
    assert!((5 * NUM - 100..=5 * NUM).contains(&report.found), "{report}");
}

#[test]
fn the_first_error_stops_all_clients() {
    let options = RunOptions { threads: 4, reads: Some(u64::MAX / 4), ..options() };
    for workload in [Workload::ReadRandom, Workload::ReadWhileWriting] {
        let spy = Spy::over(loaded(workload, &self::options()), Fault::FailsAfter(1000));
        let error = run(&spy, workload, &options, &Silent).unwrap_err();
        let RunError::Store(error) = error else { panic!("{error}") };
        assert_eq!(error.source.to_string(), "out of luck");
    }
}

#[test]
fn bad_options_are_rejected_before_any_operation() {
    let spy = Spy::over(MemStore::new(), Fault::None);
    let error =
        run(&spy, Workload::FillRandom, &RunOptions { num: 0, ..options() }, &Silent).unwrap_err();
    assert!(matches!(error, RunError::Options(_)));
    assert_eq!(spy.calls(), Calls::default());
}

#[test]
fn the_writer_of_readwhilewriting_writes_until_the_readers_are_done() {
    let options = RunOptions { reads: Some(20_000), ..options() };
    let store = loaded(Workload::ReadWhileWriting, &options);
    let report = run(&store, Workload::ReadWhileWriting, &options, &Silent).unwrap();
    let writer = report.writer.as_ref().unwrap();
    assert_eq!(report.operations, 20_000);
    assert_eq!(report.found, 20_000);
    assert!(writer.operations > 0 && writer.operations_per_second() > 0.0);
    assert_eq!(report.user_bytes_written, 116 * writer.operations);
    assert_eq!(report.counters.user_bytes_written, Some(report.user_bytes_written));
}

#[test]
fn values_of_a_range_of_sizes_are_read_back() {
    let value_size: ValueSize = "1..300".parse().unwrap();
    let options = RunOptions { value_size, ..options() };
    let store = loaded(Workload::ReadSeq, &options);
    let report = run(&store, Workload::ReadSeq, &options, &Silent).unwrap();
    assert_eq!(report.failures(), 0);
    let mean = report.user_bytes_read as f64 / NUM as f64 - 16.0;
    assert!((mean - 150.5).abs() < 10.0, "{mean}");
}

/// Records all progress updates, and counts them in the spy, whose calls wait for the first.
struct Updates<'a>(Mutex<Vec<(u64, u64, Duration)>>, &'a Spy);

impl Progress for Updates<'_> {
    fn update(&self, done: u64, total: u64, elapsed: Duration) {
        self.0.lock().unwrap().push((done, total, elapsed));
        self.1.updates.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn progress_goes_up_to_the_total_ten_times_a_second() {
    let spy = Spy::over(MemStore::new(), Fault::WaitsForProgressAfter(100));
    let updates = Updates(Mutex::default(), &spy);
    let options = RunOptions { num: 350, ..options() };
    let report = run(&spy, Workload::FillRandom, &options, &updates).unwrap();
    let updates = updates.0.into_inner().unwrap();
    assert!(updates.is_sorted());
    assert_eq!(updates.last().map(|(done, total, _)| (*done, *total)), Some((350, 350)));
    let at_most = (report.seconds / PROGRESS_INTERVAL.as_secs_f64()) as usize + 2;
    assert!((2..=at_most).contains(&updates.len()), "{} updates", updates.len());
}
