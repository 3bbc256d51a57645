//! Finds claims that use no measurement or cannot fail.

use std::collections::BTreeSet;

use super::claims::{Ablation, Claim, ClaimFile, FIGURE, METRIC, MODE, VERDICTS};
use super::expression::{Expression, Function, Operator, Selector};
use crate::results::{Metric, Results};

/// The depth to which definitions are followed.
const DEPTH_MAX: usize = 16;

impl ClaimFile {
    /// Returns the problems of the file: names that are neither metrics nor defined, sets that
    /// are not defined, metrics and explanations that depend on no measurement, and conditions that
    /// are true for all measurements.
    #[must_use]
    pub fn problems(&self, metrics: &[&[Metric]]) -> Vec<String> {
        let mut problems = Vec::new();
        let unknown = |problems: &mut Vec<String>,
                       text: &str,
                       own: &[&str],
                       name: &str,
                       keys: &[Selector]| {
            let is_known =
                is_metric(metrics, name) || self.define.contains_key(name) || own.contains(&name);
            if !is_known {
                problems.push(format!("{text}: unknown name {name}"));
            }
            let sets = keys.iter().filter_map(|key| match key {
                Selector::Set(set) if !self.sets.contains_key(set) => Some(set),
                _ => None,
            });
            problems.extend(sets.map(|set| format!("{text}: unknown set @{set}")));
        };
        let texts = self.sections.iter().map(|(title, text)| (title.as_str(), text));
        for (title, text) in texts.chain([("introduction", &self.introduction)]) {
            text.names(&mut |name, keys| unknown(&mut problems, title, &[VERDICTS], name, keys));
        }
        for (name, expression) in &self.define {
            expression.names(&mut |one, keys| unknown(&mut problems, name, &[], one, keys));
        }
        for claim in &self.claims {
            let mut own: Vec<&str> = claim.metric.keys().map(String::as_str).collect();
            own.extend([MODE, FIGURE]);
            claim.names(&mut |name, keys| unknown(&mut problems, &claim.says, &own, name, keys));
            let found = self.weaknesses(claim, metrics);
            problems.extend(found.into_iter().map(|problem| format!("{}: {problem}", claim.says)));
        }
        problems
    }

    /// Returns the names in an expression that are neither metrics nor defined in the file, and the
    /// sets that are not defined.
    #[must_use]
    pub fn unknown_names(&self, expression: &Expression, metrics: &[&[Metric]]) -> Vec<String> {
        let mut unknown = Vec::new();
        expression.names(&mut |name, keys| {
            if !is_metric(metrics, name) && !self.define.contains_key(name) {
                unknown.push(name.to_owned());
            }
            for key in keys {
                match key {
                    Selector::Set(set) if !self.sets.contains_key(set) => {
                        unknown.push(format!("@{set}"));
                    }
                    _ => {}
                }
            }
        });
        unknown
    }

    /// Returns the reasons why a claim or an explanation of it cannot fail.
    fn weaknesses(&self, claim: &Claim, metrics: &[&[Metric]]) -> Vec<String> {
        let measured = |expression: &Expression, claim: &Claim| {
            let mut found = BTreeSet::new();
            let is_metric = |name: &str| name == FIGURE || is_metric(metrics, name);
            self.measured(expression, claim, &is_metric, 0, &mut found);
            found
        };
        let mut found = Vec::new();
        for (name, expression) in &claim.metric {
            if measured(expression, claim).is_empty() {
                found.push(format!("the metric {name} depends on no measurement"));
            }
            if expression.compares_itself() {
                found.push(format!("the metric {name} compares a figure with itself"));
            }
        }
        if let Some(direction) = &claim.direction {
            let expression = &direction.expression;
            if measured(expression, claim).is_empty() || expression.cannot_fail() {
                found.push(format!("the direction '{}' cannot fail", direction.text));
            }
        }
        for explanation in &claim.explanations {
            let [figure] = explanation.figure.values().collect::<Vec<_>>()[..] else { continue };
            let bound = &explanation.bound;
            if measured(figure, claim).is_empty() {
                found.push(format!("the explanation with '{}' has no measured figure", bound.text));
            }
            if claim.metric.get(METRIC) == Some(figure) {
                found.push(format!(
                    "the figure of the explanation with '{}' is the metric itself",
                    bound.text
                ));
            }
            if bound.expression.cannot_fail() {
                found.push(format!("the explanation with '{}' cannot fail", bound.text));
            }
        }
        match claim.by_design.as_ref().map(|by_design| &by_design.ablation) {
            Some(Ablation::Mode(mode)) if claim.modes.len() < 2 || !claim.modes.contains(mode) => {
                found.push(format!("the ablation is the mode {mode}, which is not measured apart"));
            }
            Some(Ablation::Metric(metric))
                if metric.iter().all(|(name, one)| claim.metric.get(name) == Some(one)) =>
            {
                found.push("the ablation is the metric itself".to_owned());
            }
            _ => {}
        }
        found
    }

    /// Returns the metrics of one round that the verdict on a claim depends on.
    pub(super) fn of_one_round(&self, claim: &Claim, results: &Results) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let direction = claim.direction.iter().map(|direction| &direction.expression);
        for expression in direction.chain(claim.metric.values()) {
            let is_metric = |name: &str| results.is_of_one_round(name);
            self.measured(expression, claim, &is_metric, 0, &mut found);
        }
        found
    }

    /// Collects the metrics that an expression depends on.
    fn measured(
        &self,
        expression: &Expression,
        claim: &Claim,
        is_metric: &dyn Fn(&str) -> bool,
        depth: usize,
        found: &mut BTreeSet<String>,
    ) {
        let mut names = Vec::new();
        expression.names(&mut |name, _| names.push(name.to_owned()));
        for name in names {
            let definition = claim.metric.get(&name).or_else(|| self.define.get(&name));
            if let Some(definition) = definition.filter(|_| depth < DEPTH_MAX) {
                self.measured(definition, claim, is_metric, depth + 1, found);
            } else if is_metric(&name) {
                found.insert(name);
            }
        }
    }
}

fn is_metric(metrics: &[&[Metric]], name: &str) -> bool {
    metrics.iter().copied().flatten().any(|metric| metric.name == name)
}

impl Claim {
    /// Calls `visit` for every name in the expressions of the claim.
    pub(crate) fn names(&self, visit: &mut dyn FnMut(&str, &[Selector])) {
        self.metric.values().for_each(|expression| expression.names(visit));
        let conditions = self.direction.iter().map(|direction| &direction.expression);
        conditions.chain(&self.can_fail).for_each(|expression| expression.names(visit));
        self.shown.names(visit);
        if let Some(not_comparable) = &self.not_comparable {
            not_comparable.reason.names(visit);
            not_comparable.when.iter().for_each(|when| when.names(visit));
        }
        if let Some(by_design) = &self.by_design {
            by_design.reason.names(visit);
            if let Ablation::Metric(metric) = &by_design.ablation {
                metric.values().for_each(|expression| expression.names(visit));
            }
        }
        for explanation in &self.explanations {
            explanation.figure.values().for_each(|figure| figure.names(visit));
            explanation.bound.expression.names(visit);
            explanation.text.names(visit);
        }
    }
}

impl Expression {
    /// Returns true if the expression divides, so that equal sides give 1.
    pub(super) fn is_ratio(&self) -> bool {
        match self {
            Self::Binary(Operator::Divide, ..)
            | Self::Call(Function::Spread | Function::Steps, _) => true,
            Self::List(all) | Self::Call(_, all) => all.iter().any(Self::is_ratio),
            Self::Negate(inner) | Self::Not(inner) => inner.is_ratio(),
            Self::Binary(_, left, right) => left.is_ratio() || right.is_ratio(),
            Self::In(inner, ..) => inner.is_ratio(),
            Self::Number(_) | Self::Text(_) | Self::Name(..) => false,
        }
    }

    /// Returns true if both operands of a division or comparison are the same expression.
    fn compares_itself(&self) -> bool {
        match self {
            Self::Binary(operator, left, right) => {
                let compares = !matches!(
                    operator,
                    Operator::Add | Operator::Multiply | Operator::And | Operator::Or
                );
                compares && left == right || left.compares_itself() || right.compares_itself()
            }
            Self::List(all) | Self::Call(_, all) => all.iter().any(Self::compares_itself),
            Self::Negate(inner) | Self::Not(inner) | Self::In(inner, ..) => inner.compares_itself(),
            Self::Number(_) | Self::Text(_) | Self::Name(..) => false,
        }
    }

    /// Returns true if a condition holds for all measurements: it compares an expression with
    /// itself, or a function with a limit that its result never exceeds.
    fn cannot_fail(&self) -> bool {
        match self {
            Self::Binary(Operator::And, left, right) => left.cannot_fail() && right.cannot_fail(),
            Self::Binary(Operator::Or, left, right) => left.cannot_fail() || right.cannot_fail(),
            Self::Binary(operator, left, right) => left == right || exceeds(*operator, left, right),
            Self::Call(Function::All, all) => all.iter().all(Self::cannot_fail),
            Self::Number(number) => *number != 0.0,
            _ => false,
        }
    }
}

/// Returns true if a function is never below its limit.
fn exceeds(operator: Operator, left: &Expression, right: &Expression) -> bool {
    let (Expression::Call(function, _), Expression::Number(limit)) = (left, right) else {
        return false;
    };
    let least = match function {
        Function::Spread => 1.0,
        Function::Abs | Function::Sqrt | Function::Count => 0.0,
        _ => return false,
    };
    match operator {
        Operator::AtLeast => least >= *limit,
        Operator::Greater => least > *limit,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METRICS: &[&[Metric]] =
        &[&[Metric { name: "moved", about: "" }, Metric { name: "runs", about: "" }]];

    /// Returns the problems of a file with one claim of these keys.
    fn problems(claim: &str) -> Vec<String> {
        let text = format!(
            "title = 'Test'\nintroduction = '{{verdicts}}'\n[define]\nlong = '5'\n\
             double = '2 * moved[full]'\n[[claim]]\nsays = 'c'\nshown = ''\n{claim}"
        );
        let problems = ClaimFile::parse(&text).unwrap().problems(METRICS);
        problems.into_iter().map(|one| one.trim_start_matches("c: ").to_owned()).collect()
    }

    #[test]
    fn good_claims_have_no_problems() {
        let claim = "metric = 'double / runs'\npaper = 2\nshown = ''\n".replace("shown = ''\n", "");
        assert_eq!(problems(&claim), [""; 0]);
    }

    #[test]
    fn names_without_a_metric_are_found() {
        let claim = "metric = 'read[@all] + moved[full]'\ndirection = '> 1'\n";
        assert_eq!(problems(claim), ["unknown name read", "unknown set @all"]);
    }

    #[test]
    fn metrics_that_depend_on_no_measurement_are_found() {
        assert_eq!(
            problems("metric = 'long / 2'\npaper = 2\n"),
            ["the metric x depends on no measurement"]
        );
        assert_eq!(
            problems("metric = 'moved[full] / moved[full]'\npaper = 1\n"),
            ["the metric x compares a figure with itself"]
        );
    }

    #[test]
    fn directions_that_cannot_fail_are_found() {
        for direction in ["long > 1", "moved[full] >= moved[full]", "spread(moved[*]) >= 1"] {
            let claim = format!("metric = 'moved[full]'\ndirection = '{direction}'\n");
            assert_eq!(problems(&claim), [format!("the direction '{direction}' cannot fail")]);
        }
        let claim = "metric = 'moved[full]'\ndirection = 'spread(moved[*]) > 1.5'\n";
        assert_eq!(problems(claim), [""; 0]);
    }

    #[test]
    fn explanations_without_a_second_figure_are_found() {
        let problems_of = |figure: &str, bound: &str| {
            problems(&format!(
                "metric = 'moved[full]'\npaper = 2\n[[claim.explanation]]\ntext = 'c'\n\
                 figure = '{figure}'\nbound = '{bound}'\n"
            ))
        };
        assert_eq!(
            problems_of("long", "> 1"),
            ["the explanation with '> 1' has no measured figure"]
        );
        assert_eq!(
            problems_of("moved[full]", "< 9"),
            ["the figure of the explanation with '< 9' is the metric itself"]
        );
        assert_eq!(
            problems_of("runs", "figure >= figure"),
            ["the explanation with 'figure >= figure' cannot fail"]
        );
        assert_eq!(problems_of("runs", "> 1"), [""; 0]);
    }

    #[test]
    fn ablations_must_differ_from_the_claim() {
        let claim = "metric = 'moved[full]'\npaper = 2\nby_design = { reason = 'r', ";
        assert_eq!(
            problems(&format!("{claim}mode = 'published' }}\n")),
            ["the ablation is the mode published, which is not measured apart"]
        );
        assert_eq!(
            problems(&format!("{claim}metric = 'moved[full]' }}\n")),
            ["the ablation is the metric itself"]
        );
        assert_eq!(problems(&format!("{claim}metric = 'runs' }}\n")), [""; 0]);
    }
}
