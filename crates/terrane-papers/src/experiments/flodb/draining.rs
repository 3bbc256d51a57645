//! Multi-insert against single inserts, by the distance of the keys: Fig. 8.

use std::convert::Infallible;
use std::time::Instant;

use terrane::memtable::{self, EntryKind, FrontLevel};
use terrane_lab::output::human::{nanos, ratio};
use terrane_policy::MemtableKind;
use terrane_policy::flodb::{DrainInsert, FloDb};

use super::sizes::{FloDbSizes, NamedMemtable, random_numbers, two_levels};
use crate::experiments::memtables::BufferMode;
use crate::results::Results;

/// The number of keys in the lower level; the paper has 100 million.
const INITIAL: u64 = 1_000_000;

/// The number of keys that each drain moves, and the number of drains at the default scale.
const BATCH: u64 = 5;
const DRAINS: u64 = 20_000;

/// Neighbourhoods: the keys of a drain lie within twice this many keys of the lower level.
const NEIGHBOURHOODS: [u64; 5] = [10, 100, 1000, 10_000, 100_000];

/// Small enough that a drain visits hardly any empty buckets of the Membuffer.
const BUFFER_BYTES: u64 = 4 << 10;

/// Returns the nanoseconds that draining a key takes, by neighbourhood.
fn drain(sizes: &FloDbSizes, kind: MemtableKind) -> [f64; NEIGHBOURHOODS.len()] {
    const VALUE: [u8; 8] = [7; 8];
    let initial = sizes.scaled(INITIAL);
    let memtable = memtable::new(kind, BUFFER_BYTES, &sizes.pool);
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
    let mut random = random_numbers(sizes.seed);
    NEIGHBOURHOODS.map(|neighbourhood| {
        let (mut spent, mut drained) = (0, 0);
        let width = (2 * neighbourhood).min(initial - 1) * step;
        for _ in 0..sizes.scaled(DRAINS) {
            let from = random.below(u64::MAX - width);
            (0..BATCH).for_each(|_| put(from + random.below(width)));
            let before = drained_now();
            let start = Instant::now();
            drain_all();
            spent += start.elapsed().as_nanos();
            drained += drained_now() - before;
        }
        spent as f64 / drained.max(1) as f64
    })
}

pub(super) fn measure(sizes: &FloDbSizes, results: &mut Results) {
    for mode in BufferMode::ALL {
        let kind = |name, insert| {
            let levels =
                FloDb { insert, partition_bits: 0, membuffer_percent: 90, ..two_levels(mode) };
            NamedMemtable { name, kind: MemtableKind::FloDb(levels) }
        };
        let kinds = [kind("single", DrainInsert::Single), kind("multi", DrainInsert::Multi)];
        let rounds = sizes.rounds(&kinds, |kind| Ok::<_, Infallible>(drain(sizes, kind.kind)));
        let rounds = rounds.unwrap_or_default();
        let mut rows = Vec::new();
        for (at, neighbourhood) in NEIGHBOURHOODS.iter().enumerate() {
            let key = neighbourhood.to_string();
            let [single, multi] = [(0, "single"), (1, "multi")].map(|(kind, insert)| {
                let rounds = rounds.get(kind).map_or_else(Vec::new, |rounds| rounds.of(at));
                results.record_least("drain_nanos", &[mode.name(), &key, insert], &rounds);
                rounds.into_iter().fold(f64::INFINITY, f64::min)
            });
            rows.push(vec![key, nanos(single), nanos(multi), ratio(single / multi)]);
        }
        results.table(
            format!("Fig. 8: draining five keys, a key, {}", mode.name()),
            &["neighbourhood, keys", "single inserts", "multi-insert", "gain"],
            rows,
        );
    }
}
