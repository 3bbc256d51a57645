//! Multi-insert against single inserts, by the distance of the keys: Fig. 8.

use std::convert::Infallible;
use std::time::Instant;

use terrane::memtable::{self, EntryKind, FrontLevel};
use terrane_policy::MemtableKind;
use terrane_policy::flodb::{DrainInsert, FloDb};

use super::sizes::{FloDbSizes, NamedMemtable, SplitMix, two_levels};
use crate::experiments::memtables::BufferMode;
use crate::human::{nanos, ratio};
use crate::results::Results;

/// The number of keys in the lower level, and the number that each drain moves; the paper has 100
/// million and 5.
const INITIAL: u64 = 500_000;
const BATCH: u64 = 5000;
const DRAINS: u64 = 10;

/// The number of keys of the lower level per drained key, within the range of the drained keys.
const NEIGHBOURS: [u64; 3] = [1, 10, 100];

/// Returns the nanoseconds that draining a key takes.
fn drain(sizes: &FloDbSizes, kind: MemtableKind, neighbours: u64) -> f64 {
    const VALUE: [u8; 8] = [7; 8];
    let initial = sizes.scaled(INITIAL);
    let batch = BATCH.min(initial / 10);
    let memtable = memtable::new(kind, 4 << 20, &sizes.pool);
    let mut seq = 0;
    let step = u64::MAX / initial;
    let mut put = |key: u64| {
        seq += 1;
        memtable.update(&key.to_be_bytes(), seq, EntryKind::Value, &VALUE, || seq - 1);
    };
    for number in 0..initial {
        put((number.wrapping_mul(0x9e37_79b9) % initial) * step);
    }
    let drain_all = || memtable.front_level().into_iter().for_each(FrontLevel::drain_all);
    let drained_now = || memtable.front_level().map_or(0, FrontLevel::drained);
    drain_all();
    let mut random = SplitMix::new(sizes.seed);
    let (mut spent, mut drained) = (0, 0);
    for _ in 0..DRAINS {
        let width = (batch * neighbours).min(initial) * step;
        let from = random.below(u64::MAX - width + 1);
        (0..batch).for_each(|_| put(from + random.below(width)));
        let before = drained_now();
        let start = Instant::now();
        drain_all();
        spent += start.elapsed().as_nanos();
        drained += drained_now() - before;
    }
    spent as f64 / drained.max(1) as f64
}

pub(super) fn measure(sizes: &FloDbSizes, results: &mut Results) {
    for mode in BufferMode::ALL {
        let kind = |name, insert| {
            let levels =
                FloDb { insert, partition_bits: 0, membuffer_percent: 90, ..two_levels(mode) };
            NamedMemtable { name, kind: MemtableKind::FloDb(levels) }
        };
        let kinds = [kind("single", DrainInsert::Single), kind("multi", DrainInsert::Multi)];
        let mut rows = Vec::new();
        for neighbours in NEIGHBOURS {
            let rounds = sizes
                .rounds(&kinds, |kind| Ok::<_, Infallible>([drain(sizes, kind.kind, neighbours)]))
                .unwrap_or_default();
            let key = neighbours.to_string();
            let [single, multi] = [(0, "single"), (1, "multi")].map(|(at, insert)| {
                let rounds = rounds.get(at).map_or_else(Vec::new, |rounds| rounds.of(0));
                results.record_least("drain_nanos", &[mode.name(), &key, insert], &rounds);
                rounds.into_iter().fold(f64::INFINITY, f64::min)
            });
            rows.push(vec![key, nanos(single), nanos(multi), ratio(single / multi)]);
        }
        results.table(
            format!("Fig. 8: draining, a key, {}", mode.name()),
            &["keys of the lower level for each", "single inserts", "multi-insert", "gain"],
            rows,
        );
    }
}
