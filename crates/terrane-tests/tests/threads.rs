//! Four threads use one database, each with a model of the keys that it owns, while a fifth thread
//! changes everything that can be changed in an open database.
//!
//! Every thread compares each answer with its model, and everything with all models whenever the
//! database is reopened. Background work, storage, clock, listener and all options are drawn.
//! `TERRANE_SEED` sets the first seed, `TERRANE_ROUNDS` the number of seeds.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "users have threads of their own")]

use std::path::PathBuf;
use std::sync::Arc;

use terrane::storage::{DiskStorage, FaultStorage, Storage};
use terrane::{Background, WritePath};
use terrane_testkit::{Rng, run_guarded, seed_from_env};
use terrane_tests::config::{Config, memory};
use terrane_tests::outside::{JumpingClock, MapStorage};
use terrane_tests::script::Counts;
use terrane_tests::threads::{Crowd, Environment};

fn rounds(default: u64) -> u64 {
    std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Runs some phases of a seed; the database is reopened between them.
fn run(seed: u64, config: Config, storage: Arc<dyn Storage>, dir: PathBuf, steps: u64) -> Counts {
    let mut rng = Rng::new(seed ^ 0x7412_ead5);
    let clock = rng.percent(25).then(|| Arc::new(JumpingClock::new(1_000_000)));
    let mut crowd = Crowd::new(seed, config, Environment { storage, clock, dir });
    for _ in 0..rng.between(2, 4) {
        crowd.run_phase(steps);
    }
    crowd.finish()
}

fn run_all(seed: u64, rounds: u64, make: impl Fn(u64, &mut Config) -> Arc<dyn Storage>) {
    let mut counts = Counts::default();
    for seed in seed..seed + rounds {
        let mut config = Config::random(&mut Rng::new(seed ^ 0x00c0_ffee));
        let storage = make(seed, &mut config);
        counts.add(run_guarded(move || run(seed, config, storage, PathBuf::from("db"), 400)));
    }
    counts.print();
}

#[test]
fn four_threads_agree_with_their_models() {
    run_all(seed_from_env(500_000), rounds(5), |seed, _| match seed % 4 {
        0 => Arc::new(FaultStorage::new(memory(seed))),
        1 => Arc::new(MapStorage::default()),
        _ => memory(seed),
    });
}

#[test]
fn four_threads_that_do_the_background_work_agree_with_their_models() {
    run_all(seed_from_env(600_000), rounds(5), |seed, config| {
        config.background = Background::Inline;
        config.write_path = [WritePath::Concurrent, WritePath::Queue][seed as usize % 2];
        memory(seed)
    });
}

#[test]
fn four_threads_on_disk_agree_with_their_models() {
    let mut counts = Counts::default();
    let first = seed_from_env(700_000);
    for seed in first..first + rounds(5).div_ceil(4) {
        let dir = tempfile::tempdir().unwrap();
        let config = Config::random(&mut Rng::new(seed));
        let db = dir.path().join("db");
        counts.add(run_guarded(move || run(seed, config, Arc::new(DiskStorage), db, 400)));
    }
    counts.print();
}
