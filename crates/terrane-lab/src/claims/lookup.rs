//! Lookups between inserts: Fig. 1a, 2b, 4, and how they follow X and H.

use terrane_policy::MemtableKind;

use super::report::{Claim, Report, if_ours, nanos, times};
use super::setting::{Mode, PREFIX, Setting, hash_linked_list, hash_skip_list, of, plain, query};
use crate::memtable::{Queries, mean, percentile};

/// What lookups cost in our mode, for the guide.
pub(super) struct Lookup {
    /// Name, nanoseconds per lookup, longest lookup.
    pub(super) kinds: Vec<(&'static str, f64, f64)>,
    /// Hash skip-list by prefix and number of buckets: nanoseconds per lookup, our mode.
    pub(super) grid: Vec<(u8, u32, f64)>,
}

/// Lookups begin after so much of the inserts (§3.3).
const AFTER: f64 = 0.75;

/// The shares of lookups of Fig. 1a.
const SHARES: [f64; 4] = [0.0, 0.0001, 0.0005, 0.001];

/// Why few buckets cost little.
const TALL: &str =
    "lists have as many levels as they need: one bucket is nearly as good as a skip-list";

/// Numbers of lookups where their cost alone is wanted.
const MANY_LOOKUPS: usize = 5000;

pub(super) fn measure(setting: &Setting, report: &mut Report) -> Lookup {
    share_of_lookups(setting, report);
    let mut kinds = Vec::new();
    for mode in Mode::ALL {
        let measured = between_inserts(setting, mode, report);
        if mode == Mode::Ours {
            kinds = measured;
        }
    }
    let mut grid = Vec::new();
    for mode in Mode::ALL {
        let measured = by_prefix_and_buckets(setting, mode, report);
        if mode == Mode::Ours {
            grid = measured;
        }
        by_buckets(setting, mode, report);
    }
    Lookup { kinds, grid }
}

/// Fig. 1a.
fn share_of_lookups(setting: &Setting, report: &mut Report) {
    for mode in Mode::ALL {
        let prealloc_bytes = setting.prealloc_bytes();
        let vector = [MemtableKind::Vector { prealloc_bytes, query: query(mode) }];
        let mut rows = Vec::new();
        let mut first = f64::NAN;
        let mut ratio = f64::NAN;
        for share in SHARES {
            let points = (share * setting.load.len() as f64) as usize;
            let totals =
                setting.load.best_totals(&vector, &Queries::points(points), setting.rounds);
            let each = totals[0] / (setting.load.len() + points) as f64;
            if share == 0.0 {
                first = each;
            }
            ratio = each / first;
            rows.push(vec![format!("{} %", share * 100.0), nanos(each), times(ratio)]);
        }
        report.table(
            format!("Fig. 1a: a preallocated vector as lookups come, {}", mode.name()),
            &["lookups", "per operation", "against none"],
            rows,
        );
        report.claim(Claim::new(
            "Fig. 1a",
            "0.1 % of lookups make an operation on a preallocated vector take 36× on average",
            mode,
            (times(ratio), ratio >= 36.0),
            if_ours(mode, "what is sorted stays sorted: a better structure"),
        ));
    }
}

/// Fig. 4a to 4c.
fn between_inserts(
    setting: &Setting,
    mode: Mode,
    report: &mut Report,
) -> Vec<(&'static str, f64, f64)> {
    let kinds = setting.kinds(mode);
    let queries = Queries { points: setting.lookups(), after: AFTER, ..Queries::default() };
    let series = setting.load.best_series(&plain(&kinds), &queries, setting.rounds);
    let means: Vec<f64> = series.iter().map(|series| mean(&series.points)).collect();
    let skip_list = of(&kinds, &means, "skip-list").unwrap_or(f64::NAN);
    let rows = kinds.iter().zip(&series).map(|(kind, series)| {
        let (mean, longest) = (mean(&series.points), percentile(&series.points, 1.0));
        vec![kind.name.to_owned(), nanos(mean), times(mean / skip_list), nanos(longest)]
    });
    report.table(
        format!(
            "Fig. 4a to 4c: lookups between inserts, X={PREFIX} H={}, {}",
            setting.buckets(),
            mode.name()
        ),
        &["memtable", "per lookup", "against skip-list", "longest"],
        rows.collect(),
    );
    let value = |name| of(&kinds, &means, name).unwrap_or(f64::NAN);
    let vector = value("vector") / skip_list;
    report.claim(Claim::new(
        "Fig. 4a",
        "a lookup in a vector takes up to 12× that in a skip-list",
        mode,
        (times(vector), vector >= 12.0),
        if_ours(mode, "only what came since the last lookup is sorted"),
    ));
    let of_vector = &series[0].points;
    let quarter = of_vector.len() / 5;
    let growth = mean(&of_vector[of_vector.len() - quarter..]) / mean(&of_vector[..quarter]);
    report.claim(Claim::new(
        "Fig. 4a",
        "the cost of a lookup in a vector grows linearly as it fills (here by 4/3 at most)",
        mode,
        (
            format!("last fifth of the lookups {} the first", times(growth)),
            (1.1..=1.6).contains(&growth),
        ),
        if_ours(mode, "it follows what came since the last lookup, not what is there"),
    ));
    let (hashed, linked) = (value("hash skip-list"), value("hash linked-list"));
    let others = ["vector", "skip-list", "hash linked-list"].map(value);
    let best = others.into_iter().fold(f64::INFINITY, f64::min) / hashed;
    report.claim(Claim::new(
        "Fig. 4b",
        "the hash skip-list (X=6, H=100K) has the fastest lookups",
        mode,
        (format!("the next one takes {}", times(best)), best >= 0.98),
        "a bucket has an entry or two, and a list without towers is the shorter way to them",
    ));
    let worse = value("vector").min(skip_list) / linked;
    report.claim(Claim::new(
        "Fig. 4c",
        "lookups in a hash linked-list are faster than in vector and skip-list",
        mode,
        (format!("these take {}", times(worse)), worse > 1.0),
        "",
    ));
    kinds
        .iter()
        .zip(&series)
        .map(|(kind, series)| (kind.name, mean(&series.points), percentile(&series.points, 1.0)))
        .collect()
}

/// Fig. 2b and 4d to 4f.
fn by_prefix_and_buckets(
    setting: &Setting,
    mode: Mode,
    report: &mut Report,
) -> Vec<(u8, u32, f64)> {
    let buckets = [1, 100, 10_000, setting.buckets()];
    let queries = Queries {
        points: MANY_LOOKUPS.min(setting.load.len()),
        after: AFTER,
        ..Queries::default()
    };
    let mut grid = Vec::new();
    let mut rows = Vec::new();
    for prefix in [0, 1, 2, 4, 6, 8, 10] {
        let kinds = buckets.map(|buckets| hash_skip_list(mode, prefix, buckets));
        let means: Vec<f64> = setting
            .load
            .best_series(&kinds, &queries, 1)
            .iter()
            .map(|series| percentile(&series.points, 0.5))
            .collect();
        grid.extend(buckets.iter().zip(&means).map(|(buckets, mean)| (prefix, *buckets, *mean)));
        rows.push(
            std::iter::once(format!("X={prefix}")).chain(means.into_iter().map(nanos)).collect(),
        );
    }
    let headers = buckets.map(|buckets| format!("H={buckets}"));
    let headers: Vec<&str> =
        std::iter::once("prefix").chain(headers.iter().map(String::as_str)).collect();
    report.table(
        format!(
            "Fig. 2b, 4d to 4f: median lookups of a hash skip-list by X and H, {}",
            mode.name()
        ),
        &headers,
        rows,
    );
    let cost = |prefix, buckets| {
        let found = grid.iter().find(|(x, h, _)| (*x, *h) == (prefix, buckets));
        found.map_or(f64::NAN, |(_, _, mean)| *mean)
    };
    let spread = cost(0, setting.buckets()) / cost(PREFIX, setting.buckets());
    report.claim(Claim::new(
        "Fig. 2b, 4d",
        "the latency of a lookup depends on X and H: a prefix too short puts all keys in one bucket",
        mode,
        (format!("X=0 takes {} of X={PREFIX}", times(spread)), spread > 1.5),
        if_ours(mode, TALL),
    ));
    let one = cost(10, 1) / cost(10, setting.buckets());
    report.claim(Claim::new(
        "§3.3",
        "a long prefix with one bucket is as bad",
        mode,
        (format!("H=1 takes {} of H={}", times(one), setting.buckets()), one > 1.5),
        if_ours(mode, TALL),
    ));
    let needed = cost(2, 1) / cost(2, 100);
    let beyond = cost(2, 10_000) / cost(2, 100);
    report.claim(Claim::new(
        "§3.3",
        "the ideal H is the number of prefixes (10^X in decimal): for X=2 more than 100 gain nothing",
        mode,
        (
            format!("H=1 takes {}, H=10000 {} of H=100", times(needed), times(beyond)),
            needed > 1.1 && beyond > 0.7,
        ),
        if needed > 1.1 {
            "hashing puts several of 100 prefixes into one of 100 buckets, so that more buckets do help"
        } else {
            if_ours(mode, TALL)
        },
    ));
    grid
}

/// §3.4: the cost of a search in a bucket.
fn by_buckets(setting: &Setting, mode: Mode, report: &mut Report) {
    let buckets = [100, 1000, 10_000];
    let queries = Queries { points: setting.lookups(), after: AFTER, ..Queries::default() };
    let mut costs = Vec::new();
    let mut rows = Vec::new();
    for (name, kind) in [
        ("hash skip-list", hash_skip_list as fn(Mode, u8, u32) -> MemtableKind),
        ("hash linked-list", hash_linked_list),
    ] {
        let mut means = Vec::new();
        for buckets in buckets {
            // Inserting into long lists takes long: once is enough.
            let series = setting.load.best_series(&[kind(mode, 10, buckets)], &queries, 1);
            means.push(mean(&series[0].points));
        }
        rows.push(
            std::iter::once(name.to_owned()).chain(means.iter().copied().map(nanos)).collect(),
        );
        costs.push(means);
    }
    report.table(
        format!("§3.4: lookups by the number of buckets, X=10, {}", mode.name()),
        &["memtable", "H=100", "H=1000", "H=10000"],
        rows,
    );
    let factor = |means: &[f64]| (means[0] / means[2]).sqrt();
    let (skip, linked) = (factor(&costs[0]), factor(&costs[1]));
    report.claim(Claim::new(
        "§3.4",
        "ten times the buckets: a tenth of the search in a hash linked-list, a little less in a hash skip-list",
        mode,
        (
            format!("linked-list {}, skip-list {} faster", times(linked), times(skip)),
            linked > 4.0 && skip < linked / 2.0,
        ),
        "a list that is walked from its head is fetched ahead of the walk, and a miss of the cache for the bucket itself is left",
    ));
}
