//! A small seeded random number generator: the seed of a failing test reproduces the failure.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng};

/// SplitMix64, a generator with 64 bits of state and one output per step.
#[derive(Debug, Clone)]
pub struct Rng {
    stream: SplitMix64,
}

impl Rng {
    /// Returns a generator whose whole sequence is determined by `seed`.
    pub fn new(seed: u64) -> Self {
        Self { stream: SplitMix64::seed_from_u64(seed) }
    }

    /// Returns the next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.stream.next_u64()
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.bits() % bound }
    }

    /// Returns an index below `len`.
    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// Returns a number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Returns true with the given probability in percent.
    pub fn percent(&mut self, probability: u64) -> bool {
        self.below(100) < probability
    }

    /// Returns a random element of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.index(items.len())]
    }

    /// Returns `len` random bytes. Unlike the engine tests, this crate is optimised.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 7);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.bits().to_be_bytes());
        }
        bytes.truncate(len);
        bytes
    }

    /// Returns a new generator whose sequence is determined by the state of this generator.
    #[must_use]
    pub fn fork(&mut self) -> Rng {
        Rng::new(self.bits())
    }
}

/// Returns the seed in the environment variable `TERRANE_SEED`, or `default`.
pub fn seed_from_env(default: u64) -> u64 {
    std::env::var("TERRANE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
