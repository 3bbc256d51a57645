//! Compares the cost model with the engine's own counters.
//!
//! The test writes records once each in random order and looks up present and absent keys on the
//! way. The engine's counts must match [`costs`] within the tolerances below. The tolerances cover
//! what the model leaves out (it averages over a compaction cycle, and ignores that movement picks
//! the table with the least overlap), and are far smaller than the differences between designs.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::print_stdout, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, Options};
use terrane_policy::cost::{CostEstimate, DataProfile, costs};

const RECORDS: u64 = 200_000;
const VALUE_BYTES: usize = 92;
const RECORD_BYTES: f64 = 100.0;
/// The load is cut into this many parts; lookups follow each part of the second half.
const PARTS: u64 = 20;
const LOOKUPS: u64 = 2_000;

/// The tolerances, relative to the model.
const WRITES_TOLERANCE: f64 = 0.20;
const RUNS_TOLERANCE: f64 = 0.30;
const PRESENT_TOLERANCE: f64 = 0.15;
const BYTES_TOLERANCE: f64 = 0.05;
/// A relative tolerance, and an absolute one in blocks. Smaller differences are chance.
const ABSENT_TOLERANCE: (f64, f64) = (0.35, 0.05);

/// Costs, either measured or computed.
#[derive(Debug, Default, Clone, Copy)]
struct Measurements {
    write_amplification: f64,
    runs: f64,
    absent: f64,
    present: f64,
    table_bytes: f64,
}

/// Distinct keys in random order.
fn key(number: u64) -> [u8; 8] {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Returns the number of blocks read per lookup of the given keys.
fn blocks(db: &Db, numbers: impl Iterator<Item = u64>, is_there: bool) -> f64 {
    let before = db.stats();
    for number in numbers {
        assert_eq!(db.contains(key(number)).unwrap(), is_there);
    }
    let after = db.stats();
    (after.get_blocks - before.get_blocks) as f64 / (after.gets - before.gets) as f64
}

fn engine(design: &Design) -> Measurements {
    let storage = Arc::new(MemoryStorage::new(1));
    let options = Options::new().storage(storage).background(Background::Inline);
    let db = options.design(design.clone()).open(Path::new("db")).unwrap();
    let mut sum = Measurements::default();
    let part = RECORDS / PARTS;
    for number in 0..RECORDS {
        db.put(key(number), [7; VALUE_BYTES]).unwrap();
        // A memtable holds ten times as many records as are written between these calls.
        while number % 256 == 0 && db.run_background_job().unwrap() {}
        let done = number + 1;
        if done % part == 0 && done > RECORDS / 2 {
            sum.runs += db.tree().shape.run_count() as f64;
            sum.absent += blocks(&db, RECORDS..RECORDS + LOOKUPS, false);
            // The model ignores keys in the memtable.
            let stored = done - design.buffer_bytes / 100;
            let stride = stored / LOOKUPS;
            sum.present += blocks(&db, (0..LOOKUPS).map(|index| index * stride), true);
        }
    }
    db.flush().unwrap();
    while db.run_background_job().unwrap() {}
    let stats = db.stats();
    let samples = (PARTS / 2) as f64;
    Measurements {
        write_amplification: stats.write_amplification().unwrap(),
        runs: sum.runs / samples,
        absent: sum.absent / samples,
        present: sum.present / samples,
        table_bytes: stats.table_bytes as f64,
    }
}

fn model(design: &Design) -> Measurements {
    let at = |records: u64| costs(design, &DataProfile::new(records as f64, RECORD_BYTES));
    let part = RECORDS / PARTS;
    let samples: Vec<CostEstimate> =
        (PARTS / 2 + 1..=PARTS).map(|index| at(index * part)).collect();
    let mean = |figure: fn(&CostEstimate) -> f64| {
        samples.iter().map(figure).sum::<f64>() / samples.len() as f64
    };
    let end = at(RECORDS);
    Measurements {
        write_amplification: end.write_amplification,
        runs: mean(|costs| costs.runs),
        absent: mean(|costs| costs.absent_lookup_blocks),
        present: mean(|costs| costs.present_lookup_blocks),
        table_bytes: end.table_bytes,
    }
}

/// Measures and computes the costs of all designs, on two threads.
fn measurements<'a>(specs: &[&'a str]) -> Vec<(&'a str, Measurements, Measurements)> {
    let measure = |spec: &&'a str| {
        let buffer = if spec.contains("buffer=") { "" } else { "; buffer=256KiB" };
        let text = format!("{spec}{buffer}; table=256KiB; block=4KiB");
        let design: Design = text.parse().unwrap();
        (*spec, engine(&design), model(&design))
    };
    std::thread::scope(|scope| {
        let halves = specs.chunks(specs.len().div_ceil(2));
        let halves: Vec<_> = halves
            .map(|half| scope.spawn(|| half.iter().map(measure).collect::<Vec<_>>()))
            .collect();
        halves.into_iter().flat_map(|half| half.join().unwrap()).collect()
    })
}

#[test]
fn engine_counts_match_the_cost_model() {
    let mut far = Vec::new();
    for (spec, counted, said) in measurements(&[
        "leveling T=4; granularity=level; movement=none",
        "leveling T=8; granularity=level; movement=none",
        "leveling T=4; granularity=file; movement=round-robin",
        "leveling T=8; granularity=file; movement=round-robin",
        "1-leveling T=4 L0=4; granularity=file; movement=round-robin",
        "1-leveling T=4 L0=4; granularity=level; movement=none; flush=merge",
        // From 250 KiB on, the model expects one full merge fewer than takes place.
        "tiering T=4; flush=merge; buffer=248KiB",
        "tiering T=4",
        "tiering T=8",
        "lazy-leveling T=4",
        "hybrid T=6 L0=2 runs=2,last:1",
        "leveling T=4; filter=monkey(5); granularity=level; movement=none",
        "tiering T=4; filter=2",
    ]) {
        println!("{spec}\n  counted {counted:?}\n  said    {said:?}");
        let mut check = |what: &str, counted: f64, said: f64, share: f64, least: f64| {
            if (counted - said).abs() > (said * share).max(least) {
                far.push(format!("{spec}: {what} {counted:.3}, the model says {said:.3}"));
            }
        };
        let (wa, runs) = (counted.write_amplification, counted.runs);
        check("write amplification", wa, said.write_amplification, WRITES_TOLERANCE, 0.0);
        check("runs", runs, said.runs, RUNS_TOLERANCE, 0.5);
        let (share, least) = ABSENT_TOLERANCE;
        check("blocks of absent keys", counted.absent, said.absent, share, least);
        check("blocks of present keys", counted.present, said.present, PRESENT_TOLERANCE, 0.0);
        check("bytes", counted.table_bytes, said.table_bytes, BYTES_TOLERANCE, 0.0);
    }
    assert!(far.is_empty(), "{}", far.join("\n"));
}
