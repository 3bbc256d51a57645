//! Judges the claims of a file with the results of an experiment.

use std::collections::BTreeMap;

use serde::Serialize;

use super::claims::{Claim, ClaimFile};
use super::evaluate::Scope;
use crate::results::Results;

/// Whether a claim holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimOutcome {
    /// The measurements are within the bound.
    Holds,
    /// The measurements are outside the bound.
    Fails,
    /// A number that the bound depends on is missing.
    NotMeasured,
}

/// A claim, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClaimVerdict {
    /// The items of the papers' checklist, and the place in the paper.
    pub source: String,
    /// The sentence of the paper.
    pub says: String,
    /// The mode in which the claim was measured, if there are several modes.
    pub mode: Option<String>,
    /// The measured values, as text.
    pub measured: String,
    /// Whether the claim holds.
    pub outcome: ClaimOutcome,
    /// Explanations of a failure that the same results confirm.
    pub explanations: Vec<String>,
    /// An explanation of a failure that the results cannot check.
    pub hypothesis: Option<String>,
}

impl ClaimFile {
    pub(super) fn scope<'a>(
        &'a self,
        results: &'a Results,
        own: &'a BTreeMap<String, super::expression::Expression>,
        mode: Option<&'a str>,
    ) -> Scope<'a> {
        Scope { results, definitions: [own, &self.define], sets: &self.sets, mode }
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
        let outcome = match scope.holds(&claim.bound, claim.tolerance) {
            Some(true) => ClaimOutcome::Holds,
            Some(false) => ClaimOutcome::Fails,
            None => ClaimOutcome::NotMeasured,
        };
        let fails = outcome == ClaimOutcome::Fails;
        let explanations = claim
            .explanations
            .iter()
            .filter(|explanation| fails && scope.holds(&explanation.when, 0.0) == Some(true));
        let source = [&claim.figure, &claim.number].map(String::as_str);
        let source = source.into_iter().filter(|part| !part.is_empty());
        ClaimVerdict {
            source: source.collect::<Vec<_>>().join(", "),
            says: claim.says.clone(),
            mode: mode.map(str::to_owned),
            measured: claim.shown.fill(&scope),
            outcome,
            explanations: explanations.map(|one| one.text.fill(&scope)).collect(),
            hypothesis: claim.hypothesis.clone().filter(|_| fails),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Metric;

    const METRICS: &[&[Metric]] = &[&[Metric { name: "moved", about: "" }]];

    const CLAIMS: &str = r#"
title = "Test"
introduction = "Of {checks:count} checks, {held:count} hold."

[sets]
partial = ["lo+1", "lo+2"]

[define]
saved = "100 * (1 - moved[@partial] / moved[full])"

[[claim]]
number = "S2-99 O2"
figure = "Fig. 4a"
says = "partial compaction moves 34 to 56 % less"
metric = "saved"
paper = [34, 56]
bound = ">= 40"
tolerance = 0.25
shown = "{min(x):.0} to {max(x):.0} % less"
explanation = [
    { text = "Full moves {moved[full]:x} alone", when = "moved[full] < 63" },
    { text = "never", when = "moved[full] > 63" },
]
hypothesis = "no measurement checks this"
"#;

    fn judged(full: f64, second: f64) -> ClaimVerdict {
        let mut results = Results::new("test", METRICS);
        results.record("moved", &["full"], full);
        results.record("moved", &["lo+1"], 20.0);
        results.record("moved", &["lo+2"], second);
        let file = ClaimFile::parse(CLAIMS).unwrap();
        assert_eq!(file.unknown_names(METRICS), [""; 0]);
        file.judge(&results).remove(0)
    }

    #[test]
    fn claims_are_judged_by_bound_and_tolerance() {
        let verdict = judged(40.0, 28.0);
        assert_eq!(verdict.outcome, ClaimOutcome::Holds);
        assert_eq!(verdict.source, "Fig. 4a, S2-99 O2");
        assert_eq!(verdict.measured, "30 to 50 % less");
        assert!(verdict.explanations.is_empty() && verdict.hypothesis.is_none());
        assert_eq!(judged(40.0, 28.1).outcome, ClaimOutcome::Fails);
        assert_eq!(judged(f64::NAN, 28.0).outcome, ClaimOutcome::NotMeasured);
    }

    #[test]
    fn explanations_are_printed_only_when_the_measurements_confirm_them() {
        let verdict = judged(22.0, 40.0);
        assert_eq!(verdict.outcome, ClaimOutcome::Fails);
        assert_eq!(verdict.explanations, ["Full moves 22.0× alone"]);
        assert_eq!(verdict.hypothesis.as_deref(), Some("no measurement checks this"));
    }

    #[test]
    fn names_without_a_metric_are_found() {
        let text = CLAIMS.replace("moved[full] < 63", "read[@all] < 63");
        let file = ClaimFile::parse(&text).unwrap();
        assert_eq!(file.unknown_names(METRICS), ["read", "@all"]);
    }
}
