//! Tables of a few records whose figures can be worked out by hand.

use std::path::Path;

use super::*;
use crate::machine::Machine;
use crate::settings::{Compression, Durability, Settings};

fn measurement(operations_per_second: f64) -> Measurement {
    Measurement {
        workload: "fillrandom".into(),
        distribution: None,
        num: 10,
        key_bytes: 16,
        value_bytes: 100,
        operations: 1000,
        seconds: 1000.0 / operations_per_second,
        operations_per_second,
        operations_per_sample: 1,
        mean_micros: 1.0,
        p50_micros: 1.0,
        p90_micros: 2.0,
        p99_micros: 3.0,
        p99_9_micros: 4.0,
        max_micros: 5.0,
        slowest_second_share: None,
        writer_operations_per_second: None,
        failures: 0,
        user_bytes_written: 1000,
        load_seconds: 0.0,
        settle_seconds: 0.0,
        cpu_seconds: 0.001,
        settle_cpu_seconds: 0.0005,
        storage_bytes_written: 3300,
        system_call_bytes_written: 0,
        storage_bytes_read: 0,
        engine_bytes_written: None,
        engine_stall_micros: None,
        peak_anonymous_bytes: 64 << 20,
        peak_resident_bytes: 0,
        disk_bytes: 110,
        live_bytes: 100,
        live_entries: 1,
    }
}

fn record(repetition: u32, row: &str, engine: &str, rate: f64) -> Record {
    Record {
        schema: crate::record::SCHEMA,
        unix_seconds: 0,
        repetition,
        position: 0,
        engine: engine.into(),
        engine_version: format!("{engine} 1.0"),
        engine_promise: "survives".into(),
        row: row.into(),
        measurement: measurement(rate),
        threads: 1,
        seed: 1,
        settings: Settings {
            memtable_bytes: 64 << 20,
            cache_bytes: 256 << 20,
            block_bytes: 4096,
            filter_bits_per_key: 10,
            background_threads: 2,
            compression: Compression::None,
            durability: Durability::Process,
            budget_bytes_per_second: None,
            memory_limit_bytes: None,
            is_direct: false,
        },
        machine: Machine::here(Path::new("/")),
        command: vec!["terrane-compare".into()],
    }
}

fn shown(engines: &[&str], records: &[Record]) -> String {
    let comparison = Comparison {
        rows: vec!["fillseq", "readseq"],
        engines: engines.to_vec(),
        baseline: engines.contains(&"terrane").then_some("terrane"),
    };
    markdown(&comparison, records)
}

#[test]
fn throughput_is_the_median_with_its_range() {
    let records = [
        record(1, "fillseq", "redb", 100_000.0),
        record(2, "fillseq", "redb", 300_000.0),
        record(3, "fillseq", "redb", 110_000.0),
        record(1, "readseq", "redb", 2_500_000.0),
    ];
    let text = shown(&["redb"], &records);
    assert!(text.contains("| fillseq | 110 k (100 k–300 k) |"), "{text}");
    assert!(text.contains("| readseq | 2.50 M |"), "{text}");
    assert!(!text.contains("over its peers"), "no ratios without the baseline: {text}");
}

#[test]
fn ratios_are_medians_within_repetitions_and_name_the_best_peer() {
    let records = [
        record(1, "fillseq", "terrane", 300.0),
        record(1, "fillseq", "redb", 100.0),
        record(1, "fillseq", "lmdb", 200.0),
        record(1, "fillseq", "mem", 9000.0),
        // A repetition at half the speed.
        record(2, "fillseq", "terrane", 150.0),
        record(2, "fillseq", "redb", 50.0),
        record(2, "fillseq", "lmdb", 100.0),
    ];
    let text = shown(&["redb", "lmdb", "terrane", "mem"], &records);
    assert!(text.contains("| workload | best peer | over the best | redb | lmdb |"), "{text}");
    let line =
        "| fillseq | lmdb | 1.50x (1.50x–1.50x) | 3.00x (3.00x–3.00x) | 1.50x (1.50x–1.50x) |";
    assert!(text.contains(line), "{text}");
}

#[test]
fn costs_follow_the_throughput() {
    let text = shown(&["redb", "lmdb"], &[record(1, "fillseq", "redb", 100.0)]);
    for line in [
        "### Write amplification, settling included\n\n| workload | redb | lmdb |\n|---|---:|---:|\n| fillseq | 3.30 | – |",
        "### Processor time of all threads per operation, settling included, us\n\n| workload | redb | lmdb |\n|---|---:|---:|\n| fillseq | 1.50 | – |",
        "| fillseq | 1.10 | – |",
    ] {
        assert!(text.contains(line), "{text}");
    }
    assert!(!text.contains("beside the readers"), "nobody wrote beside readers: {text}");
}

#[test]
fn wrong_answers_are_not_hidden() {
    let mut wrong = record(1, "fillseq", "redb", 100.0);
    wrong.measurement.failures = 1;
    assert!(shown(&["redb"], &[wrong]).contains("| fillseq | 100 **WRONG** |"));
    assert_eq!(shown(&["redb"], &[]), "Nothing was measured.\n");
}

#[test]
fn records_come_back_from_their_json() {
    let record = record(1, "fillseq", "redb", 100.0);
    let json = serde_json::to_string(&record).unwrap();
    assert!(!json.contains('\n'));
    let back: Record = serde_json::from_str(&json).unwrap();
    assert_eq!(back.measurement, record.measurement);
    assert_eq!(back.settings, record.settings);
}

#[test]
fn rows_with_little_data_are_named() {
    let mut long = record(1, "readseq", "redb", 100.0);
    long.measurement.num = 3_000_000;
    let text = shown(&["redb"], &[record(1, "fillseq", "redb", 100.0), long]);
    assert!(text.contains("**Little data**: in fillseq it is less"), "{text}");
}
