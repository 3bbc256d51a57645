//! Ranges between inserts, and mixes of operations: Fig. 2a and 5.

use terrane_lab::memtable::{Queries, mean, percentile};
use terrane_lab::output::human::nanos;

use super::sizes::{BufferMode, BufferSizes, NamedMemtable, least, plain};
use crate::results::Results;

/// Selectivities, each with its measurement key.
const SELECTIVITIES: [(&str, f64); 3] = [("0.0001", 0.0001), ("0.02", 0.02), ("0.4", 0.4)];

/// The number of ranges: a few suffice, because ranges are slow in memtables that copy.
const RANGES: usize = 50;

/// Queries begin after this share of the inserts.
const AFTER: f64 = 0.75;

pub(super) fn measure(sizes: &BufferSizes, results: &mut Results) {
    for mode in BufferMode::ALL {
        let kinds = sizes.kinds(mode);
        ranges(sizes, mode, &kinds, results);
        mixes(sizes, mode, &kinds, results);
    }
}

/// Measures Fig. 5.
fn ranges(sizes: &BufferSizes, mode: BufferMode, kinds: &[NamedMemtable], results: &mut Results) {
    let mut rows: Vec<Vec<String>> = kinds.iter().map(|kind| vec![kind.name.to_owned()]).collect();
    for (key, selectivity) in SELECTIVITIES {
        let queries = Queries { ranges: RANGES, selectivity, after: AFTER, ..Queries::default() };
        let series = sizes.load.rounds_of_series(&plain(kinds), &queries, sizes.rounds.min(2));
        for ((row, kind), series) in rows.iter_mut().zip(kinds).zip(&series) {
            let of = |of: fn(&[u64]) -> f64| -> Vec<f64> {
                series.iter().map(|series| of(&series.ranges)).collect()
            };
            let (means, longest) = (of(mean), of(|ranges| percentile(ranges, 1.0)));
            results.record_least("range_nanos", &[mode.name(), key, kind.name], &means);
            row.push(format!("{} / {}", nanos(least(&means)), nanos(least(&longest))));
        }
    }
    let mode = mode.name();
    let title = format!("Fig. 5: ranges between inserts by selectivity, mean / longest, {mode}");
    results.table(title, &["memtable", "0.0001", "0.02", "0.4"], rows);
}

/// Measures Fig. 2a.
fn mixes(sizes: &BufferSizes, mode: BufferMode, kinds: &[NamedMemtable], results: &mut Results) {
    let ranges = |(_, selectivity): (&str, f64)| Queries {
        ranges: RANGES,
        selectivity,
        after: AFTER,
        points: 0,
    };
    let mixes = [
        ("inserts", Queries::default()),
        ("with lookups", Queries { points: sizes.lookups(), after: AFTER, ..Queries::default() }),
        ("with short ranges", ranges(SELECTIVITIES[0])),
        ("with long ranges", ranges(SELECTIVITIES[2])),
    ];
    let mut rows: Vec<Vec<String>> = kinds.iter().map(|kind| vec![kind.name.to_owned()]).collect();
    for (mix, queries) in &mixes {
        let totals = sizes.load.rounds_of_totals(&plain(kinds), queries, sizes.rounds.min(2));
        for ((row, kind), totals) in rows.iter_mut().zip(kinds).zip(totals) {
            results.record_least("mix_nanos", &[mode.name(), mix, kind.name], &totals);
            row.push(format!("{:.2}", sizes.load.len() as f64 / least(&totals) * 1e3));
        }
    }
    results.table(
        format!("Fig. 2a: million inserts a second, {}", mode.name()),
        &["memtable", mixes[0].0, mixes[1].0, mixes[2].0, mixes[3].0],
        rows,
    );
}
