//! The document: claims, each a check on numbers, and the tables that they were read from.

use std::fmt::Write as _;

use super::talk::Run;
use super::workload::Keys;
use super::{FIG2, FIG3, Measured, Point, Setting, TABLE1};
use crate::human;

/// How his program was built where it stands in the tables.
const BUILD: &str = "g++ -O2 -std=c++11 -include tuple -include functional -Ilib -pthread \
                     src/*.cpp -o bin/lsm";

/// What should be, what is, and whether that is it.
struct Claim {
    about: &'static str,
    says: &'static str,
    here: String,
    /// `None` where it was not measured.
    holds: Option<bool>,
}

fn claim(about: &'static str, says: &'static str, measured: Option<(String, bool)>) -> Claim {
    let (here, holds) = match measured {
        Some((here, holds)) => (here, Some(holds)),
        None => ("his program was not there".to_owned(), None),
    };
    Claim { about, says, here, holds }
}

fn times(ratio: f64) -> String {
    format!("{}×", human::number(ratio))
}

fn rate(per_second: f64) -> String {
    human::count(per_second.round() as u64)
}

fn gets(run: &Run) -> f64 {
    run.gets_per_second.unwrap_or(0.0)
}

/// The whole text.
pub(super) fn write(setting: &Setting, measured: &Measured, machine: &str) -> String {
    let beside = if setting.beside.is_some() { " --beside bin/lsm" } else { "" };
    let mut text = format!(
        "# Dent's tree\n\n\
         `terrane cs265` is the tree of J. Dent's report (CS 265), with its letters and its command \
         language;\n`--design dent` is its design. This page runs it beside his own program, and is \
         written by\n\n\
         ```sh\nterrane bench claims dent --scale {} --rounds {}{beside} --output docs/dent.md\n```\n\n\
         on this machine: {machine}.\nOthers that use it slow ours, which has \
         several threads, more than his: a load average above the number of\ncores makes rates \
         smaller than they are, and ours over his too; processor times change less.\n\n\
         His program is github.com/jackdent/cs265-lsm-tree at 48a8fba, built with\n\n\
         ```sh\n{BUILD}\n```\n\n\
         (its own makefile leaves `-O2` out, which would halve his figures; Boost's headers are \
         needed). Both get\nthe same commands through a pipe and take turns, ours the gets {} times over, \
         as processor time is told in\nhundredths of a second; in Table 1 each operation \
         at its best of {} rounds and\nratios the medians of the rounds'; every answer is held \
         against a map. Half of the gets are of keys that \
         were never put. Both have `-t 4`, and neither keeps\na log. *Published* is what his report \
         says, measured on another machine.\n\n\
         His program finds few of its keys: since a change of its last days there is a fence pointer \
         for every\n4096 entries, and a get reads 512 of them. So it does less for a get than it \
         should, and still reads a\npage of each run through a mapping that it makes and removes.\n\n\
         ## Claims\n\n| | | here | holds |\n|---|---|---|---|\n",
        setting.scale,
        setting.rounds,
        super::GETS_AGAIN,
        setting.rounds,
    );
    for Claim { about, says, here, holds } in claims(measured) {
        let holds = match holds {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "-",
        };
        let _ = writeln!(text, "| {about} | {says} | {here} | {holds} |");
    }
    table1(&mut text, setting, measured);
    fig2(&mut text, setting, measured);
    fig3(&mut text, setting, measured);
    text
}

fn claims(measured: &Measured) -> Vec<Claim> {
    let all = || {
        let fig2 = measured.fig2.iter().flatten();
        measured.table1.iter().chain(fig2).chain(&measured.fig3)
    };
    let wrong: u64 = all().map(|point| point.ours.wrong_answers).sum();
    let uniform = measured.table1.first();
    let least =
        |of: fn(&Point) -> Option<f64>| measured.table1.iter().filter_map(of).reduce(f64::min);
    let aim = |ratio: Option<f64>, aim: f64| ratio.map(|ratio| (times(ratio), ratio >= aim));
    let mut claims = vec![
        claim(
            "aim",
            "five times his puts, at his parameters",
            aim(least(|point| point.puts_over_his), 5.0),
        ),
        claim(
            "aim",
            "ten times his gets, in the same run",
            aim(least(|point| point.gets_over_his), 10.0),
        ),
        claim("aim", "every answer is right", Some((format!("{wrong} wrong"), wrong == 0))),
        claim(
            "aim",
            "a million puts a second, uniform",
            uniform.map(|point| {
                let rate = point.ours.puts_per_second;
                (format!("{} a second", self::rate(rate)), rate >= 1e6)
            }),
        ),
    ];
    claims.extend(report_claims(measured));
    claims
}

/// What the report says of its own tree, by the processor time of ours: his has one thread that
/// works at a time, and what else the machine does would drown the figures.
fn report_claims(measured: &Measured) -> Vec<Claim> {
    let of_table1 = |at: usize, of: fn(&Run) -> Option<f64>| of(&measured.table1.get(at)?.ours);
    let gain = |slow: Option<f64>, fast: Option<f64>| {
        let (slow, fast) = slow.zip(fast)?;
        (fast > 0.0).then_some(slow / fast)
    };
    let gaussian = |of| gain(of_table1(0, of), of_table1(1, of));
    let at_fanout = |wanted: u32| {
        let at = FIG2.iter().position(|(fanout, _)| *fanout == wanted)?;
        measured.fig2.get(at)?.first()?.ours.put_cpu_micros
    };
    let at_bits = |wanted: f64| {
        let at = FIG3.iter().position(|(bits, _)| (bits - wanted).abs() < 1e-9)?;
        measured.fig3.get(at)?.ours.get_cpu_micros
    };
    let judged = |gain: Option<f64>, holds: fn(f64) -> bool| {
        gain.map(|gain| (format!("{} for the same processor time", times(gain)), holds(gain)))
    };
    vec![
        claim(
            "Table 1",
            "Gaussian keys make puts slightly faster",
            judged(gaussian(|run| run.put_cpu_micros), |gain| gain > 1.0),
        ),
        claim(
            "Table 1",
            "and gets roughly 1.5 times as fast",
            judged(gaussian(|run| run.get_cpu_micros), |gain| gain >= 1.25),
        ),
        claim(
            "Fig. 2",
            "a larger fanout makes puts faster: 1.5 times from 2 to 30",
            judged(gain(at_fanout(2), at_fanout(30)), |gain| gain >= 1.5),
        ),
        claim(
            "Fig. 2",
            "and levels off at about 30",
            judged(gain(at_fanout(30), at_fanout(50)), |gain| (0.85..1.15).contains(&gain)),
        ),
        claim(
            "Fig. 3",
            "gets more than double from half a filter bit an entry to eight",
            judged(gain(at_bits(0.5), at_bits(8.0)), |gain| gain > 2.0),
        ),
    ]
}

fn his(run: Option<Run>, of: impl Fn(Run) -> Option<f64>) -> Option<f64> {
    of(run?)
}

fn or_dash(value: Option<f64>, show: fn(f64) -> String) -> String {
    value.map_or("-".to_owned(), show)
}

fn wrong(run: Option<Run>, of: usize) -> String {
    run.map_or("-".to_owned(), |run| {
        format!("{} of {}", human::count(run.wrong_answers), human::count(of as u64))
    })
}

fn table1(text: &mut String, setting: &Setting, measured: &Measured) {
    let (puts, gets_count) = (setting.count(super::PUTS), setting.count(super::GETS));
    let _ = write!(
        text,
        "\n## Table 1\n\nb = 1000, t = 4, f = 10, r = 0.5; {} puts, then {} gets. Operations a \
         second; *cpu* is the processor time of\nall threads for one, in microseconds.\n\n\
         | | published | his | ours | ours over his | his cpu | our cpu | his wrong | ours wrong |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        human::count(puts),
        human::count(gets_count)
    );
    for ((keys, published_puts, published_gets), point) in TABLE1.iter().zip(&measured.table1) {
        let keys: Keys = *keys;
        let puts = [
            rate(*published_puts),
            or_dash(his(point.his, |run| Some(run.puts_per_second)), rate),
            rate(point.ours.puts_per_second),
            or_dash(point.puts_over_his, times),
            or_dash(his(point.his, |run| run.put_cpu_micros), human::number),
            or_dash(point.ours.put_cpu_micros, human::number),
        ];
        let _ = writeln!(text, "| {} puts | {} | | |", keys.name(), puts.join(" | "));
        let gets = [
            rate(*published_gets),
            or_dash(his(point.his, |run| run.gets_per_second), rate),
            rate(gets(&point.ours)),
            or_dash(point.gets_over_his, times),
            or_dash(his(point.his, |run| run.get_cpu_micros), human::number),
            or_dash(point.ours.get_cpu_micros, human::number),
            wrong(point.his, gets_count as usize),
            wrong(Some(point.ours), gets_count as usize * super::GETS_AGAIN),
        ];
        let _ = writeln!(text, "| {} gets | {} |", keys.name(), gets.join(" | "));
    }
}

fn fig2(text: &mut String, setting: &Setting, measured: &Measured) {
    let puts = human::count(setting.count(super::POINT_PUTS));
    let _ = write!(
        text,
        "\n## Fig. 2: puts by fanout\n\n{puts} uniform puts. The caption says b = 1 and the text \
         b = 1000; the plot is of 1. With b = 1 a flush makes a\nfile of 512 entries. Published: \
         puts a second. The others: processor time for a put in microseconds, of all\nthreads.\n\n\
         | f | published, b = 1 | his, b = 1 | ours, b = 1 | his, b = 1000 | ours, b = 1000 |\n\
         |---:|---:|---:|---:|---:|---:|\n"
    );
    for ((fanout, published), points) in FIG2.iter().zip(&measured.fig2) {
        let _ = write!(text, "| {fanout} | {} |", rate(*published));
        for point in points {
            let his_cpu = or_dash(his(point.his, |run| run.put_cpu_micros), human::number);
            let our_cpu = or_dash(point.ours.put_cpu_micros, human::number);
            let _ = write!(text, " {his_cpu} | {our_cpu} |");
        }
        text.push('\n');
    }
}

fn fig3(text: &mut String, setting: &Setting, measured: &Measured) {
    let gets_count = setting.count(super::POINT_GETS);
    let _ = write!(
        text,
        "\n## Fig. 3: gets by filter bits an entry\n\nb = 100, f = 1000; {} uniform puts, then {} \
         gets. Published: gets a second. The others: processor time for\na get in microseconds, of \
         all threads.\n\n\
         | r | published | his | ours | our rate over his | his wrong | ours wrong |\n\
         |---:|---:|---:|---:|---:|---:|---:|\n",
        human::count(setting.count(super::POINT_PUTS)),
        human::count(gets_count)
    );
    for ((bits, published), point) in FIG3.iter().zip(&measured.fig3) {
        let _ = writeln!(
            text,
            "| {bits} | {} | {} | {} | {} | {} | {} |",
            rate(*published),
            or_dash(his(point.his, |run| run.get_cpu_micros), human::number),
            or_dash(point.ours.get_cpu_micros, human::number),
            or_dash(point.gets_over_his, times),
            wrong(point.his, gets_count as usize),
            wrong(Some(point.ours), gets_count as usize * super::GETS_AGAIN),
        );
    }
}
