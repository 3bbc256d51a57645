//! The inner loops, one by one, for `benches/micro.rs`. Not part of the public interface.
//!
//! Each function prepares its data and returns an operation on a number, so that the benchmark
//! measures the loop alone.
#![expect(clippy::expect_used, reason = "a benchmark that cannot be set up has no result")]
#![allow(missing_docs, reason = "names say it")]

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use terrane_memtable::{BTreeConfig, Config, Memtable, Pool};
use terrane_policy::Compression;

use crate::base::clock::SystemClock;
use crate::base::stats::{Counters, DurationCounters, Sample, Timed};
use crate::base::types::{EntryKind, Lsn};
use crate::engine::cursor::{MergeCursor, RunCursor, Source};
use crate::engine::merge::{
    DropRules, OlderTables, Output, OutputConfig, ValueOutputConfig, merge,
};
use crate::engine::version::OpenRun;
use crate::files::buffer::BufferPool;
use crate::files::storage::{Access, DiskStorage, MemoryStorage};
use crate::files::table::{
    FinishedTable, MicroBlock, MicroFilter, Table, TableConfig, TableEnvironment, TableFileId,
};
use crate::files::wal::{LogConfig, LogEnvironment, LogSync, LogWriter, Recovery};

pub const ENTRIES_MERGED: u64 = 100_000;

/// A pseudo-random key of 16 bytes.
pub fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// Searches for an entry in blocks of 4 KiB that together exceed every cache.
pub fn block_search() -> impl FnMut(u64) {
    const BLOCKS: u64 = 20_000;
    const ENTRIES: u64 = 34;
    let blocks: Vec<MicroBlock> = (0..BLOCKS)
        .map(|block| {
            let mut keys: Vec<_> = (0..ENTRIES).map(|entry| key(block * ENTRIES + entry)).collect();
            keys.sort_unstable();
            MicroBlock::new(&keys, &[7; 100])
        })
        .collect();
    move |number| {
        let wanted = number.wrapping_mul(7919) % (BLOCKS * ENTRIES);
        assert!(blocks[(wanted / ENTRIES) as usize].holds(&key(wanted)));
    }
}

/// Probes a filter of a million keys for an absent key.
pub fn filter_probe() -> impl FnMut(u64) {
    let filter = MicroFilter::new((0..1_000_000).map(key), 10.0);
    move |number| {
        black_box(filter.may_hold(&key(number + (1 << 40))));
    }
}

/// Appends a put of 16 + 100 bytes to a log in `dir`, which is recreated when it is full.
pub fn log_append(dir: &Path) -> impl FnMut(u64) + use<> {
    let storage = Arc::new(DiskStorage);
    let recovery = Recovery::open(&*storage, dir, 1).expect("the directory is empty");
    let replayed = recovery
        .replay(&*storage, None, dir, Lsn(0), 0, |_| Ok(()))
        .expect("there is nothing to replay");
    let counters = Arc::new(Counters::default());
    let environment = LogEnvironment {
        storage,
        clock: Arc::new(SystemClock),
        counters: Arc::clone(&counters),
        dir: PathBuf::from(dir),
        segments: Arc::default(),
        database: 1,
        is_mapped: true,
        lock: None,
    };
    let config = LogConfig {
        segment_bytes: 64 << 20,
        reuses_files: true,
        may_be_linked: false,
        retention: None,
        retained_from: None,
    };
    let sync = Arc::new(LogSync::new(counters));
    let mut log = LogWriter::begin(environment, config, sync, &replayed, 0, Lsn(0))
        .expect("there is room for a log");
    let payload = [7; 16 + 100 + 8];
    move |number| {
        let end = log.append(number, &[&payload], false).expect("there is room for a log");
        if number.is_multiple_of(100_000) {
            log.release(end);
        }
    }
}

/// Notes a duration in a histogram.
pub fn time_record() -> impl FnMut(u64) {
    let durations = DurationCounters::default();
    // Durations of about a microsecond, over several cells.
    move |number| {
        let nanos = 700 + number.wrapping_mul(7919) % 600;
        durations.note(Timed::Get, Duration::from_nanos(nanos));
    }
}

/// Times an operation that takes no time, if the operation is sampled.
pub fn time_sample() -> impl FnMut(u64) {
    let durations = DurationCounters::default();
    move |_| Sample::begin().end(&durations, Timed::Get)
}

/// Merges [`ENTRIES_MERGED`] entries of two tables with alternating keys into one, in memory.
pub fn merge_two() -> impl FnMut(u64) {
    let storage = MemoryStorage::new(1);
    let buffer = BufferPool::new(1 << 20);
    let environment = TableEnvironment::alone(Arc::new(storage.clone()), Access::Buffered, buffer);
    let environment = Arc::new(environment);
    let pool = Pool::new(0);
    let runs = [1, 2].map(|part| {
        let memtable = Memtable::new(Config::BTree(BTreeConfig), &pool);
        for number in 0..ENTRIES_MERGED / 2 {
            let number = number * 2 + part;
            memtable.insert(&key(number), number, EntryKind::Value, &[7; 100]);
        }
        let table = write(&storage, vec![Source::Memtable(memtable.cursor())], part);
        let table = Table::new(table.id, Arc::clone(&table.info), Path::new("."), &environment);
        Arc::new(OpenRun::of_tables(vec![table]))
    });
    move |round| {
        let sources = runs.iter().map(|run| Source::Run(RunCursor::new(Arc::clone(run))));
        write(&MemoryStorage::new(round), sources.collect(), 1);
    }
}

/// Merges sources into one table.
fn write(storage: &MemoryStorage, sources: Vec<Source>, number: u64) -> FinishedTable {
    let mut input = MergeCursor::new(sources);
    input.seek_first().expect("memory does not fail");
    let id = TableFileId { number, writer: 1 };
    let next_table = move || (id, Path::new(".").join(id.file_name()));
    let config = OutputConfig {
        storage: Arc::new(storage.clone()),
        table: TableConfig {
            block_bytes: 4096,
            filter_bits: 10.0,
            filter_probes: None,
            compression: Compression::None,
            keyspace: 0,
            sync_bytes: 0,
            access: Access::Buffered,
        },
        table_bytes: 1 << 30,
        parts_bytes_max: usize::MAX,
        warmer: None,
        grandparents: Vec::new(),
        next_table: Box::new(next_table),
        now_micros: 1,
        oldest_tombstone_micros: None,
    };
    let mut output = Output::new(config, ValueOutputConfig::inline());
    let rules = DropRules::new(Vec::new(), OlderTables::default());
    let made = merge(input, None, Vec::new(), rules, &mut output, &mut |_| Ok(()));
    made.ok().and_then(|mut tables| tables.pop()).expect("memory does not fail")
}
