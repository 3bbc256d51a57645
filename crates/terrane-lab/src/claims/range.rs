//! Ranges between inserts, and mixes of all: Fig. 2a and 5.

use super::report::{Claim, Report, if_ours, nanos, times};
use super::setting::{Kind, Mode, Setting, of, plain};
use crate::memtable::{Queries, mean, percentile};

const SELECTIVITIES: [f64; 3] = [0.0001, 0.02, 0.4];

/// Ranges are slow where they copy; so many show it.
const RANGES: usize = 50;

const AFTER: f64 = 0.75;

pub(super) fn measure(setting: &Setting, report: &mut Report) {
    for mode in Mode::ALL {
        let kinds = setting.kinds(mode);
        ranges(setting, mode, &kinds, report);
        mixes(setting, mode, &kinds, report);
    }
}

/// Fig. 5.
fn ranges(setting: &Setting, mode: Mode, kinds: &[Kind], report: &mut Report) {
    let mut columns = Vec::new();
    let mut longest = Vec::new();
    for selectivity in SELECTIVITIES {
        let queries = Queries { ranges: RANGES, selectivity, after: AFTER, ..Queries::default() };
        let series = setting.load.best_series(&plain(kinds), &queries, setting.rounds.min(2));
        columns.push(series.iter().map(|series| mean(&series.ranges)).collect::<Vec<_>>());
        longest
            .push(series.iter().map(|series| percentile(&series.ranges, 1.0)).collect::<Vec<_>>());
    }
    let rows = kinds.iter().enumerate().map(|(index, kind)| {
        let cells = columns.iter().zip(&longest);
        let cells = cells
            .map(|(mean, longest)| format!("{} / {}", nanos(mean[index]), nanos(longest[index])));
        std::iter::once(kind.name.to_owned()).chain(cells).collect()
    });
    report.table(
        format!("Fig. 5: ranges between inserts by selectivity, mean / longest, {}", mode.name()),
        &["memtable", "0.0001", "0.02", "0.4"],
        rows.collect(),
    );
    let value = |column: usize, name| of(kinds, &columns[column], name).unwrap_or(f64::NAN);
    let short = value(0, "vector") / value(0, "skip-list");
    let long = value(2, "vector") / value(2, "skip-list");
    report.claim(Claim::new(
        "Fig. 5",
        "the skip-list beats the vector on short and on long ranges",
        mode,
        (format!("vector takes {} and {}", times(short), times(long)), short > 1.0 && long > 1.0),
        if_ours(mode, "the entries of a long range are neighbours in the sorted part, and scattered in a skip-list"),
    ));
    let hashed = value(0, "hash skip-list").min(value(0, "hash linked-list"));
    let spike = hashed / value(0, "skip-list");
    report.claim(Claim::new(
        "Fig. 5",
        "hashed memtables spike on ranges of several prefixes",
        mode,
        (format!("short ranges take {} of the skip-list", times(spike)), spike >= 10.0),
        if_ours(mode, "the order is made once, and then only brought up to date"),
    ));
}

/// Fig. 2a.
fn mixes(setting: &Setting, mode: Mode, kinds: &[Kind], report: &mut Report) {
    let mixes = [
        ("inserts", Queries::default()),
        ("with lookups", Queries { points: setting.lookups(), after: AFTER, ..Queries::default() }),
        (
            "with short ranges",
            Queries { ranges: RANGES, selectivity: SELECTIVITIES[0], after: AFTER, points: 0 },
        ),
        (
            "with long ranges",
            Queries { ranges: RANGES, selectivity: SELECTIVITIES[2], after: AFTER, points: 0 },
        ),
    ];
    let totals = mixes.map(|(_, queries)| {
        setting.load.best_totals(&plain(kinds), &queries, setting.rounds.min(2))
    });
    let rows = kinds.iter().enumerate().map(|(index, kind)| {
        let rates = totals
            .iter()
            .map(|totals| format!("{:.2}", setting.load.len() as f64 / totals[index] * 1e3));
        std::iter::once(kind.name.to_owned()).chain(rates).collect()
    });
    report.table(
        format!("Fig. 2a: million inserts a second, {}", mode.name()),
        &["memtable", mixes[0].0, mixes[1].0, mixes[2].0, mixes[3].0],
        rows.collect(),
    );
    let value = |mix: usize, name| of(kinds, &totals[mix], name).unwrap_or(f64::NAN);
    let vector = value(0, "vector, preallocated").min(value(0, "vector"));
    let next =
        ["skip-list", "hash skip-list", "hash linked-list"].map(|name| value(0, name) / vector);
    let next = next.into_iter().fold(f64::INFINITY, f64::min);
    report.claim(Claim::new(
        "Fig. 2a",
        "a vector is best for inserts alone",
        mode,
        (format!("the next one takes {}", times(next)), next > 1.0),
        "",
    ));
    let hashed = value(1, "hash skip-list").max(value(1, "hash linked-list"));
    let others =
        value(1, "skip-list").min(value(1, "vector").min(value(1, "vector, preallocated")));
    report.claim(Claim::new(
        "Fig. 2a",
        "with lookups, the hashed ones beat vector and skip-list",
        mode,
        (format!("these take {}", times(others / hashed)), others > hashed),
        if_ours(mode, "a vector that keeps what is sorted stays ahead: a better structure"),
    ));
}
