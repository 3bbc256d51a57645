//! Mixes of operations as an open and as a closed system.

use super::*;
use crate::error::StoreError;
use crate::mem_store::MemStore;
use crate::operation_mix::OperationMix;
use crate::progress::Silent;
use crate::stability::{
    Clock, MixedLoad, Schedule, Subject, TwoPhaseOptions, evaluate, run_phase_of,
};
use crate::store::{Direction, Store};
use crate::value::ValueSize;
use crate::{RunError, Workload};

/// A map whose lookups and puts take a given virtual time.
struct Slow<'a> {
    map: &'a MemStore,
    clock: &'a VirtualClock,
    get_nanos: u64,
    put_nanos: u64,
}

impl Slow<'_> {
    fn take(&self, nanos: u64) {
        self.clock.wait_until(self.clock.now() + nanos);
    }
}

impl Store for Slow<'_> {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.take(self.put_nanos);
        self.map.put(key, value)
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.put(key, value)
    }

    fn write_batch(&self, puts: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        self.map.write_batch(puts)
    }

    fn delete(&self, key: &[u8]) -> Result<(), StoreError> {
        self.take(self.put_nanos);
        self.map.delete(key)
    }

    fn get(&self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        self.take(self.get_nanos);
        self.map.get(key, visit)
    }

    fn scan(
        &self,
        start: Option<&[u8]>,
        direction: Direction,
        limit: usize,
        visit: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        self.map.scan(start, direction, limit, visit)
    }

    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

fn run_options() -> RunOptions {
    RunOptions { num: 500, value_size: ValueSize::fixed(20), ..RunOptions::default() }
}

fn loaded(mix: &OperationMix) -> (MemStore, RunOptions) {
    let map = MemStore::new();
    let run = RunOptions { key_order: mix.placement(), ..run_options() };
    crate::run(&map, Workload::FillRandom, &run, &Silent).unwrap();
    (map, run)
}

/// An update that arrives behind a slow lookup waits for it, and the wait is part of its latency.
#[test]
fn operations_of_a_mix_wait_in_the_order_of_arrival() {
    let mix: OperationMix = "update=1,get=1".parse().unwrap();
    let (map, run) = loaded(&mix);
    let clock = clock(1);
    let slow = Slow { map: &map, clock: &clock, get_nanos: 15 * MILLI, put_nanos: MILLI / 10 };
    let load = MixedLoad::new(&mix, 1, &run).unwrap();
    let options = PhaseOptions {
        load: Load::Open(Schedule::constant(100.0)),
        duration: Duration::from_secs(20),
        warm_up: Duration::ZERO,
        writers: 1,
        readers: 0,
        query: Query::Point,
        run,
    };
    let report = run_phase_of(Some(&load), &slow, &options, &clock, &Unwatched).unwrap();
    let [updates, gets] = &report.kinds[..] else { panic!("{:?}", report.kinds) };
    assert_eq!(updates.latency.samples() + gets.latency.samples(), report.completed);
    let share = updates.latency.samples() as f64 / report.completed as f64;
    assert!((0.45..0.55).contains(&share), "{share}");
    // Lookups take three quarters of the time, so some updates wait for several of them. No update
    // takes less than its own service time.
    let (shortest, longest) =
        (updates.latency.percentile_micros(1.0), updates.latency.max_micros());
    assert!(is_near(shortest, MILLI / 10), "{shortest}");
    assert!(longest > 20_000.0, "{longest}");
    assert!(gets.latency.percentile_micros(1.0) >= 14_900.0);
    assert_eq!((report.wrong_answers, report.offered), (0, Some(2000)));
    assert_eq!(report.write.samples(), report.completed + report.unfinished);
}

struct Map(MemStore);

impl Subject for Map {
    fn for_testing(&mut self) -> Result<&dyn Store, RunError> {
        Ok(&self.0)
    }

    fn for_running(&mut self) -> Result<&dyn Store, RunError> {
        Ok(&self.0)
    }
}

/// The running phase works on the keys that the testing phase left.
#[test]
fn both_phases_know_which_keys_exist() {
    let mix: OperationMix =
        "insert=3,delete=3,delete-missing=1,get=3,missing=2,update=2,scan:5=1".parse().unwrap();
    let (map, run) = loaded(&mix);
    let options = TwoPhaseOptions {
        testing: Duration::from_millis(200),
        running: Duration::from_millis(200),
        warm_up: Duration::ZERO,
        utilization: 0.2,
        mix: Some(mix),
        writers: 2,
        run,
        ..TwoPhaseOptions::default()
    };
    let report = evaluate(&mut Map(map), &options, &|_| Box::new(Unwatched)).unwrap();
    for phase in [&report.testing, &report.running] {
        assert!(phase.completed > 100 && phase.kinds.len() == 7, "{}", phase.completed);
        assert!(phase.kinds.iter().all(|kind| kind.latency.samples() > 0));
        assert_eq!(phase.wrong_answers, 0);
    }
}
