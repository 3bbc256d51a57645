//! Prints advice.

use std::io::{self, Write};
use std::time::Duration;

use terrane_lab::advice::decide::{ChangeDecision, difference};
use terrane_lab::advice::report::{AdviceReport, WorkloadSource};
use terrane_policy::advice::{RankedDesign, summary};

use crate::table::{Align, lines, table};
use crate::terminal::Paint;
use terrane_lab::output::human;

/// Prints advice.
pub(crate) fn advice(
    out: &mut dyn Write,
    report: &AdviceReport<'_>,
    paint: Paint,
) -> io::Result<()> {
    let AdviceReport { case, found, .. } = report;
    let assumed = if report.source == WorkloadSource::Assumed {
        " (assumed; no --mix was given)"
    } else {
        ""
    };
    writeln!(out, "operations  {}{assumed}", case.operations.sentence())?;
    if let WorkloadSource::Recorded(count) = report.source {
        let all = human::counted(count, "operation");
        let rate = case.operations.rate.unwrap_or_default();
        let second = human::counted(rate.round() as u64, "operation");
        writeln!(
            out,
            "            from the last {all} that the database recorded, {second} per second"
        )?;
    }
    writeln!(
        out,
        "data        {} of {} B: {}, of which {} may be in memory; {} filter bits per key",
        human::counted(case.records.count as u64, "record"),
        human::number(case.records.bytes),
        human::bytes((case.records.count * case.records.bytes) as u64),
        human::bytes(case.memory),
        case.filter_bits
    )?;
    if let Some(rate) = found.rate {
        let writes = human::number(rate);
        writeln!(out, "stalls      at {writes} writes per second")?;
    }
    if case.records.count * case.records.bytes < case.now.buffer_bytes as f64 {
        writeln!(out, "            that fits in one memtable, so any design works")?;
    }
    writeln!(out, "now         {}", summary(&case.now))?;
    writeln!(out, "tried       {}\n", human::counted(found.tried as u64, "design"))?;
    costs_table(out, report)?;
    differences(out, report, paint)?;
    memtables(out, report, paint)?;
    change(out, report, paint)
}

/// Prints the costs of the best designs, the present design and the worst design.
fn costs_table(out: &mut dyn Write, report: &AdviceReport<'_>) -> io::Result<()> {
    let headers = [
        ("", Align::Left),
        ("design", Align::Left),
        ("µs/op", Align::Right),
        ("written ×", Align::Right),
        ("blocks found", Align::Right),
        ("missing", Align::Right),
        ("runs", Align::Right),
        ("space ×", Align::Right),
        ("stalled", Align::Right),
        ("p99", Align::Right),
    ];
    let mut table = table(&headers);
    let best = shown(report);
    let places = (1..=best.len()).map(|place| place.to_string());
    let mut rows: Vec<(String, &RankedDesign)> = places.zip(best).collect();
    if best.iter().all(|one| one.candidate.design != report.case.now) {
        rows.push(("now".to_owned(), &report.found.now));
    }
    rows.extend(report.found.worst.iter().map(|one| ("avoid".to_owned(), one)));
    let names = labels(&rows.iter().map(|(_, one)| *one).collect::<Vec<_>>());
    for ((place, one), name) in rows.iter().zip(names) {
        table.add_row(cells(place, name, one));
    }
    for line in lines(&table) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn shown<'a>(report: &AdviceReport<'a>) -> &'a [RankedDesign] {
    let best = &report.found.best;
    best.get(..report.top.min(best.len())).unwrap_or_default()
}

fn differences(out: &mut dyn Write, report: &AdviceReport<'_>, paint: Paint) -> io::Result<()> {
    writeln!(out, "\n{}", paint.bold("compared with the present design"))?;
    for (number, one) in shown(report).iter().enumerate() {
        let comparison = if one.candidate.design == report.case.now {
            "this is the present design".to_owned()
        } else {
            difference(report.case, one, &report.found.now)
        };
        writeln!(out, "{}. {}", number + 1, summary(&one.candidate.design))?;
        writeln!(out, "   {comparison}")?;
        if !one.exceeds.is_empty() {
            writeln!(out, "   over a limit: {}", one.exceeds.join(", "))?;
        }
    }
    for one in &report.found.worst {
        let comparison = difference(report.case, one, &report.found.now);
        writeln!(out, "avoid {}: {comparison}", one.candidate.name)?;
    }
    Ok(())
}

/// Prints the best memtables, and what the best saves.
fn memtables(out: &mut dyn Write, report: &AdviceReport<'_>, paint: Paint) -> io::Result<()> {
    let advice = report.case.memtables();
    let (now, nanos) = advice.now;
    writeln!(out, "\n{}", paint.bold("memtables, in memory and for their flush"))?;
    for (place, one) in (1..=report.top).zip(&advice.ranked) {
        writeln!(out, "{place}. {:>6.0} ns/op  {}", one.nanos, one.kind)?;
    }
    writeln!(out, "now {nanos:>5.0} ns/op  {now}")?;
    match advice.ranked.first() {
        Some(best) if advice.saved() >= 0.05 * nanos => writeln!(
            out,
            "memtable={} saves {:.0} ns per operation, {:.0} % of these costs",
            best.kind,
            advice.saved(),
            advice.saved() / nanos * 100.0
        ),
        _ => writeln!(out, "no other memtable saves 5 % of these costs"),
    }
}

fn change(out: &mut dyn Write, report: &AdviceReport<'_>, paint: Paint) -> io::Result<()> {
    let Some(best) = report.found.best.first() else { return Ok(()) };
    let text = summary(&best.candidate.design);
    let Some(decision) = report.decision else {
        writeln!(out, "\n{}", paint.bold("to try it"))?;
        return writeln!(out, "terrane bench --design '{text}'{}", report.trial);
    };
    writeln!(out, "\n{}", paint.bold("the change"))?;
    if best.candidate.design != report.case.now {
        writeln!(out, "{}", cost(decision))?;
    }
    writeln!(out, "{}", decision.reason)?;
    if report.applies {
        let done = if decision.is_worth {
            format!("the design is now {text}; compactions change the tree from here on")
        } else {
            "the design is unchanged".to_owned()
        };
        return writeln!(out, "{done}");
    }
    match report.db {
        Some(db) if best.candidate.design != report.case.now => {
            writeln!(out, "terrane design set {} '{text}' --dry-run", db.display())
        }
        _ => Ok(()),
    }
}

/// Formats the cost of a change.
fn cost(decision: &ChangeDecision) -> String {
    let forecast = &decision.forecast;
    if forecast.jobs == 0 {
        return "the tree satisfies the design already: nothing to rewrite".into();
    }
    let payback = decision.payback.map_or(String::new(), |operations| {
        format!(", paid for by {}", human::counted(operations.ceil() as u64, "operation"))
    });
    format!(
        "{} rewrite {} at most, about {}{payback}",
        human::counted(forecast.jobs, "compaction"),
        human::bytes(forecast.bytes_rewritten),
        human::duration(Duration::from_secs_f64(decision.seconds.clamp(0.0, 1e12))),
    )
}

/// Returns the name of a design, or its main settings if it has no name.
fn label(ranked: &RankedDesign) -> String {
    let strategy = &ranked.candidate.design.strategy;
    match ranked.candidate.name.contains(' ') {
        true => format!("{} T={}", strategy.eagerness, strategy.size_ratio),
        false => ranked.candidate.name.clone(),
    }
}

/// Returns labels for designs. Equal labels are extended by the settings in which the designs
/// differ.
fn labels(all: &[&RankedDesign]) -> Vec<String> {
    let settings = |ranked: &RankedDesign| ranked.candidate.design.settings();
    let unique = |one: &&RankedDesign| {
        let name = label(one);
        let is_other = |other: &&&RankedDesign| other.candidate.design != one.candidate.design;
        let same: Vec<_> = all
            .iter()
            .filter(|other| label(other) == name)
            .filter(is_other)
            .map(|other| settings(other))
            .collect();
        let own = settings(one);
        let differs = |setting: &&(&str, String)| same.iter().any(|other| !other.contains(setting));
        let words = own.iter().filter(differs).map(|(key, value)| format!("{key}={value}"));
        std::iter::once(name).chain(words).collect::<Vec<_>>().join("; ")
    };
    all.iter().map(unique).collect()
}

fn cells(place: &str, name: String, ranked: &RankedDesign) -> [String; 10] {
    let costs = &ranked.candidate.costs;
    let seconds = |time: f64| human::duration(Duration::from_secs_f64(time.clamp(0.0, 1e9)));
    [
        place.to_owned(),
        name,
        human::number(ranked.score * 1e6),
        format!("{:.2}", costs.written),
        format!("{:.3}", costs.found_blocks),
        format!("{:.4}", costs.missing_blocks),
        format!("{:.1}", costs.runs),
        format!("{:.2}", costs.space),
        costs.stalled.map_or("-".into(), |part| format!("{:.1} %", part * 100.0)),
        costs.p99_seconds.map_or("-".into(), seconds),
    ]
}

#[cfg(test)]
mod tests {
    use terrane_policy::advice::{DesignCandidate, DesignCosts};

    use super::*;

    /// Returns a design with its settings as its name. All designs that it returns cost the same.
    fn ranked(design: &str, score: f64) -> RankedDesign {
        let costs = DesignCosts {
            written: 1.0,
            merged: 0.0,
            found_blocks: 1.0,
            missing_blocks: 0.0,
            value_reads: 0.0,
            runs: 1.0,
            space: 1.0,
            stalled: None,
            p99_seconds: None,
        };
        let candidate =
            DesignCandidate { name: design.into(), design: design.parse().unwrap(), costs };
        RankedDesign { candidate, score, exceeds: Vec::new() }
    }

    #[test]
    fn no_two_designs_have_the_same_name_in_a_ranking() {
        let first = ranked("leveling T=8", 1.0);
        let second = ranked("leveling T=8; filter=monkey(10)", 1.0);
        let other = ranked("leveling T=6", 1.0);
        assert_eq!(
            labels(&[&first, &second, &other, &first]),
            [
                "leveling T=8; filter=10",
                "leveling T=8; filter=monkey(10)",
                "leveling T=6",
                "leveling T=8; filter=10"
            ]
        );
        assert_eq!(labels(&[&first, &other]), ["leveling T=8", "leveling T=6"]);
    }
}
