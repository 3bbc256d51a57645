//! Openings of databases in directories, and the crashes to try at each call.

use std::sync::Arc;

use terrane::storage::{Crash, MemoryStorage, Storage, Survival};
use terrane::{Background, Durability, Options};
use terrane_testkit::Rng;

/// Options of a small database without threads, whose writes are durable.
pub fn options(storage: Arc<dyn Storage>) -> Options {
    Options::new()
        .storage(storage)
        .background(Background::Inline)
        .durability(Durability::Sync)
        .memory_budget(1 << 20)
        .log_segment_bytes(64 << 10)
}

pub fn in_memory(storage: &MemoryStorage) -> Options {
    options(Arc::new(storage.clone()))
}

/// The crashes to try at a point: all at the first interruption, and one at each later one.
pub fn crashes(depth: usize, rng: &mut Rng) -> Vec<Crash> {
    let power = |percent, seed| Crash::Power(Survival { percent, seed });
    let (a, b, c) = (rng.bits(), rng.bits(), rng.bits());
    let all = [Crash::Process, power(0, a), power(50, b), power(100, c)];
    if depth == 0 { all.into() } else { vec![*rng.pick(&all)] }
}
