//! All figures and claims as data, for the page of the explorer.

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};
use terrane_lab::report::page::setting_rows;
use terrane_lab::report::run_page::Figure;

use super::ReportedExperiment;
use crate::judge::ClaimVerdict;
use crate::results::Results;

/// Digits of numbers: a picture has no more than a thousand pixels.
const DIGITS: usize = 4;

/// A claim with its verdict.
#[derive(Serialize)]
struct ClaimData<'a> {
    source: String,
    says: &'a str,
    mode: Option<&'a str>,
    stated: Option<&'a str>,
    rule: &'a str,
    measured: &'a str,
    /// In words, such as `same direction`.
    verdict: &'static str,
    notes: &'a [String],
    /// The places of its figures in the list of figures.
    figures: Vec<usize>,
}

/// Returns the data of all experiments, as one line of JSON.
///
/// # Errors
/// If an experiment is unknown.
pub fn page_data(all: &[Results]) -> Result<String> {
    let experiments = all.iter().map(|results| {
        let reported = ReportedExperiment::of(results, None)?;
        let figures = reported.panels.iter().map(|panel| {
            json!({
                "number": panel.number,
                "figure": Figure::of_panel(&panel.number, &panel.panel).without_drawing(),
                "sources": panel.sources,
            })
        });
        let claims = reported.verdicts.iter().map(|verdict| claim(&reported, verdict));
        let setting = results.environment.as_ref().map(setting_rows).unwrap_or_default();
        let mut value = json!({
            "name": reported.experiment.name,
            "paper": reported.experiment.paper,
            "about": reported.experiment.about,
            "setting": setting,
            "figures": figures.collect::<Vec<_>>(),
            "claims": claims.collect::<Vec<_>>(),
        });
        round(&mut value);
        anyhow::Ok(value)
    });
    let experiments = experiments.collect::<Result<Vec<_>>>()?;
    Ok(serde_json::to_string(&experiments)? + "\n")
}

fn claim<'a>(reported: &ReportedExperiment<'_>, verdict: &'a ClaimVerdict) -> ClaimData<'a> {
    let panels = reported.panels.iter().enumerate();
    ClaimData {
        source: verdict.source(),
        says: &verdict.says,
        mode: verdict.mode.as_deref(),
        stated: verdict.stated.as_deref(),
        rule: &verdict.rule,
        measured: &verdict.measured,
        verdict: verdict.outcome.words(),
        notes: &verdict.notes,
        figures: panels.filter(|(_, panel)| panel.is_of(verdict)).map(|(at, _)| at).collect(),
    }
}

/// Rounds all numbers that are not whole.
fn round(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        Value::Number(number) if !number.is_u64() => {
            let exact = number.as_f64().unwrap_or(0.0);
            let short: f64 = format!("{exact:.*e}", DIGITS - 1).parse().unwrap_or(exact);
            *value = json!(short);
        }
        _ => {}
    }
}
