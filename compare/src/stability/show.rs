//! The evaluation as Markdown: a table of maximum rates, and a table for each rate at which engines
//! ran.

use std::fmt::Write;

use super::StabilityArguments;
use super::job::{Evaluation, Phase};
use crate::engines::{Budget, Engine, Storage};
use crate::statistics::median;

/// The calibration engine: shown with the others, but excluded from comparisons.
const CALIBRATION: &str = "mem";
/// The name of our engine.
const BASELINE: &str = "terrane";

type Evaluated = (&'static Engine, Evaluation);
type Figure = fn(&Phase) -> f64;

/// Formats all results for people.
pub(super) fn markdown(
    arguments: &StabilityArguments,
    engines: &[&'static Engine],
    evaluated: &[Evaluated],
) -> String {
    let mut text = maxima(arguments, engines, evaluated);
    for (number, share) in arguments.utilizations.iter().enumerate() {
        let title = format!("At {} % of its own maximum", share * 100.0);
        let of = |evaluation: &Evaluation| evaluation.runs.get(number).cloned();
        text += &table(&title, engines, evaluated, &of);
    }
    let reference = arguments.reference();
    if engines.iter().any(|engine| engine.name == reference) {
        let shares = arguments.utilizations.len();
        let title = format!("At the maximum of {reference}");
        let own = move |evaluation: &Evaluation| {
            // The reference itself ran at all of its own.
            evaluation.at_reference.clone().or_else(|| evaluation.runs.get(shares).cloned())
        };
        text += &table(&title, engines, evaluated, &own);
    }
    text
}

/// Returns the median of a figure of an engine.
fn of(
    engine: &Engine,
    evaluated: &[Evaluated],
    figure: impl Fn(&Evaluation) -> Option<f64>,
) -> Option<f64> {
    let its = evaluated.iter().filter(|(other, _)| other.name == engine.name);
    median(its.filter_map(|(_, evaluation)| figure(evaluation)).collect())
}

fn maxima(
    arguments: &StabilityArguments,
    engines: &[&'static Engine],
    evaluated: &[Evaluated],
) -> String {
    let maximum =
        |engine: &Engine| of(engine, evaluated, |evaluation| Some(evaluation.maximum_per_second));
    let is_peer = |engine: &&&Engine| engine.name != BASELINE && engine.name != CALIBRATION;
    let best = engines.iter().filter(is_peer).filter_map(|engine| maximum(engine));
    let best = best.fold(0.0, f64::max);
    let mut text = String::from("### Maximum, closed system\n\n| engine | writes/s |");
    text += " slowest second | over the best peer | budget |\n|---|---:|---:|---:|---|\n";
    for engine in engines {
        let Some(rate) = maximum(engine) else { continue };
        let slowest = of(engine, evaluated, |one| one.testing.slowest_second_share);
        let over = if engine.name == BASELINE && best > 0.0 {
            format!("{:.2}x", rate / best)
        } else {
            String::new()
        };
        let budget = match (arguments.budget, engine.budget) {
            (None, _) => "none",
            (Some(_), _) if engine.storage == Storage::Memory => "it has no files",
            (Some(_), Budget::Kept) => "kept",
            (Some(_), Budget::Ignored) => "it has no limiter",
        };
        let slowest = slowest.map_or(String::new(), |share| format!("{:.0} %", share * 100.0));
        let _ = writeln!(text, "| {} | {rate:.0} | {slowest} | {over} | {budget} |", engine.name);
    }
    text
}

fn table(
    title: &str,
    engines: &[&'static Engine],
    evaluated: &[Evaluated],
    phase: &dyn Fn(&Evaluation) -> Option<Phase>,
) -> String {
    let figure = |engine: &Engine, get: Figure| {
        of(engine, evaluated, |evaluation| phase(evaluation).map(|phase| get(&phase)))
    };
    let columns: [(&str, Figure); 8] = [
        ("writes/s", |phase| phase.offered_per_second),
        ("p50 us", |phase| phase.write.p50),
        ("p99 us", |phase| phase.write.p99),
        ("p99.9 us", |phase| phase.write.p99_9),
        ("max us", |phase| phase.write.max),
        ("longest service us", |phase| phase.processing.max),
        ("longest stall s", |phase| phase.longest_stall_seconds),
        ("slowest second", |phase| phase.slowest_second_share.unwrap_or(f64::NAN)),
    ];
    let mut text = format!("\n### {title}, open system\n\n| engine |");
    columns.iter().for_each(|(name, _)| text += &format!(" {name} |"));
    text += " p99, p99.9 over mem | sustainable |\n|---|";
    columns.iter().for_each(|_| text += "---:|");
    text += "---:|---|\n";
    let mem = engines.iter().find(|engine| engine.name == CALIBRATION);
    let over_mem = |engine: &Engine, get: Figure| {
        let mem = figure(mem?, get).filter(|mem| *mem > 0.0)?;
        Some(format!("{:.2}x", figure(engine, get)? / mem))
    };
    for engine in engines {
        let values: Vec<_> = columns.iter().map(|(_, get)| figure(engine, *get)).collect();
        if values[0].is_none() {
            continue;
        }
        let _ = write!(text, "| {} |", engine.name);
        for ((name, _), value) in columns.iter().zip(values) {
            let _ = match value {
                Some(value) if *name == "slowest second" => {
                    write!(text, " {:.0} % |", value * 100.0)
                }
                Some(value) if value >= 100.0 => write!(text, " {value:.0} |"),
                Some(value) => write!(text, " {value:.2} |"),
                None => write!(text, " |"),
            };
        }
        let ratios = [
            over_mem(engine, |phase| phase.write.p99),
            over_mem(engine, |phase| phase.write.p99_9),
        ];
        let ratios: Vec<_> = ratios.into_iter().flatten().collect();
        let its = evaluated.iter().filter(|(other, _)| other.name == engine.name);
        let verdicts: Vec<bool> =
            its.filter_map(|(_, one)| phase(one)).map(|one| one.is_sustainable).collect();
        let yes = verdicts.iter().filter(|yes| **yes).count();
        let verdict = match (yes, verdicts.len()) {
            (yes, all) if yes == all => "yes".to_owned(),
            (0, _) => "no".to_owned(),
            (yes, all) => format!("{yes} of {all}"),
        };
        let _ = writeln!(text, " {} | {verdict} |", ratios.join(", "));
    }
    text
}
