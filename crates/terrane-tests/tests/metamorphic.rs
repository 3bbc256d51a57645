//! The same operations have the same results under all settings, and agree with a model.
//!
//! `TERRANE_SEED` sets the first seed, `TERRANE_ROUNDS` the number of seeds.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests"
)]

use std::path::Path;

use terrane_testkit::{Rng, seed_from_env};
use terrane_tests::config::{Config, check_memtables_drawn, disk, memory, new_path};
use terrane_tests::filtered::FilteredScript;
use terrane_tests::script::{Counts, Script, Weights};

fn rounds(default: u64) -> u64 {
    std::env::var("TERRANE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn run(seed: u64, steps: u64, weights: &Weights) -> Counts {
    let mut rng = Rng::new(seed ^ 0x00c0_ffee);
    let config = Config::random(&mut rng);
    let mut script = Script::new(seed, config, memory(seed), new_path(&mut rng, Path::new("")));
    for _ in 0..steps {
        script.step(weights);
    }
    let counts = script.counts;
    script.finish();
    counts
}

fn run_all(seed: u64, weights: &Weights) {
    let mut counts = Counts::default();
    let rounds = rounds(40);
    for round in 0..rounds {
        counts.add(run(seed + round, 700, weights));
    }
    if rounds >= 40 {
        check_memtables_drawn();
    }
    counts.print();
}

#[test]
fn random_operations_agree_with_the_model() {
    run_all(seed_from_env(100), &Weights::BALANCED);
}

#[test]
fn random_operations_with_a_compaction_filter_agree_with_the_model() {
    let seed = seed_from_env(400_000);
    let mut found_filtered = 0;
    for seed in seed..seed + rounds(40) {
        let mut rng = Rng::new(seed);
        let mut script = FilteredScript::new(seed, memory(seed), new_path(&mut rng, Path::new("")));
        (0..1500).for_each(|_| script.step());
        found_filtered += script.found_filtered;
    }
    assert!(found_filtered > 0);
}

#[test]
fn random_range_deletes_agree_with_the_model() {
    run_all(seed_from_env(200_000), &Weights::RANGES);
}

#[test]
fn random_operations_on_disk_agree_with_the_model() {
    let seed = seed_from_env(300_000);
    let mut counts = Counts::default();
    // Most of the time goes into waiting for the disk, so fewer seeds are tried than in memory.
    for round in 0..rounds(40).div_ceil(10) {
        let dir = tempfile::tempdir().unwrap();
        let mut rng = Rng::new(seed + round);
        let config = Config::random(&mut rng);
        let path = new_path(&mut rng, dir.path());
        let mut script = Script::new(seed + round, config, disk(), path);
        for _ in 0..600 {
            script.step(&Weights::BALANCED);
        }
        counts.add(script.counts);
        script.finish();
    }
    counts.print();
}
