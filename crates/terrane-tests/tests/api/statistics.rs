//! Tests that counters and sizes are consistent.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use terrane::storage::{FaultStorage, MemoryStorage, Storage};
use terrane::{Background, Durability, KeyspaceOptions, Options, ReadMode, WriteBatch};

use crate::support::{DIR, fill, in_memory, small_design, value};

#[test]
fn bytes_of_tables_are_those_of_the_tree_and_of_the_files() {
    let (options, storage) = in_memory();
    let db = options.design(small_design()).open(DIR).unwrap();
    let other = db.keyspace("other", KeyspaceOptions::new()).unwrap();
    fill(&db, 300, 0);
    for number in 0..200u32 {
        other.put(number.to_be_bytes(), [1; 50]).unwrap();
    }
    fill(&db, 100, 1);
    db.delete("000").unwrap();
    db.delete_range("010".."020").unwrap();
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let stats = db.stats();
    let shapes = [db.tree().shape, other.tree().shape];
    let sum = |of: fn(&terrane_policy::TableInfo) -> u64| -> u64 {
        shapes.iter().flat_map(terrane_policy::TreeShape::tables).map(|table| of(table)).sum()
    };
    assert_eq!(stats.table_bytes, sum(|table| table.size_bytes));
    assert_eq!(stats.table_entries, sum(|table| table.entries));
    assert_eq!(stats.table_tombstones, sum(|table| table.tombstones));
    assert_eq!(stats.table_range_tombstones, sum(|table| table.range_tombstones));
    let files = storage.list(Path::new(DIR)).unwrap();
    let tables = files.iter().filter(|name| name.ends_with(".sst"));
    let on_disk: u64 = tables.map(|name| storage.len(&Path::new(DIR).join(name)).unwrap()).sum();
    assert_eq!(stats.table_bytes, on_disk);
    let parts = stats.log_bytes_written + stats.manifest_bytes_written + stats.flush_bytes_written;
    assert_eq!(stats.storage_bytes_written(), parts + stats.compaction_bytes_written);
}

#[test]
fn bytes_of_flushes_and_compactions_are_those_of_the_tables_that_they_made() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    for round in 0..3 {
        fill(&db, 300, round);
        db.flush().unwrap();
    }
    let flushed = db.stats();
    assert_eq!((flushed.flushes, flushed.compactions), (3, 0));
    assert_eq!(flushed.flush_bytes_written, flushed.table_bytes);
    assert!(flushed.write_amplification().unwrap() > 1.0);
    db.compact_range(..).unwrap();
    let stats = db.stats();
    assert_eq!(stats.compaction_bytes_written, stats.table_bytes);
    assert_eq!((stats.flush_bytes_written, stats.table_entries), (flushed.table_bytes, 300));
    let read = stats.compaction_bytes_read;
    assert!((flushed.table_bytes / 2..=flushed.table_bytes).contains(&read), "{read}");
    let written = (stats.flush_bytes_written + stats.compaction_bytes_written) as f64;
    let expected = written / stats.user_bytes_written as f64;
    assert!((stats.write_amplification().unwrap() - expected).abs() < 1e-9);
}

#[test]
fn ratios_do_not_exist_before_the_operations_that_they_divide_by() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    let stats = db.stats();
    assert_eq!((stats.write_amplification(), stats.rewrite_amplification()), (None, None));
    assert_eq!((stats.read_amplification(), stats.latencies.get.mean_micros()), (None, None));
    let text = stats.to_string();
    assert!(text.contains("write amplification -, - of it by compactions"), "{text}");
    assert!(text.contains("read amplification  - blocks per get"), "{text}");
    // 0 is a measurement: no byte of what was written has reached a table yet.
    db.put("key", "value").unwrap();
    db.get("key").unwrap();
    let stats = db.stats();
    assert_eq!(
        (stats.write_amplification(), stats.rewrite_amplification()),
        (Some(0.0), Some(0.0))
    );
    assert_eq!(stats.read_amplification(), Some(0.0));
    assert!(stats.to_string().contains("write amplification 0.00, 0.00 of it by compactions"));
}

#[test]
fn operations_and_user_bytes_are_counted_as_they_were_given() {
    let (options, _) = in_memory();
    let db = options.open(DIR).unwrap();
    db.put("key", "value").unwrap();
    db.delete("key").unwrap();
    db.delete_range("a".."bb").unwrap();
    let mut batch = WriteBatch::new();
    batch.put("1", "2").put("3", "4");
    db.write(&batch).unwrap();
    db.get("key").unwrap();
    db.get("1").unwrap();
    db.multi_get(["1", "3", "5"]).unwrap();
    drop(db.iter().unwrap());
    let stats = db.stats();
    assert_eq!((stats.writes, stats.user_bytes_written), (5, 8 + 3 + 3 + 4));
    assert_eq!((stats.gets, stats.gets_found, stats.scans), (5, 3, 1));
    assert_eq!(stats.flushes, 0);
    assert_eq!((db.tree().memtable_entries, db.tree().keyspace.as_str()), (4, "default"));
    assert!(db.tree().memtable_bytes > 0);
}

#[test]
fn a_get_that_finds_its_key_looks_into_one_block_of_the_run_that_has_it() {
    for mode in [ReadMode::Cached, ReadMode::Direct] {
        let (options, _) = in_memory();
        let options: Options = options.read_mode(mode);
        let db = options.design(small_design()).open(DIR).unwrap();
        fill(&db, 300, 0);
        db.compact_range(..).unwrap();
        let before = db.stats();
        for number in 0..300u32 {
            assert_eq!(db.get(format!("{number:03}")).unwrap().unwrap(), value(number, 0));
        }
        let stats = db.stats();
        assert_eq!(stats.get_blocks - before.get_blocks, 300, "{mode}");
        assert!((stats.read_amplification().unwrap() - 1.0).abs() < f64::EPSILON, "{mode}");
        let looked = |stats: &terrane::Stats| stats.cache.data_hits + stats.cache.data_misses;
        assert_eq!(looked(&stats) - looked(&before), 300, "{mode}");
    }
}

#[test]
fn compactions_are_timed_and_moves_are_counted_separately() {
    let (options, _) = in_memory();
    let db = options.design(small_design()).open(DIR).unwrap();
    // Tables with ascending keys do not overlap, so compactions only move them.
    for number in 0..2_000u32 {
        db.put(number.to_be_bytes(), [1; 50]).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let moved = db.stats();
    assert!(moved.move_compactions > 0 && moved.trivial_moves >= moved.move_compactions);
    for number in 0..2_000u32 {
        db.put(number.to_be_bytes(), [2; 50]).unwrap();
    }
    db.compact_range(..).unwrap();
    let stats = db.stats();
    assert!(stats.compactions > moved.compactions);
    assert_eq!(stats.latencies.compaction.count(), stats.compactions);
    assert!(
        stats.latencies.compaction.percentile_micros(50.0)
            <= stats.latencies.compaction.max_micros()
    );
    let since = stats.latencies.compaction.since(&moved.latencies.compaction);
    assert_eq!(since.count(), stats.compactions - moved.compactions);
    let rewritten = stats.compaction_bytes_written as f64 / stats.user_bytes_written as f64;
    assert!((stats.rewrite_amplification().unwrap() - rewritten).abs() < 1e-9);
    let text = stats.to_string();
    assert!(text.contains("only moved") && text.contains("  compaction "), "{text}");
}

#[test]
fn every_kind_of_work_is_measured() {
    let (options, _) = in_memory();
    let design = "1-leveling T=4 L0=2 base=16KiB; buffer=4KiB; table=4KiB; block=512B; \
                  values=separate(100,garbage=20%)";
    let design = design.parse().unwrap();
    let db = options.design(design).durability(Durability::Sync).open(DIR).unwrap();
    for round in 0..8 {
        for number in (0..64).map(|number: u32| number * (1 + u32::from(round) % 3)) {
            db.put(number.to_be_bytes(), [round; 100]).unwrap();
            db.transaction(|tx| {
                tx.put(number.to_le_bytes(), [round; 20]);
                Ok(())
            })
            .unwrap();
            assert!(db.get(number.to_be_bytes()).unwrap().is_some());
            db.multi_get([number.to_be_bytes()]).unwrap();
            let mut from = db.range(&number.to_be_bytes()[..]..).unwrap();
            assert!(from.advance().unwrap() && db.last().unwrap().is_some());
        }
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
    let stats = db.stats();
    let counts: Vec<(&str, u64)> =
        stats.latencies.all().iter().map(|kind| (kind.name, kind.times.count())).collect();
    for (name, count) in &counts {
        let known = match *name {
            "log_sync" => stats.log_syncs,
            "flush" => stats.flushes,
            "compaction" => stats.compactions,
            "collection" => stats.collections,
            // A stopped write may wait several times.
            "stall" => stats.stalls.writes.min(*count),
            _ => *count,
        };
        assert_eq!(*count, known, "{name}");
        // Of 512 operations, at least one in 32 is measured, and at most one in 8.
        let is_plausible = match *name {
            "get" | "multi_get" | "write" | "commit" => (1..=64).contains(count),
            "seek" => (1..=128).contains(count),
            _ => *name == "stall" || *count > 0,
        };
        assert!(is_plausible, "{counts:?}");
    }
    let text = stats.to_string();
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn reads_are_counted_by_level_and_tombstones_by_age() {
    for mode in [ReadMode::Cached, ReadMode::Direct] {
        let (options, _) = in_memory();
        let clock = Arc::new(terrane::ManualClock::new(1_000_000));
        let options = options.read_mode(mode).clock(clock.clone());
        let db = options.design(small_design()).open(DIR).unwrap();
        fill(&db, 300, 0);
        db.compact_range(..).unwrap();
        let shape = db.tree().shape;
        let last = shape.last_level();
        assert!(last > 0, "{mode}");
        for number in 0..300u32 {
            db.get(format!("{number:03}")).unwrap().unwrap();
        }
        let stats = db.stats();
        assert_eq!((stats.levels, stats.tables), (last as u64 + 1, shape.table_count() as u64));
        assert_eq!(stats.sorted_runs, shape.run_count() as u64);
        assert_eq!(stats.by_level.iter().map(|level| level.get_blocks).sum::<u64>(), 300);
        assert_eq!(stats.by_level[last].get_blocks, 300, "{mode}");
        let misses: u64 = stats.by_level.iter().map(|level| level.data_misses).sum();
        assert_eq!(misses, stats.cache.data_misses, "{mode}");
        assert!(misses > 0, "{mode}");
        assert_eq!(stats.oldest_tombstone_micros, None);
        db.delete("000").unwrap();
        db.flush().unwrap();
        clock.advance(Duration::from_secs(7));
        let age = db.stats().oldest_tombstone_micros;
        assert!(db.stats().table_tombstones == 0 || age == Some(7_000_000), "{mode}: {age:?}");
        assert!(age.is_some(), "{mode}");
    }
}

#[test]
fn memory_is_reported_by_holder_and_stays_within_the_budget() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().memory_budget(4 << 20).read_mode(ReadMode::Cached);
    let db = options
        .design("balanced; buffer=1MiB; table=1MiB".parse().unwrap())
        .open(dir.path())
        .unwrap();
    for number in 0..20_000u32 {
        db.put(number.wrapping_mul(2_654_435_761).to_be_bytes(), [5; 400]).unwrap();
    }
    db.flush().unwrap();
    let held: Vec<_> = db.iter().unwrap().take(50).map(Result::unwrap).collect();
    for number in (0..20_000u32).step_by(3) {
        db.get(number.wrapping_mul(2_654_435_761).to_be_bytes()).unwrap().unwrap();
    }
    let memory = db.stats().memory;
    assert_eq!(memory.budget_bytes, 4 << 20);
    let blocks = memory.cache_bytes + memory.pinned_bytes + memory.open_table_bytes;
    let memtables = memory.memtable_bytes + memory.kept_memtable_bytes;
    let sum = memtables + blocks + memory.job_bytes + memory.transaction_bytes;
    assert_eq!(memory.total_bytes(), sum);
    assert!(memory.cache_bytes > 128 << 10, "{memory:?}");
    // The cache evicts when memory is counted, not with each block that a reader pins.
    let slack = memory.budget_bytes / 64;
    assert!(memory.total_bytes() <= memory.budget_bytes + slack, "{memory:?}");
    drop(held);
}

#[test]
fn writes_of_open_transactions_count_until_they_end() {
    let dir = tempfile::tempdir().unwrap();
    let db = Options::new().open(dir.path()).unwrap();
    let counted = || db.stats().memory.transaction_bytes;
    let mut transaction = db.begin();
    (0..100_u32).for_each(|key| transaction.put(key.to_be_bytes(), [7; 10_000]));
    let written = counted();
    // Counted in steps of 16 KiB.
    assert!((980_000..1_100_000).contains(&written), "{written}");
    (0..100_u32).for_each(|key| transaction.put(key.to_be_bytes(), [7; 10]));
    assert!(counted() < 100_000, "overwritten values are freed: {}", counted());
    transaction.commit().unwrap();
    assert_eq!(counted(), 0);
}

/// A database that was only read used to use half of its budget.
#[test]
fn blocks_get_the_memory_that_memtables_leave() {
    let (options, storage) = in_memory();
    let design = "balanced; buffer=2MiB; table=1MiB".parse().unwrap();
    let db = options.memory_budget(26 << 20).design(design).open(DIR).unwrap();
    for number in 0..40_000u32 {
        db.put(number.wrapping_mul(2_654_435_761).to_be_bytes(), [5; 400]).unwrap();
    }
    db.close().unwrap();
    let options = Options::new().storage(Arc::new(storage)).memory_budget(26 << 20);
    let db = options.open_read_only(DIR).unwrap();
    assert_eq!(db.iter().unwrap().count(), 40_000);
    let before = db.stats().cache.data_misses;
    assert_eq!(db.iter().unwrap().count(), 40_000);
    let stats = db.stats();
    assert!(stats.table_bytes > 15 << 20, "{}", stats.table_bytes);
    assert_eq!(stats.cache.data_misses, before, "{:?}", stats.memory);
    assert!(stats.memory.total_bytes() <= 26 << 20, "{:?}", stats.memory);
}

#[test]
fn stats_and_trees_print_their_values() {
    let (options, _) = in_memory();
    let db = options.design(small_design()).open(DIR).unwrap();
    fill(&db, 200, 0);
    db.flush().unwrap();
    let text = db.stats().to_string();
    for part in ["durability          process", "writes              200", "tables"] {
        assert!(text.contains(part), "{part} in:\n{text}");
    }
    let text = db.tree().to_string();
    assert!(
        text.contains("\nmemtable ▕") && text.contains("\nlevel 0 ") && text.contains("sorted run"),
        "{text}"
    );
}

/// A compaction plans, merges and installs; planning and installing take less time than the merge.
#[test]
#[cfg(unix)]
fn processor_time_of_compactions_is_divided_by_phase() {
    let dir = tempfile::tempdir().unwrap();
    let design = "leveling; buffer=256KiB; table=256KiB".parse().unwrap();
    let db = Options::new().design(design).open(dir.path()).unwrap();
    // A slow machine would compact the writes of several rounds at once.
    for round in 0..5u32 {
        for number in round * 8_000..(round + 1) * 8_000 {
            db.put(number.wrapping_mul(2_654_435_761).to_be_bytes(), [5; 100]).unwrap();
        }
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
    let stats = db.stats();
    let (planning, installing) =
        (stats.compaction_planning_cpu_micros, stats.compaction_installing_cpu_micros);
    let merging = stats.compaction_cpu_micros - planning - installing;
    assert!(stats.compactions > 3 && installing > 0, "{stats}");
    assert!(merging > planning + installing, "{merging} µs, {planning} and {installing} µs");
}

/// Nothing else says why these writes take long.
#[test]
fn waits_for_files_of_the_log_are_counted() {
    let storage = FaultStorage::new(Arc::new(MemoryStorage::new(1)));
    let options = Options::new()
        .storage(Arc::new(storage.clone()))
        .background(Background::Threads)
        .memory_budget(16 << 20)
        .log_segment_bytes(64 << 10);
    let db = options.open(DIR).unwrap();
    db.put("key", "value").unwrap();
    assert!(db.stats().log_wait_micros < 5000, "{}", db.stats().log_wait_micros);
    storage.delay_log_syncs(Duration::from_millis(20));
    let begin = std::time::Instant::now();
    for number in 0..40u32 {
        db.put(number.to_be_bytes(), vec![1; 30 << 10]).unwrap();
    }
    let (took, waited) = (begin.elapsed(), db.stats().log_wait_micros);
    assert!(waited >= 20_000 && u128::from(waited) <= took.as_micros(), "{waited} of {took:?}");
    let text = db.stats().to_string();
    assert!(text.contains("log waits"), "{text}");
}
