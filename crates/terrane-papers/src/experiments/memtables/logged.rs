//! Trees with each memtable, with and without the log (§3.1: "enabling the WAL would not change the
//! trends").

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use terrane::{Design, Durability, Options};
use terrane_lab::memtable::Load;
use terrane_lab::output::human::nanos;
use terrane_policy::MemtableKind;

use super::sizes::{BufferMode, BufferSizes, ENTRY_BYTES, NamedMemtable};
use crate::results::Results;

/// The minimum number of rounds, enough to show how much rounds vary.
const ROUNDS_MIN: usize = 3;

/// The rounds of one memtable, without the log or with it.
#[derive(Clone, Default)]
struct InsertRounds {
    /// The nanoseconds per insert in each round.
    each: Vec<f64>,
    /// The share of the time that writers stalled, in each round.
    stalled: Vec<f64>,
    /// In the last round: the number of flushes, and the bytes that flushes and compactions wrote
    /// per user byte.
    flushes: u64,
    written: f64,
}

impl InsertRounds {
    fn least(&self) -> f64 {
        self.each.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn most(&self) -> f64 {
        self.each.iter().copied().fold(0.0, f64::max)
    }

    fn stalled(&self) -> f64 {
        self.stalled.iter().sum::<f64>() / self.stalled.len().max(1) as f64
    }

    /// Returns true if every round of this memtable took less time than every round of `other`.
    fn is_faster(&self, other: &Self) -> bool {
        self.most() < other.least()
    }
}

/// The rounds without the log, and with it.
type WithoutAndWith = [InsertRounds; 2];

pub(super) fn measure(sizes: &BufferSizes, dir: &Path, results: &mut Results) -> Result<()> {
    let load = Load::new(sizes.load.len(), ENTRY_BYTES, sizes.seed);
    for mode in BufferMode::ALL {
        let kinds = sizes.kinds(mode);
        let mut all = vec![WithoutAndWith::default(); kinds.len()];
        for _ in 0..sizes.rounds.max(ROUNDS_MIN) {
            for (number, kind) in kinds.iter().enumerate() {
                for (log, durability) in
                    [Durability::None, Durability::Process].into_iter().enumerate()
                {
                    let dir = dir.join(format!("log-{}-{number}-{log}", mode.name()));
                    run(sizes, &load, kind.kind, durability, &dir, &mut all[number][log])?;
                    std::fs::remove_dir_all(&dir)?;
                }
            }
        }
        show(&kinds, &all, mode, results);
    }
    Ok(())
}

fn show(kinds: &[NamedMemtable], all: &[WithoutAndWith], mode: BufferMode, results: &mut Results) {
    let rows = kinds.iter().zip(all).map(|(kind, both)| {
        let columns = both.iter().flat_map(|runs| {
            [
                format!("{} to {}", nanos(runs.least()), nanos(runs.most())),
                format!("{:.0} %", runs.stalled() * 100.0),
                runs.flushes.to_string(),
                format!("{:.2}", runs.written),
            ]
        });
        std::iter::once(kind.name.to_owned()).chain(columns).collect()
    });
    results.table(
        format!("§3.1: inserts into a tree without and with the log, {}", mode.name()),
        &[
            "memtable",
            "per insert, all rounds",
            "stalled",
            "flushes",
            "write amp.",
            "with log",
            "stalled",
            "flushes",
            "write amp.",
        ],
        rows.collect(),
    );
    let order = OrderChange::of(kinds, all);
    let differ = all.iter().filter(|[without, with]| without.flushes != with.flushes).count();
    let mode = mode.name();
    for (metric, count) in [
        ("pairs_apart", order.apart),
        ("pairs_kept", order.kept),
        ("pairs_closer", order.closer),
        ("pairs_turned", order.turned.len()),
        ("turned_by_stalls", order.turned_by_stalls),
        ("flushes_differ", differ),
    ] {
        results.record(metric, &[mode], count as f64);
    }
    results.record_text_of("turned_names", mode, order.turned.join(", "));
}

/// How the log changes the order of memtables.
#[derive(Default)]
struct OrderChange {
    /// The number of pairs in which one memtable is faster in every round without the log.
    apart: usize,
    /// Of these, the number of pairs in which the same memtable is also faster with the log.
    kept: usize,
    /// Of these, the number of pairs in which neither memtable is faster in every round with the
    /// log.
    closer: usize,
    /// The pairs in which the other memtable is faster with the log, and how long each stalls
    /// without the log.
    turned: Vec<String>,
    /// The number of pairs in `turned` in which the overtaking memtable stalls for a larger share
    /// of the time.
    turned_by_stalls: usize,
}

impl OrderChange {
    fn of(kinds: &[NamedMemtable], all: &[WithoutAndWith]) -> Self {
        let mut order = Self::default();
        let pairs = kinds.iter().zip(all);
        for (one, [one_without, one_with]) in pairs.clone() {
            for (other, [other_without, other_with]) in pairs.clone() {
                if !one_without.is_faster(other_without) {
                    continue;
                }
                order.apart += 1;
                if one_with.is_faster(other_with) {
                    order.kept += 1;
                } else if !other_with.is_faster(one_with) {
                    order.closer += 1;
                } else {
                    let stalled = [one_without, other_without].map(|runs| runs.stalled() * 100.0);
                    order.turned_by_stalls += usize::from(stalled[1] > stalled[0]);
                    order.turned.push(format!(
                        "{} (stalls {:.0} % of the time without it) and {} ({:.0} %)",
                        one.name, stalled[0], other.name, stalled[1]
                    ));
                }
            }
        }
        order
    }
}

/// Loads a tree, and adds the measurements to the rounds.
fn run(
    sizes: &BufferSizes,
    load: &Load,
    memtable: MemtableKind,
    durability: Durability,
    dir: &Path,
    runs: &mut InsertRounds,
) -> Result<()> {
    let mut design: Design = "leveling T=4; block=4KiB".parse()?;
    design.memtable = memtable;
    // A small buffer gives several flushes, equally many with and without the log.
    design.buffer_bytes = ((2 << 20) as f64 * sizes.scale) as u64;
    design.buffer_bytes = design.buffer_bytes.max(64 << 10);
    design.table_bytes = design.buffer_bytes;
    if let MemtableKind::Vector { prealloc_bytes, .. } = &mut design.memtable {
        *prealloc_bytes = (*prealloc_bytes).min(design.buffer_bytes);
    }
    design.validate()?;
    let options = Options::new().design(design).durability(durability).compaction_threads(1);
    let db = options.open(dir)?;
    let start = Instant::now();
    load.each(|key, value| db.put(key, value))?;
    let nanos = start.elapsed().as_nanos() as f64;
    let stalled = db.stats().stalls.total_micros() as f64 * 1e3;
    db.flush()?;
    db.wait_for_compactions()?;
    let stats = db.stats();
    db.close()?;
    let written = stats.flush_bytes_written + stats.compaction_bytes_written;
    runs.each.push(nanos / load.len() as f64);
    runs.stalled.push(stalled / nanos);
    runs.flushes = stats.flushes;
    runs.written = written as f64 / (load.len() * ENTRY_BYTES) as f64;
    Ok(())
}
