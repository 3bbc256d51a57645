//! Multi-insert against single inserts, by how near the keys are: Fig. 8.

use std::convert::Infallible;
use std::time::Instant;

use terrane::memtable::{self, EntryKind};
use terrane_policy::MemtableKind;
use terrane_policy::flodb::{DrainInsert, FloDb};

use super::Report;
use super::setting::{Kind, Random, Setting, two_levels};
use crate::claims::report::{Claim, nanos, times};
use crate::claims::setting::Mode;

/// Keys of the lower level, and of a drain; the paper has 100 million, and 5.
const INITIAL: u64 = 500_000;
const BATCH: u64 = 5000;
const DRAINS: u64 = 10;

/// Keys of the lower level for each that is drained, in the range that they are drained into.
const NEIGHBOURS: [u64; 3] = [1, 10, 100];

/// Nanoseconds a key.
fn drain(setting: &Setting, kind: MemtableKind, neighbours: u64) -> f64 {
    const VALUE: [u8; 8] = [7; 8];
    let initial = setting.scaled(INITIAL);
    let batch = BATCH.min(initial / 10);
    let memtable = memtable::new(kind, 4 << 20, &setting.pool);
    let mut seq = 0;
    let step = u64::MAX / initial;
    let mut put = |key: u64| {
        seq += 1;
        memtable.update(&key.to_be_bytes(), seq, EntryKind::Value, &VALUE, || seq - 1);
    };
    for number in 0..initial {
        put((number.wrapping_mul(0x9e37_79b9) % initial) * step);
    }
    memtable.drain_all();
    let mut random = Random::new(setting.sizes.seed);
    let (mut nanos, mut drained) = (0, 0);
    for _ in 0..DRAINS {
        let width = (batch * neighbours).min(initial) * step;
        let from = random.below(u64::MAX - width + 1);
        (0..batch).for_each(|_| put(from + random.below(width)));
        let before = memtable.drained();
        let start = Instant::now();
        memtable.drain_all();
        nanos += start.elapsed().as_nanos();
        drained += memtable.drained() - before;
    }
    nanos as f64 / drained.max(1) as f64
}

pub(super) fn measure(setting: &Setting, report: &mut Report) {
    for mode in Mode::ALL {
        let kind = |name, insert| {
            let levels =
                FloDb { insert, partition_bits: 0, membuffer_percent: 90, ..two_levels(mode) };
            Kind { name, kind: MemtableKind::FloDb(levels) }
        };
        let kinds = [kind("single", DrainInsert::Single), kind("multi", DrainInsert::Multi)];
        let mut rows = Vec::new();
        let mut all = Vec::new();
        for neighbours in NEIGHBOURS {
            let best = setting
                .best(&kinds, |kind| Ok::<_, Infallible>([-drain(setting, kind.kind, neighbours)]))
                .unwrap_or_default();
            let [single, multi] = [0, 1].map(|at| best.get(at).map_or(f64::NAN, |[nanos]| -nanos));
            rows.push(vec![
                neighbours.to_string(),
                nanos(single),
                nanos(multi),
                times(single / multi),
            ]);
            all.push((single / multi, multi));
        }
        report.table(
            format!("Fig. 8: draining, a key, {}", mode.name()),
            &["keys of the lower level for each", "single inserts", "multi-insert", "gain"],
            rows,
        );
        let (Some(near), Some(far)) = (all.first(), all.last()) else { continue };
        report.claim(Claim::new(
            "Fig. 8",
            "multi-insert beats single inserts",
            mode,
            (format!("{} where keys are near", times(near.0)), near.0 > 1.1),
            "the path from the root is in the cache either way",
        ));
        report.claim(Claim::new(
            "Fig. 8",
            "it takes the less the nearer the keys are",
            mode,
            (format!("far ones take {}", times(far.1 / near.1)), far.1 > near.1),
            "",
        ));
    }
}
