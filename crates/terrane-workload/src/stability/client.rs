//! A client thread of a phase: a writer or a reader, with its own keys and random numbers.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::clock::Clock;
use super::phase::{Load, PhaseOptions};
use super::query::Query;
use super::recorder::Recorder;
use crate::distribution::{Distribution, IndexChooser};
use crate::error::StoreError;
use crate::key::KeySpace;
use crate::store::{Direction, Store};
use crate::value::{ValueCheck, Values};

/// The interval at which waiting clients check whether the phase was stopped.
const LOOK_NANOS: u64 = 100_000_000;

/// State shared by the threads of a phase.
pub(super) struct Shared<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) clock: &'a dyn Clock,
    pub(super) options: &'a PhaseOptions,
    pub(super) keys: KeySpace,
    /// The start and the end of the phase, in the time of the clock.
    pub(super) begin: u64,
    pub(super) end: u64,
    /// The index of the next arrival to be taken.
    pub(super) next: AtomicU64,
    /// Set on the first error.
    pub(super) stopped: AtomicBool,
}

impl Shared<'_> {
    pub(super) fn is_stopped(&self) -> bool {
        // Relaxed: a client that sees the flag late only executes a few more operations.
        self.stopped.load(Ordering::Relaxed)
    }

    /// Waits until `nanos`, unless the phase is stopped; returns the time.
    pub(super) fn wait_until(&self, nanos: u64) -> u64 {
        let mut now = self.clock.now();
        while now < nanos && !self.is_stopped() {
            now = self.clock.wait_until(nanos.min(now + LOOK_NANOS));
        }
        now
    }
}

/// One client thread.
pub(super) struct Client<'a> {
    shared: &'a Shared<'a>,
    key: Vec<u8>,
    chooser: IndexChooser,
    rng: Xoshiro256PlusPlus,
    pub(super) recorder: Recorder,
    pub(super) bytes_written: u64,
    /// The number of wrong answers.
    pub(super) wrong_answers: u64,
}

impl<'a> Client<'a> {
    /// Returns the client with this `number`; writers have smaller numbers than readers.
    pub(super) fn new(shared: &'a Shared<'a>, number: u32) -> Self {
        let options = shared.options;
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(options.run.seed);
        // The random streams are 2^128 numbers apart, and differ from the streams that loaded the
        // keys.
        rng.long_jump();
        (0..number).for_each(|_| rng.jump());
        let distribution = options.run.distribution.unwrap_or(Distribution::Uniform);
        let clients = u64::from(options.writers + options.readers);
        let start = options.run.num / clients.max(1) * u64::from(number);
        Self {
            shared,
            key: vec![0; shared.keys.key_size_bytes()],
            chooser: IndexChooser::new(distribution, options.run.num, start),
            rng,
            recorder: Recorder::new(options.duration_nanos(), options.warm_up_nanos()),
            bytes_written: 0,
            wrong_answers: 0,
        }
    }

    fn choose_key(&mut self) {
        let index = self.chooser.choose(&mut self.rng);
        self.shared.keys.write_key(index, &mut self.key);
    }

    /// Writes until the phase ends.
    pub(super) fn write(&mut self, number: u32) -> Result<(), StoreError> {
        let run = &self.shared.options.run;
        let pool_seed = run.seed ^ (u64::from(number) << 32);
        let mut values = Values::new(run.value_size, run.compressibility, pool_seed);
        self.shared.wait_until(self.shared.begin);
        match self.shared.options.load {
            Load::Closed => self.write_closed(&mut values),
            Load::Open(schedule) => self.write_open(&mut values, |index| schedule.time_of(index)),
        }
    }

    /// Writes as a closed system: the end of a write starts the next write (Fig. 5a).
    fn write_closed(&mut self, values: &mut Values) -> Result<(), StoreError> {
        let shared = self.shared;
        let mut start = shared.clock.now();
        while start < shared.end && !shared.is_stopped() {
            self.choose_key();
            self.put(values)?;
            let end = shared.clock.now();
            self.recorder.record(start - shared.begin, start - shared.begin, end - shared.begin);
            start = end;
        }
        Ok(())
    }

    /// Writes as an open system: a write starts at its arrival, or later when a client becomes idle
    /// (Fig. 5b).
    fn write_open(
        &mut self,
        values: &mut Values,
        time_of: impl Fn(u64) -> u64,
    ) -> Result<(), StoreError> {
        let shared = self.shared;
        let mut now = shared.clock.now();
        loop {
            // Relaxed: `fetch_add` hands out each index once, and no other memory access
            // depends on it.
            let due = time_of(shared.next.fetch_add(1, Ordering::Relaxed));
            if due >= shared.end - shared.begin || shared.is_stopped() {
                return Ok(());
            }
            if now >= shared.end {
                // This client took the arrival, so the final count of waiting arrivals excludes it.
                self.recorder.unfinished(shared.end - shared.begin - due);
                return Ok(());
            }
            self.choose_key();
            let arrival = shared.begin + due;
            if now < arrival {
                now = shared.wait_until(arrival);
                self.recorder.late(now - arrival.min(now));
            }
            self.put(values)?;
            let end = shared.clock.now();
            self.recorder.record(due, now - shared.begin, end - shared.begin);
            now = end;
        }
    }

    #[inline]
    fn put(&mut self, values: &mut Values) -> Result<(), StoreError> {
        let value = values.value_for(&self.key, &mut self.rng);
        self.bytes_written += (self.key.len() + value.len()) as u64;
        self.shared.store.put(&self.key, value)
    }

    /// Reads in a closed loop until the phase ends.
    pub(super) fn read(&mut self) -> Result<(), StoreError> {
        let shared = self.shared;
        let check = ValueCheck::new(shared.options.run.value_size);
        let mut start = shared.wait_until(shared.begin);
        while start < shared.end && !shared.is_stopped() {
            self.choose_key();
            match shared.options.query {
                Query::Point => self.look_up(check)?,
                Query::Scan { entries } => self.scan(check, entries)?,
                Query::Index { entries } => self.scan_index(check, entries)?,
            }
            let end = shared.clock.now();
            self.recorder.record(start - shared.begin, start - shared.begin, end - shared.begin);
            start = end;
        }
        Ok(())
    }

    fn look_up(&mut self, check: ValueCheck) -> Result<(), StoreError> {
        let Self { shared, key, wrong_answers, .. } = self;
        let found = shared.store.get(key, &mut |value| {
            black_box(value.last());
            *wrong_answers += u64::from(!check.accepts(key, value));
        })?;
        self.wrong_answers += u64::from(!found);
        Ok(())
    }

    /// A scan starts at an existing key, so an empty answer is wrong.
    fn scan(&mut self, check: ValueCheck, entries: u32) -> Result<(), StoreError> {
        let Self { shared, key: start, wrong_answers, .. } = self;
        let mut visit = |key: &[u8], value: &[u8]| {
            black_box(value.last());
            *wrong_answers += u64::from(!check.accepts(key, value));
        };
        let limit = entries as usize;
        let found = shared.store.scan(Some(start), Direction::Forward, limit, &mut visit)?;
        self.wrong_answers += u64::from(found == 0);
        Ok(())
    }

    /// The query starts at a random secondary key, so an empty answer may be right.
    fn scan_index(&mut self, check: ValueCheck, entries: u32) -> Result<(), StoreError> {
        let Self { shared, rng, wrong_answers, .. } = self;
        let mut visit = |key: &[u8], value: &[u8]| {
            black_box(value.last());
            *wrong_answers += u64::from(!check.accepts(key, value));
        };
        shared.store.scan_index(rng.next_u64(), entries as usize, &mut visit)?;
        Ok(())
    }
}
