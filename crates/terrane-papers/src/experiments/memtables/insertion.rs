//! Inserts alone: Fig. 1b, and the totals of §3.4.

use terrane_lab::memtable::{Queries, Series, percentile};
use terrane_lab::output::human::{nanos, ratio};

use super::sizes::{BufferMode, BufferSizes, least, of, plain};
use crate::results::Results;

/// The longest insert into each of our memtables, in nanoseconds.
pub(super) type LongestInserts = Vec<(&'static str, f64)>;

pub(super) fn measure(sizes: &BufferSizes, results: &mut Results) -> LongestInserts {
    let mut ours = Vec::new();
    for mode in BufferMode::ALL {
        let kinds = sizes.kinds(mode);
        let none = Queries::default();
        let totals = sizes.load.rounds_of_totals(&plain(&kinds), &none, sizes.rounds * 2);
        let series = sizes.load.rounds_of_series(&plain(&kinds), &none, sizes.rounds);
        let entries = sizes.load.len() as f64;
        let best: Vec<f64> = totals.iter().map(|rounds| least(rounds)).collect();
        let skip_list = of(&kinds, &best, "skip-list").unwrap_or(f64::NAN);
        let mut rows = Vec::new();
        ours.clear();
        for ((kind, series), totals) in kinds.iter().zip(&series).zip(&totals) {
            let [p99, p99_9, longest] = [0.99, 0.999, 1.0].map(|share| {
                let of = |one: &Series| percentile(&one.inserts, share);
                series.iter().map(of).collect::<Vec<f64>>()
            });
            let keys = [mode.name(), kind.name];
            let each: Vec<f64> = totals.iter().map(|total| total / entries).collect();
            results.record_least("insert_nanos", &keys, &each);
            results.record_least("longest_insert", &keys, &longest);
            let [total, p99, p99_9, longest] =
                [totals, &p99, &p99_9, &longest].map(|rounds| least(rounds));
            ours.push((kind.name, longest));
            rows.push(vec![
                kind.name.to_owned(),
                nanos(total / entries),
                ratio(skip_list / total),
                nanos(p99),
                nanos(p99_9),
                nanos(longest),
            ]);
        }
        let headers = ["memtable", "per insert", "rate against skip-list", "P99", "P99.9", "P100"];
        results.table(format!("Fig. 1b, §3.4: inserts alone, {}", mode.name()), &headers, rows);
    }
    ours
}
