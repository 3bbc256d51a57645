//! What came out, for people and programs.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use terrane::policy::advice::{Ranked, brief};

use super::Case;
use super::decide::{Decision, difference};
use super::search::Found;
use crate::human;
use crate::json::SCHEMA;
use crate::table::{Align, lines, table};
use crate::terminal::Paint;

/// What is told of.
pub(in crate::commands) struct Telling<'a> {
    pub(in crate::commands) case: &'a Case,
    pub(in crate::commands) found: &'a Found,
    /// `None` where there is no database.
    pub(in crate::commands) decision: Option<&'a Decision>,
    /// The directory of the database, for commands; `None` where it is open.
    pub(in crate::commands) db: Option<&'a Path>,
    /// How many are told of.
    pub(in crate::commands) top: usize,
    /// Whether a change that is worth it is made.
    pub(in crate::commands) applies: bool,
    /// Who said what operations there are.
    pub(in crate::commands) source: Source,
}

/// Where it is known from what operations there are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::commands) enum Source {
    /// It is known to who asks.
    Given,
    /// It is not known.
    Assumed,
    /// The database remembers so many.
    Remembered(u64),
}

/// Advice as programs get it.
#[derive(Serialize)]
pub(in crate::commands) struct JsonAdvice<'a> {
    schema: u32,
    operations: JsonOperations,
    #[serde(skip_serializing_if = "Option::is_none")]
    operations_remembered: Option<u64>,
    records: f64,
    record_bytes: f64,
    filter_bits: f64,
    writes_per_second: Option<f64>,
    objective: String,
    tried: usize,
    now: JsonRanked,
    best: Vec<JsonRanked>,
    avoid: Vec<JsonRanked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<JsonChange<'a>>,
}

#[derive(Serialize)]
struct JsonOperations {
    writes: f64,
    found: f64,
    missing: f64,
    scans: f64,
    scan_entries: f64,
    inserts: f64,
    keys: String,
    per_second: Option<f64>,
}

#[derive(Serialize)]
struct JsonRanked {
    name: String,
    design: String,
    score_micros: f64,
    written: f64,
    compaction_read: f64,
    found_blocks: f64,
    missing_blocks: f64,
    runs: f64,
    space: f64,
    stalled: Option<f64>,
    p99_seconds: Option<f64>,
    exceeds: Vec<String>,
    beside_now: String,
}

#[derive(Serialize)]
struct JsonChange<'a> {
    design: String,
    gain: f64,
    jobs: u64,
    bytes_rewritten: u64,
    seconds: f64,
    payback_operations: Option<f64>,
    payback_seconds: Option<f64>,
    is_worth: bool,
    is_done: bool,
    reason: &'a str,
}

impl Telling<'_> {
    /// For programs.
    pub(in crate::commands) fn json(&self) -> JsonAdvice<'_> {
        let Self { case, found, .. } = self;
        let shares = &case.operations.shares;
        let all = |ranked: &[Ranked], count: usize| -> Vec<JsonRanked> {
            ranked.iter().take(count).map(|one| self.json_ranked(one)).collect()
        };
        let change = self.decision.map(|decision| JsonChange {
            design: brief(&decision.design),
            gain: thousandths(decision.gain),
            jobs: decision.forecast.jobs,
            bytes_rewritten: decision.forecast.bytes_rewritten,
            seconds: thousandths(decision.seconds),
            payback_operations: decision.payback.map(f64::round),
            payback_seconds: decision.payback_seconds.map(thousandths),
            is_worth: decision.is_worth,
            is_done: decision.is_worth && self.applies,
            reason: &decision.reason,
        });
        JsonAdvice {
            schema: SCHEMA,
            operations: JsonOperations {
                writes: thousandths(shares.writes),
                found: thousandths(shares.found),
                missing: thousandths(shares.missing),
                scans: thousandths(shares.scans),
                scan_entries: shares.scan_entries,
                inserts: thousandths(case.operations.inserts),
                keys: case.operations.skew.to_string(),
                per_second: case.operations.rate.map(f64::round),
            },
            operations_remembered: match self.source {
                Source::Remembered(count) => Some(count),
                Source::Given | Source::Assumed => None,
            },
            records: case.records.count,
            record_bytes: thousandths(case.records.bytes),
            filter_bits: case.filter_bits,
            writes_per_second: found.rate.map(f64::round),
            objective: case.objective.to_string(),
            tried: found.tried,
            now: self.json_ranked(&found.now),
            best: all(&found.best, self.top),
            avoid: all(&found.worst, found.worst.len()),
            change,
        }
    }

    fn json_ranked(&self, ranked: &Ranked) -> JsonRanked {
        let costs = &ranked.candidate.costs;
        JsonRanked {
            name: ranked.candidate.name.clone(),
            design: brief(&ranked.candidate.design),
            score_micros: thousandths(ranked.score * 1e6),
            written: thousandths(costs.written),
            compaction_read: thousandths(costs.merged),
            found_blocks: thousandths(costs.found_blocks),
            missing_blocks: (costs.missing_blocks * 1e6).round() / 1e6,
            runs: thousandths(costs.runs),
            space: thousandths(costs.space),
            stalled: costs.stalled.map(thousandths),
            p99_seconds: costs.p99_seconds.map(|seconds| (seconds * 1e6).round() / 1e6),
            exceeds: ranked.exceeds.clone(),
            beside_now: difference(self.case, ranked, &self.found.now),
        }
    }

    /// For people.
    pub(in crate::commands) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let paint = Paint::stdout();
        let Self { case, found, .. } = self;
        let assumed = if self.source == Source::Assumed { ", as no --mix was given" } else { "" };
        writeln!(out, "operations  {}{assumed}", case.operations.sentence())?;
        if let Source::Remembered(count) = self.source {
            let all = human::counted(count, "operation");
            let rate = case.operations.rate.unwrap_or_default();
            let second = human::counted(rate.round() as u64, "operation");
            writeln!(
                out,
                "            by the last {all} that the database remembers, {second} a second"
            )?;
        }
        writeln!(
            out,
            "data        {} of {} B: {}, of which {} may be in memory; {} filter bits a key",
            human::counted(case.records.count as u64, "record"),
            human::number(case.records.bytes),
            human::bytes((case.records.count * case.records.bytes) as u64),
            human::bytes(case.memory),
            case.filter_bits
        )?;
        if let Some(rate) = found.rate {
            let writes = human::number(rate);
            writeln!(out, "held up     is told for {writes} writes a second")?;
        }
        if case.records.count * case.records.bytes < case.now.buffer_bytes as f64 {
            writeln!(out, "            that fits into one memtable: any design does")?;
        }
        writeln!(out, "now         {}", brief(&case.now))?;
        writeln!(out, "tried       {}\n", human::counted(found.tried as u64, "design"))?;
        self.figures(out)?;
        self.words(out, paint)?;
        self.change(out, paint)
    }

    /// The best ones, the present one and the worst, in numbers.
    fn figures(&self, out: &mut dyn Write) -> io::Result<()> {
        let headers = [
            ("", Align::Left),
            ("design", Align::Left),
            ("µs/op", Align::Right),
            ("written ×", Align::Right),
            ("blocks found", Align::Right),
            ("missing", Align::Right),
            ("runs", Align::Right),
            ("space ×", Align::Right),
            ("held up", Align::Right),
            ("p99", Align::Right),
        ];
        let mut table = table(&headers);
        let best = self.shown();
        let places = (1..=best.len()).map(|place| place.to_string());
        let mut rows: Vec<(String, &Ranked)> = places.zip(best).collect();
        if best.iter().all(|one| one.candidate.design != self.case.now) {
            rows.push(("now".to_owned(), &self.found.now));
        }
        rows.extend(self.found.worst.iter().map(|one| ("avoid".to_owned(), one)));
        let names = labels(&rows.iter().map(|(_, one)| *one).collect::<Vec<_>>());
        for ((place, one), name) in rows.iter().zip(names) {
            table.add_row(cells(place, name, one));
        }
        for line in lines(&table) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    fn shown(&self) -> &[Ranked] {
        let best = &self.found.best;
        best.get(..self.top.min(best.len())).unwrap_or_default()
    }

    fn words(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        writeln!(out, "\n{}", paint.bold("beside the present design"))?;
        for (number, one) in self.shown().iter().enumerate() {
            let beside = if one.candidate.design == self.case.now {
                "this is the present design".to_owned()
            } else {
                difference(self.case, one, &self.found.now)
            };
            writeln!(out, "{}. {}", number + 1, brief(&one.candidate.design))?;
            writeln!(out, "   {beside}")?;
            if !one.exceeds.is_empty() {
                writeln!(out, "   over a limit: {}", one.exceeds.join(", "))?;
            }
        }
        for one in &self.found.worst {
            let beside = difference(self.case, one, &self.found.now);
            writeln!(out, "avoid {}: {beside}", one.candidate.name)?;
        }
        Ok(())
    }

    fn change(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        let Some(best) = self.found.best.first() else { return Ok(()) };
        let text = brief(&best.candidate.design);
        let Some(decision) = self.decision else {
            writeln!(out, "\n{}", paint.bold("to try it"))?;
            return writeln!(out, "terrane bench --design '{text}'");
        };
        writeln!(out, "\n{}", paint.bold("the change"))?;
        if best.candidate.design != self.case.now {
            writeln!(out, "{}", cost(decision))?;
        }
        writeln!(out, "{}", decision.reason)?;
        if self.applies {
            let done = if decision.is_worth {
                format!("the design is now {text}; compactions change the tree from here on")
            } else {
                "the design stays as it is".to_owned()
            };
            return writeln!(out, "{done}");
        }
        match self.db {
            Some(db) if best.candidate.design != self.case.now => {
                writeln!(out, "terrane design set {} '{text}' --dry-run", db.display())
            }
            _ => Ok(()),
        }
    }
}

/// What a change takes.
fn cost(decision: &Decision) -> String {
    let forecast = &decision.forecast;
    if forecast.jobs == 0 {
        return "the tree satisfies the design as it is: nothing to rewrite".into();
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

/// A name, or what tells designs without one apart most.
fn label(ranked: &Ranked) -> String {
    let strategy = &ranked.candidate.design.strategy;
    match ranked.candidate.name.contains(' ') {
        true => format!("{} T={}", strategy.eagerness, strategy.size_ratio),
        false => ranked.candidate.name.clone(),
    }
}

/// A label for each; those of which two would be the same go on with what tells them apart.
fn labels(all: &[&Ranked]) -> Vec<String> {
    let settings = |ranked: &Ranked| ranked.candidate.design.settings();
    let unique = |one: &&Ranked| {
        let name = label(one);
        let is_other = |other: &&&Ranked| other.candidate.design != one.candidate.design;
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

fn cells(place: &str, name: String, ranked: &Ranked) -> [String; 10] {
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

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::super::tests::ranked;
    use super::*;

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
