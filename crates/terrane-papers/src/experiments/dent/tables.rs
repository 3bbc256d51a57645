//! Records the metrics of both programs, and adds their tables.

use terrane_lab::output::human;

use super::pair::{ProgramPair, median};
use super::talk::ProgramRun;
use super::workload::KeyDistribution;
use super::{
    DentSizes, FIG2, FIG2_PAGES, FIG3, GETS, OTHER_BUFFERS, POINT_GETS, PUTS, TABLE1, Table1Row,
};
use crate::results::Results;

fn rate(per_second: f64) -> String {
    human::count(per_second.round() as u64)
}

fn or_dash(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or("-".to_owned(), show)
}

fn wrong(run: Option<ProgramRun>, gets: u64) -> String {
    run.map_or("-".to_owned(), |run| {
        format!("{} of {}", human::count(run.wrong_answers), human::count(gets))
    })
}

/// Records the least time of all rounds; times too short to measure count as not measured.
fn record_times(results: &mut Results, metric: &str, keys: &[&str], rounds: &[f64]) {
    let rounds: Vec<f64> = rounds.iter().copied().filter(|micros| *micros > 0.0).collect();
    results.record_least(metric, keys, &rounds);
}

/// Records the median of the rounds.
fn record_median(results: &mut Results, metric: &str, keys: &[&str], rounds: Vec<f64>) {
    let rounds: Vec<f64> = rounds.into_iter().filter(|ratio| ratio.is_finite()).collect();
    results.record_rounds(metric, keys, median(rounds.clone()).unwrap_or(f64::NAN), &rounds);
}

fn record_wrong<'a>(
    results: &mut Results,
    figure: &str,
    pairs: impl Iterator<Item = &'a ProgramPair>,
) {
    let wrong: u64 = pairs.map(|pair| pair.ours.wrong_answers).sum();
    results.record("wrong_answers", &[figure], wrong as f64);
}

pub(super) fn record_table1(
    sizes: &DentSizes,
    rows: &[Table1Row],
    buffers: &[Vec<ProgramRun>],
    results: &mut Results,
) {
    record_wrong(results, "Table 1", rows.iter().map(|row| &row.pair));
    for Table1Row { multiple, keys, pair } in rows {
        let keys = [&*multiple.to_string(), keys.name()];
        record_median(results, "put_ratio", &keys, pair.puts_over_dent());
        record_median(results, "get_ratio", &keys, pair.gets_over_dent());
        let rates = pair.our_rounds(|run| Some(run.puts_per_second));
        results.record_rounds("put_rate", &keys, pair.ours.puts_per_second, &rates);
        record_times(results, "put_cpu", &keys, &pair.our_rounds(|run| run.put_cpu_micros));
        record_times(results, "get_cpu", &keys, &pair.our_rounds(|run| run.get_cpu_micros));
        let puts =
            |ours: ProgramRun, dent: ProgramRun| Some(dent.put_cpu_micros? / ours.put_cpu_micros?);
        record_median(results, "put_cpu_ratio", &keys, pair.of_pairs(puts));
        let gets =
            |ours: ProgramRun, dent: ProgramRun| Some(dent.get_cpu_micros? / ours.get_cpu_micros?);
        record_median(results, "get_cpu_ratio", &keys, pair.of_pairs(gets));
    }
    table1(sizes, rows, results);
    other_buffers(sizes, rows, buffers, results);
}

pub(super) fn record_fig2(sizes: &DentSizes, all: &[[ProgramPair; 2]], results: &mut Results) {
    record_wrong(results, "Fig. 2", all.iter().flatten());
    for ((fanout, _), pairs) in FIG2.iter().zip(all) {
        for (pages, pair) in FIG2_PAGES.iter().zip(pairs) {
            let keys = [pages.to_string(), fanout.to_string()];
            let keys = keys.each_ref().map(String::as_str);
            let times = pair.our_rounds(|run| run.put_cpu_micros);
            record_times(results, "fanout_put_cpu", &keys, &times);
        }
    }
    fig2(sizes, all, results);
}

pub(super) fn record_fig3(sizes: &DentSizes, all: &[ProgramPair], results: &mut Results) {
    record_wrong(results, "Fig. 3", all.iter());
    for ((bits, _), pair) in FIG3.iter().zip(all) {
        let keys = [&*bits.to_string()];
        record_times(results, "bits_get_cpu", &keys, &pair.our_rounds(|run| run.get_cpu_micros));
        let dent = pair.dent_rounds(|run| run.get_cpu_micros);
        record_times(results, "bits_get_cpu_dent", &keys, &dent);
    }
    fig3(sizes, all, results);
}

fn dent_cpu(pair: &ProgramPair, of: fn(ProgramRun) -> Option<f64>) -> String {
    or_dash(pair.dent.and_then(of), human::number)
}

fn table1(sizes: &DentSizes, all: &[Table1Row], results: &mut Results) {
    let gets = sizes.count(GETS);
    let published = |keys: KeyDistribution| TABLE1.iter().find(|(of, ..)| *of == keys);
    let mut rows = Vec::new();
    for Table1Row { multiple, keys, pair } in all {
        let puts = human::count(sizes.count(PUTS * f64::from(*multiple)));
        let name = keys.name();
        rows.push(vec![
            format!("{puts} {name} puts"),
            published(*keys).map_or("-".to_owned(), |(_, puts, _)| rate(*puts)),
            or_dash(pair.dent.map(|run| run.puts_per_second), rate),
            rate(pair.ours.puts_per_second),
            or_dash(median(pair.puts_over_dent()), human::ratio),
            dent_cpu(pair, |run| run.put_cpu_micros),
            or_dash(pair.ours.put_cpu_micros, human::number),
            String::new(),
            String::new(),
        ]);
        rows.push(vec![
            format!("then {name} gets"),
            published(*keys).map_or("-".to_owned(), |(.., gets)| rate(*gets)),
            or_dash(pair.dent.and_then(|run| run.gets_per_second), rate),
            rate(pair.ours.gets_per_second.unwrap_or(0.0)),
            or_dash(median(pair.gets_over_dent()), human::ratio),
            dent_cpu(pair, |run| run.get_cpu_micros),
            or_dash(pair.ours.get_cpu_micros, human::number),
            wrong(pair.dent, gets),
            wrong(Some(pair.ours), gets),
        ]);
    }
    let introduction = format!(
        "b = 1000, t = 4, f = 10, r = 0.5; {} gets after the puts. Operations a second; *cpu* is the \
         processor time of\nall threads for one, in microseconds.",
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

fn other_buffers(
    sizes: &DentSizes,
    rows: &[Table1Row],
    buffers: &[Vec<ProgramRun>],
    results: &mut Results,
) {
    let uniform = rows.iter().find(|row| row.keys == KeyDistribution::Uniform);
    let Some(Table1Row { pair, .. }) = uniform else { return };
    let [skip_list, vector] = OTHER_BUFFERS;
    let of_kind = |at: usize| buffers.get(at).map_or(&[][..], Vec::as_slice);
    let all = [
        ("dent", "the buffer of `dent`", &pair.our_rounds[..]),
        ("skiplist", skip_list, of_kind(0)),
        ("vector", vector, of_kind(1)),
        ("set", "Dent's `std::set`", &pair.dent_rounds),
    ];
    let mut rows = Vec::new();
    for (key, name, rounds) in all {
        let Some(best) = rounds.iter().copied().reduce(ProgramRun::best) else { continue };
        let cpu = or_dash(best.put_cpu_micros, human::number);
        rows.push(vec![name.to_owned(), rate(best.puts_per_second), cpu]);
        let rates: Vec<f64> = rounds.iter().map(|run| run.puts_per_second).collect();
        results.record_rounds("buffer_put_rate", &[key], best.puts_per_second, &rates);
    }
    let introduction = format!(
        "{} uniform puts, with the parameters of Table 1. Published: 305,000 puts a second with \
         `std::set`, about 600,000\nwith a skip-list.",
        human::count(sizes.count(PUTS))
    );
    let headers = ["buffer", "puts a second", "cpu"];
    results.table_with_introduction("Buffers", introduction, &headers, rows);
}

fn fig2(sizes: &DentSizes, all: &[[ProgramPair; 2]], results: &mut Results) {
    let rows = FIG2.iter().zip(all).map(|((fanout, published), pairs)| {
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
        human::count(sizes.count(PUTS))
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

fn fig3(sizes: &DentSizes, all: &[ProgramPair], results: &mut Results) {
    let gets = sizes.count(POINT_GETS);
    let rows = FIG3.iter().zip(all).map(|((bits, published), pair)| {
        vec![
            bits.to_string(),
            rate(*published),
            dent_cpu(pair, |run| run.get_cpu_micros),
            or_dash(pair.ours.get_cpu_micros, human::number),
            or_dash(median(pair.gets_over_dent()), human::ratio),
            wrong(pair.dent, gets),
            wrong(Some(pair.ours), gets),
        ]
    });
    let introduction = format!(
        "b = 100, f = 1000; {} uniform puts, then {} gets. Published: gets a second. The others: \
         processor time of\nall threads for a get, in microseconds.",
        human::count(sizes.count(PUTS)),
        human::count(gets)
    );
    let headers =
        ["r", "published", "Dent's", "ours", "our rate over Dent's", "Dent's wrong", "ours wrong"];
    let title = "Fig. 3: gets by filter bits an entry";
    results.table_with_introduction(title, introduction, &headers, rows.collect());
}
