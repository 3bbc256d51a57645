//! A client thread of a phase: a writer or a reader, with its own keys and random numbers.

use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::clock::Clock;
use super::mixed_load::MixedLoad;
use super::phase::{Load, PhaseOptions};
use super::query::Query;
use super::recorder::Recorder;
use crate::answers::Tally;
use crate::distribution::{Distribution, IndexChooser};
use crate::error::StoreError;
use crate::key::KeySpace;
use crate::latency::Latency;
use crate::mixed::{Hands, OwnKeys};
use crate::random::unit;
use crate::store::{Direction, Store};
use crate::value::{ValueCheck, Values};

/// The interval at which waiting clients check whether the phase was stopped.
const LOOK_NANOS: u64 = 100_000_000;

/// State shared by the threads of a phase.
pub(super) struct Shared<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) clock: &'a dyn Clock,
    pub(super) options: &'a PhaseOptions,
    /// The operations of the writers, unless all are updates.
    pub(super) mix: Option<&'a MixedLoad>,
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
    /// The answers and the bytes written.
    pub(super) tally: Tally,
    /// The latencies of each operation of the mix.
    pub(super) kinds: Vec<Latency>,
}

/// The operations of a writer.
enum Work<'a> {
    /// Updates of loaded records.
    Updates,
    /// A mix of operations on its own keys.
    Mix { load: &'a MixedLoad, keys: MutexGuard<'a, OwnKeys>, choosers: Vec<IndexChooser> },
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
            tally: Tally::default(),
            kinds: Vec::new(),
        }
    }

    fn choose_key(&mut self) {
        let index = self.chooser.choose(&mut self.rng);
        self.shared.keys.write_key(index, &mut self.key);
    }

    /// Writes until the phase ends.
    pub(super) fn write(&mut self, number: u32) -> Result<(), StoreError> {
        let shared = self.shared;
        let run = &shared.options.run;
        let pool_seed = run.seed ^ (u64::from(number) << 32);
        let mut values = Values::new(run.value_size, run.compressibility, pool_seed);
        let mixed = |load: &'a MixedLoad| {
            let keys = load.keys(number)?;
            let choosers = load.choosers(run, &keys);
            Some(Work::Mix { load, keys, choosers })
        };
        let mut work = shared.mix.and_then(mixed).unwrap_or(Work::Updates);
        if let Work::Mix { load, .. } = &work {
            self.kinds = load.parts().iter().map(|_| Latency::new()).collect();
        }
        shared.wait_until(shared.begin);
        match shared.options.load {
            Load::Closed => self.write_closed(&mut work, &mut values),
            Load::Open(schedule) => {
                self.write_open(&mut work, &mut values, |index| schedule.time_of(index))
            }
        }
    }

    /// Writes as a closed system: the end of a write starts the next write (Fig. 5a).
    fn write_closed(&mut self, work: &mut Work<'_>, values: &mut Values) -> Result<(), StoreError> {
        let shared = self.shared;
        let mut start = shared.clock.now();
        while start < shared.end && !shared.is_stopped() {
            self.prepare(work);
            let kind = self.operate(work, values)?;
            let end = shared.clock.now();
            self.recorder.record(start - shared.begin, start - shared.begin, end - shared.begin);
            self.record_kind(kind, end - start, end - shared.begin);
            start = end;
        }
        Ok(())
    }

    /// Writes as an open system: a write starts at its arrival, or later when a client becomes idle
    /// (Fig. 5b).
    fn write_open(
        &mut self,
        work: &mut Work<'_>,
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
            self.prepare(work);
            let arrival = shared.begin + due;
            if now < arrival {
                now = shared.wait_until(arrival);
                if now < arrival {
                    // Another client failed, and its error ends the phase.
                    return Ok(());
                }
                self.recorder.late(now - arrival);
            }
            let kind = self.operate(work, values)?;
            let end = shared.clock.now();
            self.recorder.record(due, now - shared.begin, end - shared.begin);
            self.record_kind(kind, end - shared.begin - due, end - shared.begin);
            now = end;
        }
    }

    /// Chooses the key of an update before its arrival, so that its latency excludes the choice.
    fn prepare(&mut self, work: &Work<'_>) {
        if matches!(work, Work::Updates) {
            self.choose_key();
        }
    }

    /// Updates the chosen key, or carries out the next operation of the mix and returns its number.
    #[inline]
    fn operate(
        &mut self,
        work: &mut Work<'_>,
        values: &mut Values,
    ) -> Result<Option<usize>, StoreError> {
        let Work::Mix { load, keys, choosers } = work else {
            let value = values.value_for(&self.key, &mut self.rng);
            self.tally.bytes_written += (self.key.len() + value.len()) as u64;
            return self.shared.store.put(&self.key, value).map(|()| None);
        };
        let at = load.drawn(unit(&mut self.rng));
        let mut hands = Hands {
            store: self.shared.store,
            loaded: self.shared.options.run.num,
            keys: &self.shared.keys,
            key: &mut self.key,
            values,
            check: ValueCheck::new(self.shared.options.run.value_size),
            rng: &mut self.rng,
            tally: &mut self.tally,
        };
        if hands.operate(load.parts()[at], keys, &mut choosers[at])? {
            choosers.iter_mut().for_each(IndexChooser::grow);
        }
        Ok(Some(at))
    }

    fn record_kind(&mut self, kind: Option<usize>, nanos: u64, end: u64) {
        let is_measured = end >= self.shared.options.warm_up_nanos();
        if let Some(latency) = kind.filter(|_| is_measured).and_then(|at| self.kinds.get_mut(at)) {
            latency.record_nanos(nanos);
        }
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
        let Self { shared, key, tally, .. } = self;
        let found = shared.store.get(key, &mut |value| tally.look_at(check, key, value))?;
        self.tally.not_found += u64::from(!found);
        Ok(())
    }

    /// A scan starts at an existing key, so an empty answer is wrong.
    fn scan(&mut self, check: ValueCheck, entries: u32) -> Result<(), StoreError> {
        let Self { shared, key: start, tally, .. } = self;
        let mut visit = |key: &[u8], value: &[u8]| tally.look_at(check, key, value);
        let limit = entries as usize;
        let found = shared.store.scan(Some(start), Direction::Forward, limit, &mut visit)?;
        self.tally.not_found += u64::from(found == 0);
        Ok(())
    }

    /// The query starts at a random secondary key, so an empty answer may be right.
    fn scan_index(&mut self, check: ValueCheck, entries: u32) -> Result<(), StoreError> {
        let Self { shared, rng, tally, .. } = self;
        let mut visit = |key: &[u8], value: &[u8]| tally.look_at(check, key, value);
        shared.store.scan_index(rng.next_u64(), entries as usize, &mut visit)?;
        Ok(())
    }
}
