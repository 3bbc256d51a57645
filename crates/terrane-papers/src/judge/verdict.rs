//! Judges the claims of a file with the results of an experiment.
//!
//! A claim is, in this order,
//!
//! 1. *not comparable* if its `not_comparable` condition holds;
//! 2. *reproduced* if its figures are in the interval that the paper states, and its direction holds
//!    in every combination of rounds;
//! 3. *ours differs by design* if its ablation, judged by the same rule, is reproduced; or is in the
//!    paper's direction where ours is not;
//! 4. *same direction* if only its direction holds;
//! 5. *contradicted* if its direction fails in every combination of rounds, or, without a direction,
//!    its figures are outside the interval in every combination;
//! 6. *not comparable* otherwise, because the rounds overlap.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::claims::{Ablation, Claim, ClaimFile, Condition, Explanation, FIGURE, METRIC};
use super::evaluate::{MeasurementKey, Scope};
use super::expression::Expression;
use super::figure::{Figure, Truth};
use super::judged_figure::{JudgedFigure, judged_figures};
use super::stated::{Position, signed};
use super::value::Labelled;
use crate::results::Results;

/// The verdict on a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimOutcome {
    /// The figures are in the interval that the paper states.
    Reproduced,
    /// The figures differ from the paper's, but in its direction.
    SameDirection,
    /// The figures contradict the paper.
    Contradicted,
    /// The set-up cannot show the paper's observation.
    NotComparable,
    /// Without an improvement of ours the same run agrees with the paper.
    ByDesign,
    /// A number that the claim depends on is missing.
    NotMeasured,
}

impl ClaimOutcome {
    /// All outcomes, in the order of a summary.
    pub const ALL: [Self; 6] = [
        Self::Reproduced,
        Self::SameDirection,
        Self::Contradicted,
        Self::NotComparable,
        Self::ByDesign,
        Self::NotMeasured,
    ];

    /// Returns the verdict in words.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::SameDirection => "same direction",
            Self::Contradicted => "contradicted",
            Self::NotComparable => "not comparable",
            Self::ByDesign => "ours differs by design",
            Self::NotMeasured => "not measured",
        }
    }
}

/// Returns the numbers of verdicts in words: `2 checks: 1 reproduced, 0 same direction, ...`.
#[must_use]
pub fn counted(outcomes: impl IntoIterator<Item = ClaimOutcome>) -> String {
    let outcomes: Vec<ClaimOutcome> = outcomes.into_iter().collect();
    let count = |outcome| outcomes.iter().filter(|&&one| one == outcome).count();
    let shown = ClaimOutcome::ALL
        .into_iter()
        .map(|outcome| (outcome, count(outcome)))
        .filter(|&(outcome, count)| outcome != ClaimOutcome::NotMeasured || count > 0)
        .map(|(outcome, count)| format!("{count} {}", outcome.words()));
    format!("{} checks: {}", outcomes.len(), shown.collect::<Vec<_>>().join(", "))
}

/// A claim, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimVerdict {
    /// The items of the papers' checklist.
    pub number: String,
    /// The place in the paper that states the claim.
    pub figure: String,
    /// The sentence of the paper.
    pub says: String,
    /// The mode in which the claim was measured, if there are several modes.
    pub mode: Option<String>,
    /// The paper's statement about the figures, in words; `None` if it states only a direction.
    pub stated: Option<String>,
    /// The rule that judged the claim.
    pub rule: String,
    /// The judged figures: those of the metric `x`, and of metrics that it does not use.
    pub figures: Vec<JudgedFigure>,
    /// The interval of the paper's figures, infinite on an open side; `None` if it states a direction
    /// only.
    pub interval: Option<(f64, f64)>,
    /// The measurements that the judged figures depend on.
    pub measurements: BTreeSet<MeasurementKey>,
    /// The measured values, as text.
    pub measured: String,
    /// The verdict.
    pub outcome: ClaimOutcome,
    /// Reasons of the verdict, each with the measurement that establishes it.
    pub notes: Vec<String>,
}

impl ClaimVerdict {
    /// Returns the place in the paper and the items of the checklist.
    #[must_use]
    pub fn source(&self) -> String {
        let parts = [&self.figure, &self.number].map(String::as_str);
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// The outcome of comparing figures with the paper, by the rule above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Reproduced,
    SameDirection,
    Contradicted,
    RoundsOverlap,
    NotMeasured,
}

impl ClaimFile {
    pub(super) fn scope<'a>(
        &'a self,
        results: &'a Results,
        own: &'a BTreeMap<String, Expression>,
        mode: Option<&'a str>,
    ) -> Scope<'a> {
        Scope { results, definitions: [own, &self.define], sets: &self.sets, mode }
    }

    /// Returns the measurements that an expression depends on, with the definitions and sets of the file.
    #[must_use]
    pub fn measurements(
        &self,
        results: &Results,
        expression: &Expression,
        mode: Option<&str>,
    ) -> BTreeSet<MeasurementKey> {
        self.scope(results, &BTreeMap::new(), mode).measurements(expression)
    }

    /// Evaluates an expression over results, with the definitions and sets of the file.
    #[must_use]
    pub fn values(
        &self,
        results: &Results,
        expression: &Expression,
        mode: Option<&str>,
    ) -> Vec<Labelled> {
        self.scope(results, &BTreeMap::new(), mode).value(expression).labelled()
    }

    /// Judges every claim in each of its modes.
    #[must_use]
    pub fn judge(&self, results: &Results) -> Vec<ClaimVerdict> {
        let judged = self.claims.iter().flat_map(|claim| {
            let modes: Vec<Option<&str>> = match claim.modes.is_empty() {
                true => vec![None],
                false => claim.modes.iter().map(|mode| Some(mode.as_str())).collect(),
            };
            modes.into_iter().map(|mode| self.verdict(claim, results, mode))
        });
        judged.collect()
    }

    fn verdict(&self, claim: &Claim, results: &Results, mode: Option<&str>) -> ClaimVerdict {
        let scope = self.scope(results, &claim.metric, mode);
        let (outcome, mut notes) = self.outcome(claim, &scope);
        if !matches!(outcome, ClaimOutcome::Reproduced | ClaimOutcome::NotMeasured) {
            let explained = claim.explanations.iter();
            notes.extend(explained.map(|one| self.explained(one, claim, &scope)));
        }
        if outcome != ClaimOutcome::NotMeasured && !self.of_one_round(claim, results).is_empty() {
            notes.push("timed in one round".to_owned());
        }
        let measurements = claim.metric.values().flat_map(|metric| scope.measurements(metric));
        ClaimVerdict {
            number: claim.number.clone(),
            figure: claim.figure.clone(),
            says: claim.says.clone(),
            mode: mode.map(str::to_owned),
            stated: claim.paper.map(|paper| paper.words(|number| claim.unit.written(number))),
            rule: claim.rule(),
            figures: judged_figures(claim, &scope),
            interval: claim.paper.map(|paper| paper.interval()),
            measurements: measurements.collect(),
            measured: claim.shown.fill(&scope),
            outcome,
            notes,
        }
    }

    /// Returns the verdict and its reasons, without explanations.
    fn outcome(&self, claim: &Claim, scope: &Scope<'_>) -> (ClaimOutcome, Vec<String>) {
        if let Some(not_comparable) = &claim.not_comparable {
            let when = not_comparable.when.as_ref();
            if when.is_none_or(|when| scope.truth(when) == Truth::Yes) {
                let reason = not_comparable.reason.fill(scope);
                return (ClaimOutcome::NotComparable, vec![reason]);
            }
        }
        let ours = compared(claim, scope);
        let mut notes = Vec::new();
        if ours != Comparison::Reproduced
            && let Some((ablation, note)) = self.ablation(claim, scope)
        {
            let proves = match ablation {
                Comparison::Reproduced => ours != Comparison::NotMeasured,
                Comparison::SameDirection => ours == Comparison::Contradicted,
                _ => false,
            };
            if proves {
                return (ClaimOutcome::ByDesign, vec![note]);
            }
            if ours == Comparison::Contradicted {
                notes.push(format!(
                    "without our improvement it would not agree with the paper either: {}",
                    self.shown_without(claim, scope)
                ));
            }
        }
        let outcome = match ours {
            Comparison::Reproduced if sides_are_equal(claim, scope) => {
                let reason = "both sides are equal to the last digit, and no measured condition shows that this set-up could distinguish them";
                return (ClaimOutcome::NotComparable, vec![reason.to_owned()]);
            }
            Comparison::Reproduced => ClaimOutcome::Reproduced,
            Comparison::SameDirection => ClaimOutcome::SameDirection,
            Comparison::Contradicted => ClaimOutcome::Contradicted,
            Comparison::NotMeasured => ClaimOutcome::NotMeasured,
            Comparison::RoundsOverlap => {
                notes.push(overlap(claim, scope));
                ClaimOutcome::NotComparable
            }
        };
        (outcome, notes)
    }

    /// Judges the same run without our improvement, and returns the reason why ours differs with
    /// the figures of that run.
    fn ablation(&self, claim: &Claim, scope: &Scope<'_>) -> Option<(Comparison, String)> {
        let by_design = claim.by_design.as_ref()?;
        let reason = by_design.reason.fill(scope);
        let without = self.shown_without(claim, scope);
        let note = format!("{reason}; without it: {without}");
        let comparison = self.in_ablation(claim, scope, |scope| compared(claim, scope))?;
        Some((comparison, note))
    }

    fn shown_without(&self, claim: &Claim, scope: &Scope<'_>) -> String {
        self.in_ablation(claim, scope, |scope| claim.shown.fill(scope)).unwrap_or_default()
    }

    /// Evaluates in the scope of the ablation; `None` in the mode that is the ablation.
    fn in_ablation<T>(
        &self,
        claim: &Claim,
        scope: &Scope<'_>,
        evaluate: impl Fn(&Scope<'_>) -> T,
    ) -> Option<T> {
        match &claim.by_design.as_ref()?.ablation {
            Ablation::Mode(mode) if scope.mode == Some(mode) => None,
            Ablation::Mode(mode) => Some(evaluate(&Scope { mode: Some(mode), ..*scope })),
            Ablation::Metric(metric) => {
                let mut own = claim.metric.clone();
                own.extend(metric.clone());
                Some(evaluate(&self.scope(scope.results, &own, scope.mode)))
            }
        }
    }

    /// Returns an explanation whose figure is within its bound, or a note that it is not.
    fn explained(&self, explanation: &Explanation, claim: &Claim, scope: &Scope<'_>) -> String {
        let mut own = claim.metric.clone();
        own.extend(explanation.figure.clone());
        let scope = self.scope(scope.results, &own, scope.mode);
        let bound = &explanation.bound;
        match scope.truth(&bound.expression) {
            Truth::Yes => explanation.text.fill(&scope),
            Truth::NotMeasured => {
                format!("an explanation was not measured: its condition is '{}'", bound.text)
            }
            truth => {
                let name = Expression::Name(FIGURE.to_owned(), Vec::new());
                let figures = scope.value(&name).figures();
                let figures: Vec<_> = figures.iter().map(|one| signed(one.value)).collect();
                let why = match truth {
                    Truth::Undecided => "does not hold in every round",
                    _ => "does not hold",
                };
                format!(
                    "an explanation failed: its condition '{}' {why}, the figure is {}",
                    bound.text,
                    figures.join(", ")
                )
            }
        }
    }
}

impl Claim {
    /// Returns the rule that judges the claim, in words.
    fn rule(&self) -> String {
        let interval = self.paper.map(|paper| format!("reproduced: {}", paper.rule()));
        let direction = self.direction.as_ref().map(|Condition { text, .. }| match interval {
            Some(_) => format!("direction: {text}"),
            None => format!("reproduced: {text}"),
        });
        interval.into_iter().chain(direction).collect::<Vec<_>>().join("; ")
    }
}

fn figures(claim: &Claim, scope: &Scope<'_>) -> Vec<Labelled> {
    if !claim.metric.contains_key(METRIC) {
        return Vec::new();
    }
    scope.value(&Expression::Name(METRIC.to_owned(), Vec::new())).labelled()
}

fn compared(claim: &Claim, scope: &Scope<'_>) -> Comparison {
    let direction = claim.direction.as_ref().map(|direction| scope.truth(&direction.expression));
    let figures: Vec<Figure> = figures(claim, scope).into_iter().map(|one| one.figure).collect();
    let is_missing = figures.is_empty() || figures.iter().any(|one| one.value.is_nan());
    let position = claim.paper.map(|paper| paper.position(&figures));
    match (position, direction) {
        (_, Some(Truth::NotMeasured)) => Comparison::NotMeasured,
        (Some(_), _) if is_missing => Comparison::NotMeasured,
        (_, Some(Truth::No)) => Comparison::Contradicted,
        (_, Some(Truth::Undecided)) => Comparison::RoundsOverlap,
        (None | Some(Position::Inside), _) => Comparison::Reproduced,
        (Some(_), Some(Truth::Yes)) => Comparison::SameDirection,
        (Some(Position::Outside), None) => Comparison::Contradicted,
        (Some(Position::Undecided), None) => Comparison::RoundsOverlap,
    }
}

/// Returns true if a claim says that two sides are equal, both measured equal to the last digit, and
/// no measured condition shows that the set-up could have distinguished them.
fn sides_are_equal(claim: &Claim, scope: &Scope<'_>) -> bool {
    let is_equal = |one: &Labelled| one.figure.is_exact() && one.figure.value == 1.0;
    let can_fail = || claim.can_fail.as_ref().is_some_and(|when| scope.truth(when) == Truth::Yes);
    let figures = figures(claim, scope);
    claim.direction.is_none()
        && !figures.is_empty()
        && figures.iter().all(is_equal)
        && claim.metric.values().any(Expression::is_ratio)
        && !can_fail()
}

/// Says which figures depend on the rounds.
fn overlap(claim: &Claim, scope: &Scope<'_>) -> String {
    let spans: Vec<_> = figures(claim, scope)
        .into_iter()
        .filter(|one| !one.figure.is_exact())
        .map(|Labelled { label, figure }| {
            let span = format!("{} to {}", signed(figure.low), signed(figure.high));
            if label.is_empty() { span } else { format!("{label} {span}") }
        })
        .collect();
    match spans.is_empty() {
        true => "the rounds of both sides overlap".to_owned(),
        false => format!("the rounds of both sides overlap: {}", spans.join(", ")),
    }
}

#[cfg(test)]
mod tests;
