//! Tests every engine against the same expectations, because an engine that returns wrong answers
//! must not be compared.

use terrane_workload::{Direction, MemStore, RunOptions, Silent, Store, Workload, run};

use super::{ALL, Engine};
use crate::settings::{Compression, Durability, Settings};

fn settings(durability: Durability) -> Settings {
    Settings {
        // Small, so that some data is flushed to tables.
        memtable_bytes: 256 << 10,
        cache_bytes: 8 << 20,
        block_bytes: 4096,
        filter_bits_per_key: 10,
        background_threads: 2,
        compression: Compression::None,
        durability,
        budget_bytes_per_second: None,
        memory_limit_bytes: None,
        is_direct: false,
    }
}

fn with_store(engine: &Engine, settings: &Settings, check: impl FnOnce(&dyn Store)) {
    let dir = tempfile::tempdir().unwrap();
    check(&*(engine.open)(dir.path(), settings).unwrap());
}

fn entries(
    store: &dyn Store,
    start: Option<&[u8]>,
    direction: Direction,
    limit: usize,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    let count = store
        .scan(start, direction, limit, &mut |key, value| {
            entries.push((key.to_vec(), value.to_vec()));
        })
        .unwrap();
    assert_eq!(count, entries.len());
    entries
}

#[test]
fn every_workload_runs_on_every_engine_without_wrong_answers() {
    let options = RunOptions { num: 6000, reads: Some(3000), ..RunOptions::default() };
    for engine in ALL {
        for workload in Workload::ALL {
            with_store(engine, &settings(Durability::Process), |store| {
                if let Some(load) = workload.loaded_by() {
                    run(store, load, &options, &Silent).unwrap();
                    run(store, Workload::Settle, &options, &Silent).unwrap();
                }
                let report = run(store, workload, &options, &Silent).unwrap();
                assert_eq!(report.failures(), 0, "{}: {report}", engine.name);
            });
        }
    }
}

#[test]
fn engines_agree_with_the_map_after_writes_batches_and_deletes() {
    for engine in ALL {
        for durability in [Durability::Process, Durability::Sync] {
            with_store(engine, &settings(durability), |store| {
                let map = MemStore::new();
                let key = |i: u32| (i * 7919 % 1000).to_be_bytes();
                for store in [store, &map] {
                    for i in 0..300 {
                        store.put(&key(i), &i.to_le_bytes()).unwrap();
                    }
                    let puts: Vec<_> =
                        (200..400).map(|i| (key(i).to_vec(), vec![1; i as usize])).collect();
                    store.write_batch(&puts).unwrap();
                    (100..150).for_each(|i| store.delete(&key(i)).unwrap());
                    store.delete(b"never there").unwrap();
                    store.put_synced(&key(120), b"back again").unwrap();
                }
                compare(engine.name, store, &map);
                store.settle().unwrap();
                compare(engine.name, store, &map);
            });
        }
    }
}

/// Compares scans from every start key in both directions, and lookups of single keys and of
/// several keys.
fn compare(name: &str, store: &dyn Store, map: &MemStore) {
    for direction in [Direction::Forward, Direction::Backward] {
        let all = entries(map, None, direction, usize::MAX);
        assert_eq!(entries(store, None, direction, usize::MAX), all, "{name} {direction:?}");
        for start in 0..1010u32 {
            let start = start.to_be_bytes();
            let expected = entries(map, Some(&start), direction, 3);
            assert_eq!(entries(store, Some(&start), direction, 3), expected, "{name} {start:?}");
        }
        assert_eq!(entries(store, None, direction, 0), []);
    }
    let keys: Vec<Vec<u8>> = (0..1010u32).map(|key| key.to_be_bytes().to_vec()).collect();
    let one_by_one = |store: &dyn Store| -> Vec<Option<Vec<u8>>> {
        keys.iter()
            .map(|key| {
                let mut seen = None;
                let found = store.get(key, &mut |value| seen = Some(value.to_vec())).unwrap();
                assert_eq!(found, seen.is_some());
                seen
            })
            .collect()
    };
    let expected = one_by_one(map);
    assert_eq!(one_by_one(store), expected, "{name}");
    let mut together = vec![None; keys.len()];
    let found = store.multi_get(&keys, &mut |at, value| together[at] = Some(value.to_vec()));
    assert_eq!(found.unwrap(), expected.iter().flatten().count(), "{name}");
    assert_eq!(together, expected, "{name}");
}

#[test]
fn engines_tell_their_versions() {
    for engine in ALL {
        let version = (engine.version)();
        assert!(version.contains(|c: char| c.is_ascii_digit()), "{}: {version}", engine.name);
        assert!(!version.contains("unknown"), "{version}");
        assert!(!engine.promise.is_empty());
    }
}
