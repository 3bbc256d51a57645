//! Compares the advice with the engine by exact counts: bytes written to tables, and data blocks
//! read by lookups.

use std::sync::Arc;
use terrane_policy::advice::{
    DesignCandidate, DesignCosts, Limits, Objective, OperationShares, OperationTimes, RankedDesign,
};
use terrane_policy::random::SplitMix64;

use terrane::storage::MemoryStorage;
use terrane::{Background, Db, Design, Durability, Options};
use terrane_sim::MachineModel;
use terrane_workload::OperationMix;

use super::AdviceCase;
use super::question::{OperationProfile, RecordProfile};

const RECORDS: u64 = 40_000;
const RECORD_BYTES: usize = 128;
const OPERATIONS: u64 = 80_000;

/// A tree of three levels from a few megabytes.
const SMALL: &str = "balanced; buffer=128KiB; table=64KiB; base=512KiB; filter=monkey(8)";

fn case(mix: &str) -> AdviceCase {
    let records = RecordProfile { count: RECORDS as f64, bytes: RECORD_BYTES as f64 };
    let mix: OperationMix = mix.parse().unwrap();
    let mut machine = MachineModel::default();
    // Measured with the engine for entries of this size.
    (machine.costs.memtable_entry_bytes, machine.costs.table_entry_bytes) = (40.0, 13.0);
    AdviceCase {
        operations: OperationProfile::of_mix(&mix, records.count).unwrap(),
        records,
        now: SMALL.parse().unwrap(),
        filter_bits: 8.0,
        memory: 0,
        machine,
        objective: Objective::default(),
        limits: Limits::default(),
        writers: 1,
        prefixes: None,
        effort: 70,
        seed: 1,
    }
}

/// Loads a database and runs the operations of the mix. All due work completes before the next
/// write, so that all counts are deterministic. Returns the mean time per operation at the prices
/// of the case, the bytes written, and the data blocks searched.
fn measured(case: &AdviceCase, design: &Design) -> (f64, u64, u64) {
    let db: Db = Options::new()
        .design(design.clone())
        .durability(Durability::None)
        .background(Background::Inline)
        .storage(Arc::new(MemoryStorage::new(1)))
        .open("/advice")
        .unwrap();
    let value = [b'v'; RECORD_BYTES - 8];
    let settle = || while db.run_background_job().unwrap() {};
    // Odd multiples are never written, so they are missing keys between the written ones.
    let key = |number: u64| (number * 2 * (u64::MAX / (2 * RECORDS + 2))).to_be_bytes();
    let missing = |number: u64| ((number * 2 + 1) * (u64::MAX / (2 * RECORDS + 2))).to_be_bytes();
    for number in 0..RECORDS {
        db.put(key(number * 7919 % RECORDS), value).unwrap();
        settle();
    }
    let (shares, before) = (case.operations.shares, db.stats());
    let (mut random, mut runs) = (SplitMix64::new(7), 0.0);
    for number in 0..OPERATIONS {
        let chosen = random.bits() % RECORDS;
        let kind = random.unit();
        if kind < shares.writes {
            db.put(key(chosen), value).unwrap();
            settle();
        } else if kind < shares.writes + shares.found {
            assert!(db.get(key(chosen)).unwrap().is_some());
        } else if kind < shares.writes + shares.lookups() {
            assert!(db.get(missing(chosen)).unwrap().is_none());
        } else {
            let range = db.range(key(chosen)..).unwrap();
            assert!(range.take(shares.scan_entries as usize).all(|entry| entry.is_ok()));
        }
        if number % 100 == 0 {
            runs += db.tree().shape.run_count() as f64 * 100.0 / OPERATIONS as f64;
        }
    }
    let after = db.stats();
    let written = after.flush_bytes_written + after.compaction_bytes_written
        - before.flush_bytes_written
        - before.compaction_bytes_written;
    let blocks = after.get_blocks - before.get_blocks;
    let user = (after.user_bytes_written - before.user_bytes_written).max(1) as f64;
    let lookups = (after.gets - before.gets).max(1) as f64;
    let costs = DesignCosts {
        written: written as f64 / user,
        merged: (after.compaction_bytes_read - before.compaction_bytes_read) as f64 / user,
        // Per lookup of either kind, like the price.
        found_blocks: blocks as f64 / lookups,
        missing_blocks: blocks as f64 / lookups,
        value_reads: 0.0,
        runs,
        space: after.table_bytes as f64 / (RECORDS as f64 * (RECORD_BYTES + 13) as f64),
        stalled: None,
        p99_seconds: None,
    };
    db.close().unwrap();
    let question = case.question();
    let times = OperationTimes::of(&costs, &shares, question.record_bytes, &question.prices);
    (question.objective.score(&costs, &shares, &times), written, blocks)
}

/// Checks that the engine ranks the best, the middle and the worst design of the advice in the same
/// order.
fn check(mix: &str) {
    let case = case(mix);
    let found = case.search().unwrap();
    let order = |design: &Design| measured(&case, design);
    let (top, worst) = (&found.best[0], &found.worst[0]);
    let now = &found.now;
    let (best, middle, bottom) = (
        order(&top.candidate.design),
        order(&now.candidate.design),
        order(&worst.candidate.design),
    );
    let message = format!(
        "{mix}\n{:?} {best:?}\n{:?} {middle:?}\n{} {:?} {bottom:?}",
        top.candidate, now.candidate.costs, worst.candidate.name, worst.candidate.costs
    );
    // The engine may measure a design of nearly equal cost as slightly better.
    assert!(best.0 <= middle.0 * 1.02 && middle.0 < bottom.0, "{message}");
    let shares: OperationShares = case.operations.shares;
    if shares.writes > 0.7 {
        assert!(best.1 < bottom.1 && best.1 < middle.1, "{message}");
    }
    if shares.lookups() > 0.7 {
        assert!(best.2 <= bottom.2, "{message}");
    }
}

/// Returns a design with this score; its costs are the same as those of every other one.
pub(super) fn ranked(design: &str, score: f64) -> RankedDesign {
    let costs = DesignCosts {
        written: 1.0,
        merged: 0.0,
        found_blocks: 1.0,
        missing_blocks: 0.0,
        value_reads: 0.0,
        runs: 1.0,
        space: 1.0,
        stalled: None,
        p99_seconds: None,
    };
    let candidate = DesignCandidate { name: design.into(), design: design.parse().unwrap(), costs };
    RankedDesign { candidate, score, exceeds: Vec::new() }
}

#[test]
fn advice_for_writing_is_in_the_order_that_the_engine_measures() {
    check("update=95,get=5");
}

#[test]
fn advice_for_reading_is_in_the_order_that_the_engine_measures() {
    check("update=5,get=45,missing=50");
}

#[test]
fn advice_for_writing_and_scanning_is_in_the_order_that_the_engine_measures() {
    check("update=50,get=30,scan:16=20");
}
