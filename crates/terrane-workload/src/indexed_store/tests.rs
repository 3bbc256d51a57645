use std::collections::BTreeMap;
use std::sync::Arc;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use terrane::Options;
use terrane::storage::MemoryStorage;

use super::*;

fn store(indexes: &str) -> IndexedStore {
    let design: Design = "balanced; buffer=16KiB".parse().unwrap();
    let storage = Arc::new(MemoryStorage::new(1));
    let db = Options::new().design(design.clone()).storage(storage).open("/db").unwrap();
    IndexedStore::new(db, indexes.parse().unwrap(), &design, (100, 4)).unwrap()
}

fn key(number: u64) -> Vec<u8> {
    format!("{number:04}").into_bytes()
}

/// Applies random writes to a store and to a map.
fn play(store: &IndexedStore, steps: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut model = BTreeMap::new();
    for step in 0..steps {
        let number = rng.next_u64() % 50;
        let value = rng.next_u64().to_le_bytes().to_vec();
        match step % 7 {
            0 => {
                store.delete(&key(number)).unwrap();
                model.remove(&key(number));
            }
            1 => {
                // Each batch writes one record twice, and another record.
                let last = vec![step as u8; 9];
                let puts =
                    [(key(number), value.clone()), (key(number + 1), value), (key(number), last)];
                store.write_batch(&puts).unwrap();
                model.extend(puts);
            }
            _ => {
                store.put(&key(number), &value).unwrap();
                model.insert(key(number), value);
            }
        }
    }
    model
}

fn entries(store: &IndexedStore) -> Vec<usize> {
    let count = |index: &Keyspace| index.iter().unwrap().count();
    store.indexes.iter().map(count).collect()
}

#[test]
fn queries_by_an_index_find_every_record_once_in_its_order() {
    for indexes in ["eager(2)", "lazy(2)"] {
        let store = store(indexes);
        let model = play(&store, 2000);
        for _ in 0..2 {
            let mut wanted: Vec<_> =
                model.iter().map(|(key, value)| (secondary_of(value, 1), key.clone())).collect();
            wanted.sort();
            let mut found = Vec::new();
            let mut visit = |key: &[u8], value: &[u8]| {
                assert_eq!(model[key], value);
                found.push((secondary_of(value, 1), key.to_vec()));
            };
            assert_eq!(store.scan_index(0, usize::MAX, &mut visit).unwrap(), model.len());
            assert_eq!(found, wanted, "{indexes}");
            let from = wanted[wanted.len() / 2].0;
            let rest = wanted.iter().filter(|(secondary, _)| *secondary >= from).count();
            assert_eq!(store.scan_index(from, usize::MAX, &mut |_, _| ()).unwrap(), rest);
            assert_eq!(store.scan_index(0, 3, &mut |_, _| ()).unwrap(), 3);
            store.settle().unwrap();
        }
    }
}

#[test]
fn eager_indexes_hold_live_entries_and_lazy_ones_also_stale_ones() {
    let eager = store("eager(2)");
    let model = play(&eager, 500);
    assert_eq!(entries(&eager), [model.len(), model.len()]);
    let lazy = store("lazy(2)");
    play(&lazy, 500);
    assert!(entries(&lazy).iter().all(|count| *count > 4 * model.len()), "{:?}", entries(&lazy));
}

#[test]
fn writers_of_the_same_records_leave_no_stale_entries() {
    let store = store("eager(3)");
    std::thread::scope(|scope| {
        for writer in 0..4_u64 {
            let store = &store;
            scope.spawn(move || {
                for step in 0..300_u64 {
                    store.put(&key(step % 3), &(writer << 32 | step).to_le_bytes()).unwrap();
                }
            });
        }
    });
    assert_eq!(entries(&store), [3, 3, 3]);
    assert_eq!(store.scan_index(0, 9, &mut |_, _| ()).unwrap(), 3);
}

#[test]
fn an_index_is_flushed_about_as_often_as_its_records() {
    let design: Design = "balanced; buffer=1MiB".parse().unwrap();
    assert_eq!(index_design(&design, 240, 16).buffer_bytes, (1 << 20) / 10);
    assert_eq!(index_design(&design, 1 << 20, 16).buffer_bytes, BUFFER_BYTES_MIN);
    assert_eq!(index_design(&design, 1, 16).buffer_bytes, 1 << 20);
}
