//! Records the metrics of both programs, and adds their tables.

use super::talk::ProgramRun;
use super::{
    DentMeasurements, DentSizes, FIG2, FIG3, GETS, GETS_AGAIN, POINT_GETS, POINT_PUTS, PUTS,
    ProgramPair, TABLE1,
};
use crate::human;
use crate::results::Results;

fn rate(per_second: f64) -> String {
    human::count(per_second.round() as u64)
}

fn or_dash(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or("-".to_owned(), show)
}

fn wrong(run: Option<ProgramRun>, gets: usize) -> String {
    run.map_or("-".to_owned(), |run| {
        format!("{} of {}", human::count(run.wrong_answers), human::count(gets as u64))
    })
}

/// A time that was too short to measure counts as not measured.
fn measured(micros: Option<f64>) -> f64 {
    micros.filter(|micros| *micros > 0.0).unwrap_or(f64::NAN)
}

pub(super) fn record(sizes: &DentSizes, all: &DentMeasurements, results: &mut Results) {
    let pairs = all.table1.iter().chain(all.fig2.iter().flatten()).chain(&all.fig3);
    let wrong_answers: u64 = pairs.map(|pair| pair.ours.wrong_answers).sum();
    results.record("wrong_answers", &[], wrong_answers as f64);
    for ((keys, ..), pair) in TABLE1.iter().zip(&all.table1) {
        let ratio = |ratio: Option<f64>| ratio.unwrap_or(f64::NAN);
        let keys = [keys.name()];
        results.record("put_ratio", &keys, ratio(pair.puts_over_dent));
        results.record("get_ratio", &keys, ratio(pair.gets_over_dent));
        results.record("put_rate", &keys, pair.ours.puts_per_second);
        results.record("put_cpu", &keys, measured(pair.ours.put_cpu_micros));
        results.record("get_cpu", &keys, measured(pair.ours.get_cpu_micros));
    }
    for ((fanout, _), [one_page, _]) in FIG2.iter().zip(&all.fig2) {
        let micros = measured(one_page.ours.put_cpu_micros);
        results.record("fanout_put_cpu", &[&fanout.to_string()], micros);
    }
    for ((bits, _), pair) in FIG3.iter().zip(&all.fig3) {
        results.record("bits_get_cpu", &[&bits.to_string()], measured(pair.ours.get_cpu_micros));
    }
    table1(sizes, all, results);
    fig2(sizes, all, results);
    fig3(sizes, all, results);
}

fn dent_cpu(pair: &ProgramPair, of: fn(ProgramRun) -> Option<f64>) -> String {
    or_dash(pair.dent.and_then(of), human::number)
}

fn table1(sizes: &DentSizes, all: &DentMeasurements, results: &mut Results) {
    let (puts, gets) = (sizes.count(PUTS), sizes.count(GETS));
    let mut rows = Vec::new();
    for ((keys, published_puts, published_gets), pair) in TABLE1.iter().zip(&all.table1) {
        rows.push(vec![
            format!("{} puts", keys.name()),
            rate(*published_puts),
            or_dash(pair.dent.map(|run| run.puts_per_second), rate),
            rate(pair.ours.puts_per_second),
            or_dash(pair.puts_over_dent, human::ratio),
            dent_cpu(pair, |run| run.put_cpu_micros),
            or_dash(pair.ours.put_cpu_micros, human::number),
            String::new(),
            String::new(),
        ]);
        rows.push(vec![
            format!("{} gets", keys.name()),
            rate(*published_gets),
            or_dash(pair.dent.and_then(|run| run.gets_per_second), rate),
            rate(pair.ours.gets_per_second.unwrap_or(0.0)),
            or_dash(pair.gets_over_dent, human::ratio),
            dent_cpu(pair, |run| run.get_cpu_micros),
            or_dash(pair.ours.get_cpu_micros, human::number),
            wrong(pair.dent, gets as usize),
            wrong(Some(pair.ours), gets as usize * GETS_AGAIN),
        ]);
    }
    let introduction = format!(
        "b = 1000, t = 4, f = 10, r = 0.5; {} puts, then {} gets. Operations a second; *cpu* is the \
         processor time of\nall threads for one, in microseconds.",
        human::count(puts),
        human::count(gets)
    );
    let headers = [
        "",
        "published",
        "Dent's",
        "ours",
        "ours over Dent's",
        "Dent's cpu",
        "our cpu",
        "Dent's wrong",
        "ours wrong",
    ];
    results.table_with_introduction("Table 1", introduction, &headers, rows);
}

fn fig2(sizes: &DentSizes, all: &DentMeasurements, results: &mut Results) {
    let rows = FIG2.iter().zip(&all.fig2).map(|((fanout, published), pairs)| {
        let cells = pairs.iter().flat_map(|pair| {
            let ours = or_dash(pair.ours.put_cpu_micros, human::number);
            [dent_cpu(pair, |run| run.put_cpu_micros), ours]
        });
        [fanout.to_string(), rate(*published)].into_iter().chain(cells).collect()
    });
    let introduction = format!(
        "{} uniform puts. The caption says b = 1 and the text b = 1000; the plot is of 1. With b = 1 \
         a flush writes a\nfile of 512 entries. Published: puts a second. The others: processor \
         time of all threads for a put, in\nmicroseconds.",
        human::count(sizes.count(POINT_PUTS))
    );
    let headers = [
        "f",
        "published, b = 1",
        "Dent's, b = 1",
        "ours, b = 1",
        "Dent's, b = 1000",
        "ours, b = 1000",
    ];
    results.table_with_introduction(
        "Fig. 2: puts by fanout",
        introduction,
        &headers,
        rows.collect(),
    );
}

fn fig3(sizes: &DentSizes, all: &DentMeasurements, results: &mut Results) {
    let gets = sizes.count(POINT_GETS);
    let rows = FIG3.iter().zip(&all.fig3).map(|((bits, published), pair)| {
        vec![
            bits.to_string(),
            rate(*published),
            dent_cpu(pair, |run| run.get_cpu_micros),
            or_dash(pair.ours.get_cpu_micros, human::number),
            or_dash(pair.gets_over_dent, human::ratio),
            wrong(pair.dent, gets as usize),
            wrong(Some(pair.ours), gets as usize * GETS_AGAIN),
        ]
    });
    let introduction = format!(
        "b = 100, f = 1000; {} uniform puts, then {} gets. Published: gets a second. The others: \
         processor time of\nall threads for a get, in microseconds.",
        human::count(sizes.count(POINT_PUTS)),
        human::count(gets)
    );
    let headers =
        ["r", "published", "Dent's", "ours", "our rate over Dent's", "Dent's wrong", "ours wrong"];
    let title = "Fig. 3: gets by filter bits an entry";
    results.table_with_introduction(title, introduction, &headers, rows.collect());
}
