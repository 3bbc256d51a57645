//! Inserting alone: Fig. 1b, and the totals of §3.4.

use super::report::{Claim, Report, nanos, times};
use super::setting::{Mode, Setting, of, plain};
use crate::memtable::{Queries, percentile};

/// What inserting costs in our mode, for the guide.
pub(super) struct Insertion {
    /// Name, nanoseconds per insert, longest insert.
    pub(super) kinds: Vec<(&'static str, f64, f64)>,
}

pub(super) fn measure(setting: &Setting, report: &mut Report) -> Insertion {
    let mut ours = Vec::new();
    for mode in Mode::ALL {
        let kinds = setting.kinds(mode);
        let none = Queries::default();
        let totals = setting.load.best_totals(&plain(&kinds), &none, setting.rounds * 2);
        let series = setting.load.best_series(&plain(&kinds), &none, setting.rounds);
        let entries = setting.load.len() as f64;
        let longest: Vec<f64> =
            series.iter().map(|series| percentile(&series.inserts, 1.0)).collect();
        if mode == Mode::Ours {
            ours = kinds
                .iter()
                .zip(totals.iter().zip(&longest))
                .map(|(kind, (total, longest))| (kind.name, total / entries, *longest))
                .collect();
        }
        let skip_list = of(&kinds, &totals, "skip-list").unwrap_or(f64::NAN);
        let rows = kinds.iter().zip(&series).zip(&totals).map(|((kind, series), total)| {
            vec![
                kind.name.to_owned(),
                nanos(total / entries),
                times(skip_list / total),
                nanos(percentile(&series.inserts, 0.99)),
                nanos(percentile(&series.inserts, 0.999)),
                nanos(percentile(&series.inserts, 1.0)),
            ]
        });
        report.table(
            format!("Fig. 1b, §3.4: inserts alone, {}", mode.name()),
            &["memtable", "per insert", "rate against skip-list", "P99", "P99.9", "P100"],
            rows.collect(),
        );
        claims(mode, &|name| of(&kinds, &totals, name), &|name| of(&kinds, &longest, name), report);
    }
    Insertion { kinds: ours }
}

type Lookup<'a> = &'a dyn Fn(&str) -> Option<f64>;

fn claims(mode: Mode, total: Lookup<'_>, longest: Lookup<'_>, report: &mut Report) {
    let ratio = |values: Lookup<'_>, over: &str, under: &str| {
        values(over).zip(values(under)).map_or(f64::NAN, |(over, under)| over / under)
    };
    let spike = ratio(longest, "vector", "vector, preallocated");
    report.claim(Claim::new(
        "Fig. 1b",
        "the longest insert of a growing vector takes more than 10× that of a preallocated one",
        mode,
        (times(spike), spike > 10.0),
        "growing copies pointers of 8 bytes, not entries",
    ));
    let others = ["vector", "skip-list", "hash skip-list", "hash linked-list"];
    let least = others
        .iter()
        .map(|name| ratio(total, name, "vector, preallocated"))
        .fold(f64::INFINITY, f64::min);
    report.claim(Claim::new(
        "§3.4",
        "a preallocated vector inserts best",
        mode,
        (format!("the next one takes {}", times(least)), least >= 0.98),
        "growing costs so little that the two are within what can be measured",
    ));
    let vector = ratio(total, "skip-list", "vector, preallocated");
    report.claim(Claim::new(
        "§3.4",
        "a skip-list inserts slower than a vector",
        mode,
        (times(vector), vector > 1.0),
        "",
    ));
    for (says, name, factor) in [
        ("the skip-list takes 5× the time of the hash skip-list", "hash skip-list", 5.0),
        ("the skip-list takes 7× the time of the hash linked-list", "hash linked-list", 7.0),
    ] {
        let measured = ratio(total, "skip-list", name);
        report.claim(Claim::new(
            "§3.4",
            says,
            mode,
            (times(measured), measured >= factor),
            "the direction holds; the skip-list keeps the head of the next key beside each link, and \
             so has less to lose: one that does not is `Skip-L` in the table of the nine buffers",
        ));
    }
    let best = ["vector", "vector, preallocated"]
        .iter()
        .map(|name| ratio(total, "skip-list", name))
        .fold(f64::NAN, f64::max);
    let hashed = ["hash skip-list", "hash linked-list"]
        .iter()
        .map(|name| ratio(total, name, "vector, preallocated"))
        .fold(f64::NAN, f64::max);
    let most = best.max(hashed);
    report.claim(Claim::new(
        "§4",
        "a vector inserts up to 10× as fast as the others",
        mode,
        (format!("{} as fast as the slowest", times(most)), most >= 10.0),
        "the others are faster here than in the paper",
    ));
}
