//! One client thread: its state and its results.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use super::recorder::{Recorder, Recording};
use super::shared::Shared;
use crate::answers::Tally;
use crate::distribution::{Distribution, IndexChooser};
use crate::error::StoreError;
use crate::key::KeySpace;
use crate::latency::Latency;
use crate::mixed::{Hands, part};
use crate::options::RunOptions;
use crate::store::Store;
use crate::value::{ValueCheck, Values};
use crate::workload::Workload;

/// The results of a finished client.
#[derive(Debug)]
pub(super) struct ClientResult {
    pub(super) recording: Recording,
    pub(super) tally: Tally,
    /// The latencies of each kind of operation of a mix.
    pub(super) kinds: Vec<Latency>,
}

/// One client thread.
pub(super) struct Client<'a> {
    pub(super) store: &'a dyn Store,
    pub(super) options: &'a RunOptions,
    workload: Workload,
    shared: &'a Shared,
    pub(super) thread: u32,
    pub(super) keys: KeySpace,
    /// The key of the current operation.
    pub(super) key: Vec<u8>,
    pub(super) values: Values,
    pub(super) check: ValueCheck,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) tally: Tally,
    pub(super) recorder: Recorder<'a>,
    /// The latencies of each kind of operation of a mix.
    pub(super) kinds: Vec<Latency>,
}

impl<'a> Client<'a> {
    /// Returns the client of `thread`, numbered from zero.
    pub(super) fn new(
        store: &'a dyn Store,
        workload: Workload,
        options: &'a RunOptions,
        keys: KeySpace,
        thread: u32,
        shared: &'a Shared,
    ) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(options.seed);
        // Streams that are 2^128 numbers apart are independent; streams from related seeds might
        // not be.
        (0..thread).for_each(|_| rng.jump());
        let pool_seed = options.seed ^ (u64::from(thread) << 32);
        Self {
            store,
            options,
            workload,
            shared,
            thread,
            keys,
            key: vec![0; keys.key_size_bytes()],
            values: Values::new(options.value_size, options.compressibility, pool_seed),
            check: ValueCheck::new(options.value_size),
            rng,
            tally: Tally::default(),
            recorder: Recorder::new(&shared.done[thread as usize]),
            kinds: Vec::new(),
        }
    }

    /// Executes `operation` `count` times, or until another client fails.
    #[inline]
    pub(super) fn repeat(
        &mut self,
        count: u64,
        mut operation: impl FnMut(&mut Self) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        for _ in 0..count {
            operation(self)?;
            self.recorder.sample(1);
            if self.is_stopped() {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.shared.is_stopped()
    }

    /// Returns a chooser that draws from the loaded indexes with the distribution of the run.
    pub(super) fn chooser(&self) -> IndexChooser {
        let distribution = self.workload.distribution(self.options);
        let clients = self.shared.done.len() as u32;
        let start = part(self.options.num, self.thread, clients).start;
        IndexChooser::new(distribution.unwrap_or(Distribution::Uniform), self.options.num, start)
    }

    /// Returns the state that the operations of a mix need.
    pub(super) fn hands(&mut self) -> Hands<'_> {
        Hands {
            store: self.store,
            loaded: self.options.num,
            keys: &self.keys,
            key: &mut self.key,
            values: &mut self.values,
            check: self.check,
            rng: &mut self.rng,
            tally: &mut self.tally,
        }
    }

    /// Puts a new value at the current key.
    #[inline]
    pub(super) fn put(&mut self) -> Result<(), StoreError> {
        let value = self.values.value_for(&self.key, &mut self.rng);
        self.store.put(&self.key, value)?;
        self.tally.bytes_written += (self.key.len() + value.len()) as u64;
        Ok(())
    }

    /// Gets the current key, and returns whether it exists.
    #[inline]
    pub(super) fn get(&mut self) -> Result<bool, StoreError> {
        let Self { store, key, tally, check, .. } = self;
        store.get(key, &mut |value| tally.look_at(*check, key, value))
    }

    /// Gets the current key, which must exist.
    #[inline]
    pub(super) fn get_loaded(&mut self) -> Result<(), StoreError> {
        let found = self.get()?;
        self.tally.found += u64::from(found);
        self.tally.not_found += u64::from(!found);
        Ok(())
    }

    pub(super) fn finish(self) -> ClientResult {
        ClientResult { recording: self.recorder.finish(), tally: self.tally, kinds: self.kinds }
    }
}
