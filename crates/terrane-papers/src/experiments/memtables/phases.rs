//! `memtable=auto` on a workload that changes twice, and every kind that it can choose.

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use terrane::storage::MemoryStorage;
use terrane::{Db, Design, Durability, Event, Options};
use terrane_lab::output::human::nanos;

use super::sizes::BufferSizes;
use crate::results::Results;

/// The number of operations in a phase; a memtable takes about 50 thousand operations.
const OPERATIONS: f64 = 400_000.0;
const BUFFER: &str = "8MiB";
const VALUE_BYTES: usize = 100;

/// Lookups and ranges start at one of this many most recently inserted keys.
const RECENT: u64 = 20_000;

/// The number of entries that a range reads.
const RANGE: usize = 10;

/// The operation after each write of a phase.
#[derive(Debug, Clone, Copy)]
enum AutoPhase {
    Writes,
    Lookups,
    Ranges,
}

const PHASES: [(AutoPhase, &str); 3] = [
    (AutoPhase::Writes, "writes only"),
    (AutoPhase::Lookups, "a lookup after each"),
    (AutoPhase::Ranges, "a range after each"),
];

fn key(number: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    key[8..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The times of one kind, and the choices that `auto` made.
struct AutoRun {
    /// The nanoseconds per step in each phase.
    each: [f64; PHASES.len()],
    /// The kind chosen last in each phase, and then the number of changes; empty for fixed kinds.
    chosen: Vec<String>,
}

fn open(kind: &str) -> Result<Db> {
    let design = "leveling; trigger=manual; delay=never; stop=never";
    let design: Design = format!("{design}; buffer={BUFFER}; memtable={kind}").parse()?;
    let options = Options::new().design(design).durability(Durability::None);
    Ok(options.storage(Arc::new(MemoryStorage::new(1))).open("db")?)
}

fn run(kind: &str, steps: u64) -> Result<AutoRun> {
    let db = open(kind)?;
    let value = [7; VALUE_BYTES];
    let mut number = 0;
    let mut each = [0.0; PHASES.len()];
    let mut chosen = Vec::new();
    for ((phase, _), each) in PHASES.iter().zip(&mut each) {
        let start = Instant::now();
        for _ in 0..steps {
            db.put(key(number), value)?;
            number += 1;
            let recent = number - 1 - number.wrapping_mul(7919) % RECENT.min(number);
            match phase {
                AutoPhase::Writes => {}
                AutoPhase::Lookups => drop(db.get(key(recent))?),
                AutoPhase::Ranges => {
                    let found = db.range(key(recent)..)?.take(RANGE);
                    found.into_iter().try_for_each(|entry| entry.map(drop))?;
                }
            }
        }
        *each = start.elapsed().as_nanos() as f64 / steps.max(1) as f64;
        let kind = db.tree().memtable_choice.map(|choice| choice.kind.to_string());
        chosen.extend(kind);
    }
    let events = db.events();
    let changes =
        events.iter().filter(|one| matches!(one.event, Event::MemtableChosen { .. })).count();
    if !chosen.is_empty() {
        chosen.push(changes.to_string());
    }
    db.close()?;
    Ok(AutoRun { each, chosen })
}

pub(super) fn measure(sizes: &BufferSizes, results: &mut Results) -> Result<()> {
    let steps = (OPERATIONS * sizes.scale) as u64;
    let kinds = ["vector", "vector(query=scan)", "hash-vector(buckets=65536)", "btree", "skiplist"];
    let all: Vec<&str> = kinds.into_iter().chain(["auto"]).collect();
    let mut best: Vec<[f64; PHASES.len()]> = vec![[f64::INFINITY; PHASES.len()]; all.len()];
    let mut chosen = Vec::new();
    for _ in 0..sizes.rounds.min(2) {
        for (kind, best) in all.iter().zip(&mut best) {
            let run_of_kind = run(kind, steps)?;
            best.iter_mut().zip(run_of_kind.each).for_each(|(best, each)| *best = best.min(each));
            if !run_of_kind.chosen.is_empty() {
                chosen = run_of_kind.chosen;
            }
        }
    }
    let fixed = |phase: usize| best[..kinds.len()].iter().map(move |each| each[phase]);
    let least: Vec<f64> =
        (0..PHASES.len()).map(|phase| fixed(phase).fold(f64::INFINITY, f64::min)).collect();
    let rows = all.iter().zip(&best).map(|(kind, each)| {
        let cells = each.iter().zip(&least);
        let cells = cells.map(|(each, least)| format!("{} ({:.2}×)", nanos(*each), each / least));
        std::iter::once(format!("`{kind}`")).chain(cells).collect()
    });
    let headers: Vec<&str> =
        std::iter::once("memtable").chain(PHASES.iter().map(|(_, name)| *name)).collect();
    results.table(
        "`memtable=auto` on a workload that changes twice: a step, and over the best fixed kind",
        &headers,
        rows.collect(),
    );
    let over = best.last().into_iter().flatten().zip(&least).map(|(auto, least)| auto / least);
    let worst = over.fold(0.0, f64::max);
    let changes = chosen.pop().unwrap_or_default();
    let kinds: Vec<String> = chosen.iter().map(|kind| format!("`{kind}`")).collect();
    results.record("auto_steps", &[], steps as f64);
    results.record("auto_range", &[], RANGE as f64);
    results.record("auto_worst", &[], worst);
    results.record_text("auto_changes", changes);
    results.record_text("auto_kinds", kinds.join(", "));
    Ok(())
}
