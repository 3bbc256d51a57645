//! The figures that the judge of a claim looks at, for pictures.

use std::collections::BTreeSet;

use serde::Serialize;

use super::claims::{Claim, METRIC};
use super::evaluate::Scope;
use super::expression::Expression;
use super::figure::Figure;
use super::value::Labelled;

/// A figure of a claim.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JudgedFigure {
    /// The keys of the measurement, or empty.
    pub label: String,
    /// The number that represents all rounds.
    pub value: f64,
    /// The least number of any combination of rounds.
    pub low: f64,
    /// The greatest number of any combination of rounds.
    pub high: f64,
}

/// Returns the figures of all metrics of a claim, except those that are parts of `x`.
pub(super) fn judged_figures(claim: &Claim, scope: &Scope<'_>) -> Vec<JudgedFigure> {
    let mut parts = BTreeSet::new();
    if let Some(metric) = claim.metric.get(METRIC) {
        metric.names(&mut |name, _| {
            parts.insert(name.to_owned());
        });
    }
    let judged = claim.metric.keys().filter(|name| !parts.contains(*name));
    let of_metric = |name: &String| -> Vec<JudgedFigure> {
        let words = name.replace('_', " ");
        let all = scope.value(&Expression::Name(name.clone(), Vec::new())).labelled();
        let (count, is_metric) = (all.len(), name == METRIC);
        let judged = all.into_iter().enumerate().map(|(number, Labelled { label, figure })| {
            let label = match (is_metric, label.is_empty()) {
                (true, true) if count > 1 => (number + 1).to_string(),
                (true, true) => "here".to_owned(),
                (true, false) => label,
                (false, true) => words.clone(),
                (false, false) => format!("{words}, {label}"),
            };
            let Figure { value, low, high } = figure;
            JudgedFigure { label, value, low, high }
        });
        judged.collect()
    };
    judged.flat_map(of_metric).collect()
}
