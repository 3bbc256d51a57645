//! Records the metrics of both programs, and adds their tables.

use super::talk::ProgramRun;
use super::workload::KeyDistribution;
use super::{
    DentMeasurements, DentSizes, FIG2, FIG2_PAGES, FIG3, GETS, OTHER_BUFFERS, POINT_GETS, PUTS,
    ProgramPair, TABLE1, Table1Row,
};
use crate::human;
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

/// A time that was too short to measure counts as not measured.
fn measured(micros: Option<f64>) -> f64 {
    micros.filter(|micros| *micros > 0.0).unwrap_or(f64::NAN)
}

pub(super) fn record(sizes: &DentSizes, all: &DentMeasurements, results: &mut Results) {
    let pairs = all.fig2.iter().flatten().chain(&all.fig3);
    let pairs = pairs.chain(all.table1.iter().map(|row| &row.pair));
    let wrong_answers: u64 = pairs.map(|pair| pair.ours.wrong_answers).sum();
    results.record("wrong_answers", &[], wrong_answers as f64);
    for Table1Row { multiple, keys, pair } in &all.table1 {
        let or_nothing = |ratio: Option<f64>| ratio.unwrap_or(f64::NAN);
        let keys = [&*multiple.to_string(), keys.name()];
        let cpu_ratio = |of: fn(ProgramRun) -> Option<f64>| {
            measured(pair.dent.and_then(of)) / measured(of(pair.ours))
        };
        results.record("put_ratio", &keys, or_nothing(pair.puts_over_dent));
        results.record("get_ratio", &keys, or_nothing(pair.gets_over_dent));
        results.record("put_rate", &keys, pair.ours.puts_per_second);
        results.record("put_cpu", &keys, measured(pair.ours.put_cpu_micros));
        results.record("get_cpu", &keys, measured(pair.ours.get_cpu_micros));
        results.record("put_cpu_ratio", &keys, cpu_ratio(|run| run.put_cpu_micros));
        results.record("get_cpu_ratio", &keys, cpu_ratio(|run| run.get_cpu_micros));
    }
    for ((fanout, _), pairs) in FIG2.iter().zip(&all.fig2) {
        for (pages, pair) in FIG2_PAGES.iter().zip(pairs) {
            let micros = measured(pair.ours.put_cpu_micros);
            let keys = [pages.to_string(), fanout.to_string()];
            results.record("fanout_put_cpu", &[&keys[0], &keys[1]], micros);
        }
    }
    for ((bits, _), pair) in FIG3.iter().zip(&all.fig3) {
        let bits = bits.to_string();
        results.record("bits_get_cpu", &[&bits], measured(pair.ours.get_cpu_micros));
        let dent = pair.dent.and_then(|run| run.get_cpu_micros);
        results.record("bits_get_cpu_dent", &[&bits], measured(dent));
    }
    table1(sizes, all, results);
    buffers(sizes, all, results);
    fig2(sizes, all, results);
    fig3(sizes, all, results);
}

fn dent_cpu(pair: &ProgramPair, of: fn(ProgramRun) -> Option<f64>) -> String {
    or_dash(pair.dent.and_then(of), human::number)
}

fn table1(sizes: &DentSizes, all: &DentMeasurements, results: &mut Results) {
    let gets = sizes.count(GETS);
    let published = |keys: KeyDistribution| TABLE1.iter().find(|(of, ..)| *of == keys);
    let mut rows = Vec::new();
    for Table1Row { multiple, keys, pair } in &all.table1 {
        let puts = human::count(sizes.count(PUTS * f64::from(*multiple)));
        let name = keys.name();
        rows.push(vec![
            format!("{puts} {name} puts"),
            published(*keys).map_or("-".to_owned(), |(_, puts, _)| rate(*puts)),
            or_dash(pair.dent.map(|run| run.puts_per_second), rate),
            rate(pair.ours.puts_per_second),
            or_dash(pair.puts_over_dent, human::ratio),
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
            or_dash(pair.gets_over_dent, human::ratio),
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

fn buffers(sizes: &DentSizes, all: &DentMeasurements, results: &mut Results) {
    let uniform = all.table1.iter().find(|row| row.keys == KeyDistribution::Uniform);
    let Some(Table1Row { pair, .. }) = uniform else { return };
    let mut runs = vec![("the buffer of `dent`", pair.ours)];
    runs.extend(OTHER_BUFFERS.iter().copied().zip(all.buffers.iter().copied()));
    runs.extend(pair.dent.map(|run| ("Dent's `std::set`", run)));
    let rows = runs.iter().map(|(name, run)| {
        let cpu = or_dash(run.put_cpu_micros, human::number);
        vec![(*name).to_owned(), rate(run.puts_per_second), cpu]
    });
    let introduction = format!(
        "{} uniform puts, with the parameters of Table 1. Published: 305,000 puts a second with \
         `std::set`, about 600,000\nwith a skip-list.",
        human::count(sizes.count(PUTS))
    );
    let headers = ["buffer", "puts a second", "cpu"];
    results.table_with_introduction("Buffers", introduction, &headers, rows.collect());
    for (name, run) in runs {
        let name = match name {
            "the buffer of `dent`" => "dent",
            "Dent's `std::set`" => "set",
            "vector(query=scan)" => "vector",
            name => name,
        };
        results.record("buffer_put_rate", &[name], run.puts_per_second);
    }
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

fn fig3(sizes: &DentSizes, all: &DentMeasurements, results: &mut Results) {
    let gets = sizes.count(POINT_GETS);
    let rows = FIG3.iter().zip(&all.fig3).map(|((bits, published), pair)| {
        vec![
            bits.to_string(),
            rate(*published),
            dent_cpu(pair, |run| run.get_cpu_micros),
            or_dash(pair.ours.get_cpu_micros, human::number),
            or_dash(pair.gets_over_dent, human::ratio),
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
