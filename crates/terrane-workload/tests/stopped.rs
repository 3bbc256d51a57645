//! A client that fails ends the phase with its error.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::time::Duration;
use terrane_workload::stability::{
    Load, PhaseOptions, Query, Schedule, SystemClock, Unwatched, run_phase,
};
use terrane_workload::{Direction, MemStore, RunOptions, Store, StoreError};

struct Failing(MemStore);
impl Store for Failing {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.0.put(key, value)
    }
    fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.0.put(key, value)
    }
    fn write_batch(&self, _: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        Ok(())
    }
    fn delete(&self, _: &[u8]) -> Result<(), StoreError> {
        Ok(())
    }
    fn get(&self, _: &[u8], _: &mut dyn FnMut(&[u8])) -> Result<bool, StoreError> {
        std::thread::sleep(Duration::from_millis(300));
        Err(StoreError::new("get", "a table is damaged"))
    }
    fn scan(
        &self,
        _: Option<&[u8]>,
        _: Direction,
        _: usize,
        _: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<usize, StoreError> {
        Ok(0)
    }
    fn settle(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A reader fails while the writer waits for an arrival that is more than 100 ms away.
#[test]
fn the_error_of_a_reader_is_reported_while_a_writer_waits_for_an_arrival() {
    let store = Failing(MemStore::default());
    let run = RunOptions { num: 10, ..RunOptions::default() };
    let options = PhaseOptions {
        // The first arrival of a write comes after five seconds.
        load: Load::Open(Schedule::burst(0.0, 5.0, 100.0, 1.0)),
        duration: Duration::from_secs(10),
        warm_up: Duration::ZERO,
        writers: 1,
        readers: 1,
        query: Query::Point,
        run,
    };
    let error = run_phase(&store, &options, &SystemClock::new(), &Unwatched).unwrap_err();
    assert!(error.to_string().contains("a table is damaged"), "{error}");
}
