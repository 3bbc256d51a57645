//! Measures lookups between inserts, and how they depend on X and H: Fig. 1a, 2b, 4.

use terrane_lab::memtable::{Queries, Series, mean, percentile};
use terrane_lab::output::human::{nanos, ratio};
use terrane_policy::MemtableKind;

use super::insertion::LongestInserts;
use super::sizes::{
    BufferMode, BufferSizes, PREFIX, hash_linked_list, hash_skip_list, least, of, plain, query,
};
use crate::results::Results;

/// Lookups begin after this share of the inserts (§3.3).
const AFTER: f64 = 0.75;

/// The shares of lookups of Fig. 1a.
const SHARES: [f64; 4] = [0.0, 0.0001, 0.0005, 0.001];

/// The number of lookups in experiments that measure only the cost of lookups.
const MANY_LOOKUPS: usize = 5000;

/// Prefixes of the grid of Fig. 2b.
const PREFIXES: [u8; 7] = [0, 1, 2, 4, 6, 8, 10];

pub(super) fn measure(sizes: &BufferSizes, inserts: &LongestInserts, results: &mut Results) {
    share_of_lookups(sizes, results);
    for mode in BufferMode::ALL {
        between_inserts(sizes, mode, inserts, results);
    }
    for mode in BufferMode::ALL {
        by_prefix_and_buckets(sizes, mode, results);
        by_buckets(sizes, mode, results);
    }
}

/// Measures Fig. 1a.
fn share_of_lookups(sizes: &BufferSizes, results: &mut Results) {
    for mode in BufferMode::ALL {
        let prealloc_bytes = sizes.prealloc_bytes();
        let vector = [MemtableKind::Vector { prealloc_bytes, query: query(mode) }];
        let mut rows = Vec::new();
        let mut none = f64::NAN;
        for share in SHARES {
            let points = (share * sizes.load.len() as f64) as usize;
            let queries = Queries::points(points);
            let totals = sizes.load.rounds_of_totals(&vector, &queries, sizes.rounds);
            let operations = (sizes.load.len() + points) as f64;
            let rounds: Vec<f64> = totals[0].iter().map(|total| total / operations).collect();
            let each = least(&rounds);
            if share == 0.0 {
                none = each;
            }
            let percent = (share * 100.0).to_string();
            results.record_least("mixed_nanos", &[mode.name(), &percent], &rounds);
            rows.push(vec![format!("{percent} %"), nanos(each), ratio(each / none)]);
        }
        let title =
            format!("Fig. 1a: a preallocated vector by its share of lookups, {}", mode.name());
        results.table(title, &["lookups", "per operation", "against none"], rows);
    }
}

/// Measures Fig. 4a to 4c.
fn between_inserts(
    sizes: &BufferSizes,
    mode: BufferMode,
    inserts: &LongestInserts,
    results: &mut Results,
) {
    let kinds = sizes.kinds(mode);
    let queries = Queries { points: sizes.lookups(), after: AFTER, ..Queries::default() };
    let series = sizes.load.rounds_of_series(&plain(&kinds), &queries, sizes.rounds);
    let of_rounds = |rounds: &[Series], of: fn(&[u64]) -> f64| -> Vec<f64> {
        rounds.iter().map(|series| of(&series.points)).collect()
    };
    let means: Vec<f64> = series.iter().map(|rounds| least(&of_rounds(rounds, mean))).collect();
    let skip_list = of(&kinds, &means, "skip-list").unwrap_or(f64::NAN);
    let mut rows = Vec::new();
    let mut stalls = Vec::new();
    for ((kind, rounds), best) in kinds.iter().zip(&series).zip(&means) {
        let longest = least(&of_rounds(rounds, |points| percentile(points, 1.0)));
        let keys = [mode.name(), kind.name];
        results.record_least("lookup_nanos", &keys, &of_rounds(rounds, mean));
        let name = || kind.name.to_owned();
        rows.push(vec![name(), nanos(*best), ratio(best / skip_list), nanos(longest)]);
        let insert = inserts.iter().find(|(name, _)| *name == kind.name);
        let insert = nanos(insert.map_or(f64::NAN, |(_, longest)| *longest));
        stalls.push(vec![name(), nanos(*best), nanos(longest), insert]);
    }
    let growth = of_rounds(&series[0], |points| {
        let fifth = points.len() / 5;
        mean(&points[points.len() - fifth..]) / mean(&points[..fifth])
    });
    let mut sorted = growth.clone();
    sorted.sort_by(f64::total_cmp);
    results.record_rounds("vector_growth", &[mode.name()], sorted[sorted.len() / 2], &growth);
    let (buckets, mode_name) = (sizes.buckets(), mode.name());
    results.table(
        format!("Fig. 4a to 4c: lookups between inserts, X={PREFIX} H={buckets}, {mode_name}"),
        &["memtable", "per lookup", "against skip-list", "longest"],
        rows,
    );
    if mode == BufferMode::Ours {
        let headers = ["memtable", "lookup", "longest lookup", "longest insert"];
        results.table_for_section("longest operations", &headers, stalls);
    }
}

/// Measures Fig. 2b and 4d to 4f.
fn by_prefix_and_buckets(sizes: &BufferSizes, mode: BufferMode, results: &mut Results) {
    let most = sizes.buckets();
    let buckets = [(1, "H=1"), (100, "H=100"), (10_000, "H=10000"), (most, "H=most")];
    let queries =
        Queries { points: MANY_LOOKUPS.min(sizes.load.len()), after: AFTER, ..Queries::default() };
    let mut rows = Vec::new();
    for prefix in PREFIXES {
        let kinds = buckets.map(|(buckets, _)| hash_skip_list(mode, prefix, buckets));
        let series = sizes.load.rounds_of_series(&kinds, &queries, sizes.rounds.min(2));
        let mut row = vec![format!("X={prefix}")];
        for ((_, key), series) in buckets.iter().zip(&series) {
            let of = |series: &Series| percentile(&series.points, 0.5);
            let medians: Vec<f64> = series.iter().map(of).collect();
            results.record_least("grid_nanos", &[mode.name(), &row[0], key], &medians);
            row.push(nanos(least(&medians)));
        }
        rows.push(row);
    }
    let columns = buckets.map(|(buckets, _)| format!("H={buckets}"));
    let headers: Vec<&str> =
        std::iter::once("prefix").chain(columns.iter().map(String::as_str)).collect();
    let mode = mode.name();
    let title = format!("Fig. 2b, 4d to 4f: median lookups of a hash skip-list by X and H, {mode}");
    results.table(title, &headers, rows);
}

/// Measures the cost of a search in a bucket (§3.4).
fn by_buckets(sizes: &BufferSizes, mode: BufferMode, results: &mut Results) {
    let buckets = [100, 1000, 10_000];
    let queries = Queries { points: sizes.lookups(), after: AFTER, ..Queries::default() };
    let mut rows = Vec::new();
    for (name, kind) in [
        ("hash skip-list", hash_skip_list as fn(BufferMode, u8, u32) -> MemtableKind),
        ("hash linked-list", hash_linked_list),
    ] {
        let mut row = vec![name.to_owned()];
        for buckets in buckets {
            // Two rounds are enough, because inserts into long lists take long.
            let kind = [kind(mode, 10, buckets)];
            let series = sizes.load.rounds_of_series(&kind, &queries, sizes.rounds.min(2));
            let means: Vec<f64> = series[0].iter().map(|series| mean(&series.points)).collect();
            let keys = [mode.name(), name, &buckets.to_string()];
            results.record_least("bucket_nanos", &keys, &means);
            row.push(nanos(least(&means)));
        }
        rows.push(row);
    }
    let title = format!("§3.4: lookups by the number of buckets, X=10, {}", mode.name());
    results.table(title, &["memtable", "H=100", "H=1000", "H=10000"], rows);
}
