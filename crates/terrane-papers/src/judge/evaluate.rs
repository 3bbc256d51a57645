//! Evaluates expressions over the results of an experiment.

use std::collections::{BTreeMap, BTreeSet};

use super::expression::Operator;
use super::expression::{Expression, Function, Selector};
use super::figure::{Figure, Truth, all, any};
use super::functions::{binary, call, compared};
use super::value::{Labelled, NOT_MEASURED, Value};
use crate::results::{Measurement, Results};

/// The maximum depth to which definitions may refer to each other.
const DEPTH_MAX: usize = 16;

/// A measurement: its metric and its keys.
pub type MeasurementKey = (String, Vec<String>);

/// The definitions of names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) results: &'a Results,
    /// The definitions of the claim and of the file; those of the claim take precedence.
    pub(super) definitions: [&'a BTreeMap<String, Expression>; 2],
    /// Lists of keys.
    pub(super) sets: &'a BTreeMap<String, Vec<String>>,
    /// The default first key for measurements with one dimension more than the expression selects.
    pub(super) mode: Option<&'a str>,
}

impl Scope<'_> {
    /// Evaluates an expression.
    pub(super) fn value(&self, expression: &Expression) -> Value {
        Evaluation { scope: *self, depth: 0 }.value(expression)
    }

    /// Returns the measurements that an expression depends on.
    pub(super) fn measurements(&self, expression: &Expression) -> BTreeSet<MeasurementKey> {
        let mut found = BTreeSet::new();
        Evaluation { scope: *self, depth: 0 }.add_measurements(expression, &mut found);
        found
    }

    /// Evaluates a condition.
    pub(super) fn truth(&self, condition: &Expression) -> Truth {
        self.value(condition).truth()
    }
}

#[derive(Debug, Clone, Copy)]
struct Evaluation<'a> {
    scope: Scope<'a>,
    depth: usize,
}

impl Evaluation<'_> {
    fn value(&self, expression: &Expression) -> Value {
        match expression {
            Expression::Number(number) => Value::Number(Figure::exact(*number)),
            Expression::Text(text) => Value::text(text),
            Expression::List(all) => Value::List(self.flattened(all)),
            Expression::Name(name, selectors) => self.named(name, selectors),
            Expression::Negate(inner) => self.value(inner).map(Figure::negated),
            Expression::Not(inner) => self.value(inner).map(|figure| any(&[figure]).inverted()),
            Expression::In(inner, low, high) => {
                let (inner, low, high) = (self.value(inner), self.value(low), self.value(high));
                let above = compared(Operator::AtLeast, inner.clone(), low);
                let below = compared(Operator::AtMost, inner, high);
                above.zip(below, |above, below| all(&[above, below]))
            }
            Expression::Binary(operator, left, right) => {
                binary(*operator, self.value(left), self.value(right))
            }
            Expression::Call(Function::Rounds, arguments) => self.rounds(&arguments[0]),
            Expression::Call(function, arguments) => {
                let is_single_list = arguments.len() == 1;
                call(*function, self.flattened(arguments), is_single_list)
            }
        }
    }

    fn flattened(&self, arguments: &[Expression]) -> Vec<Labelled> {
        arguments.iter().flat_map(|argument| self.value(argument).labelled()).collect()
    }

    fn named(&self, name: &str, selectors: &[Selector]) -> Value {
        let defined = self.scope.definitions.iter().find_map(|all| all.get(name));
        if let Some(definition) = defined {
            if self.depth == DEPTH_MAX {
                return NOT_MEASURED;
            }
            let deeper = Self { depth: self.depth + 1, ..*self };
            return deeper.value(definition);
        }
        if let Some(text) = self.text(name) {
            return Value::text(text);
        }
        let all = self.scope.results.measurements(name);
        let selected = self.selected(all, selectors);
        let number = |keys: &Vec<String>| {
            let found = all.iter().find(|measurement| measurement.keys == *keys);
            found.map_or(Figure::exact(f64::NAN), |measurement| {
                Figure::with_rounds(measurement.value, &measurement.rounds)
            })
        };
        match selected {
            Selected::One(keys) => Value::Number(number(&keys)),
            Selected::Many(all) => Value::List(
                all.into_iter()
                    .map(|(label, keys)| Labelled { label, figure: number(&keys) })
                    .collect(),
            ),
        }
    }

    fn add_measurements(&self, expression: &Expression, found: &mut BTreeSet<MeasurementKey>) {
        expression.names(&mut |name, selectors| {
            let defined = self.scope.definitions.iter().find_map(|all| all.get(name));
            if let Some(definition) = defined {
                if self.depth < DEPTH_MAX {
                    Self { depth: self.depth + 1, ..*self }.add_measurements(definition, found);
                }
                return;
            }
            let all = self.scope.results.measurements(name);
            let keys = match self.selected(all, selectors) {
                Selected::One(keys) => vec![keys],
                Selected::Many(all) => all.into_iter().map(|(_, keys)| keys).collect(),
            };
            let is_measured = |keys: &Vec<String>| all.iter().any(|one| one.keys == *keys);
            let measured = keys.into_iter().filter(is_measured);
            found.extend(measured.map(|keys| (name.to_owned(), keys)));
        });
    }

    /// Returns the mode, or a recorded text: the mode's own text, or else the text of all modes.
    fn text(&self, name: &str) -> Option<&str> {
        let results = self.scope.results;
        match self.scope.mode {
            Some(mode) if name == "mode" => Some(mode),
            Some(mode) => {
                results.text_of(&format!("{name}[{mode}]")).or_else(|| results.text_of(name))
            }
            None => results.text_of(name),
        }
    }

    /// Returns the rounds of one measurement.
    fn rounds(&self, argument: &Expression) -> Value {
        let Expression::Name(name, selectors) = argument else { return NOT_MEASURED };
        let all = self.scope.results.measurements(name);
        let Selected::One(keys) = self.selected(all, selectors) else { return NOT_MEASURED };
        let found = all.iter().find(|measurement| measurement.keys == keys);
        let rounds = found.map_or(&[][..], |measurement| &measurement.rounds);
        let round = |&value| Labelled { label: String::new(), figure: Figure::exact(value) };
        Value::List(rounds.iter().map(round).collect())
    }

    fn selected(&self, all: &[Measurement], selectors: &[Selector]) -> Selected {
        let dimensions = all.first().map_or(selectors.len(), |first| first.keys.len());
        let mode = self.scope.mode.filter(|_| dimensions == selectors.len() + 1);
        let first: Vec<String> = mode.map(str::to_owned).into_iter().collect();
        let mut is_one = true;
        let mut selected = vec![(Vec::new(), first)];
        for selector in selectors {
            let is_single = matches!(selector, Selector::Keys(keys) if keys.len() == 1);
            is_one &= is_single;
            let mut extended: Vec<(Vec<String>, Vec<String>)> = Vec::new();
            for (label, before) in &selected {
                for key in self.keys(all, selector, before) {
                    let (mut label, mut before) = (label.clone(), before.clone());
                    if !is_single {
                        label.push(key.clone());
                    }
                    before.push(key);
                    extended.push((label, before));
                }
            }
            selected = extended;
        }
        match selected.pop() {
            Some((_, keys)) if is_one => Selected::One(keys),
            last => Selected::Many(
                selected
                    .into_iter()
                    .chain(last)
                    .map(|(label, keys)| (label.join(", "), keys))
                    .collect(),
            ),
        }
    }

    /// Returns the keys that a selector selects after the keys `before` it.
    fn keys(&self, all: &[Measurement], selector: &Selector, before: &[String]) -> Vec<String> {
        match selector {
            Selector::Keys(keys) => keys.clone(),
            Selector::Set(set) => self.scope.sets.get(set).cloned().unwrap_or_default(),
            Selector::All => {
                let mut keys: Vec<String> = Vec::new();
                let after = all.iter().filter(|measurement| measurement.keys.starts_with(before));
                for key in after.filter_map(|measurement| measurement.keys.get(before.len())) {
                    if !keys.contains(key) {
                        keys.push(key.clone());
                    }
                }
                keys
            }
        }
    }
}

enum Selected {
    /// The keys of one measurement.
    One(Vec<String>),
    /// The label and the keys of each of several measurements.
    Many(Vec<(String, Vec<String>)>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Metric;

    const METRICS: &[&[Metric]] = &[&[
        Metric { name: "moved", about: "" },
        Metric { name: "pages", about: "" },
        Metric { name: "least", about: "" },
        Metric { name: "winner", about: "" },
    ]];

    fn results() -> Results {
        let mut results = Results::new("test", METRICS);
        for (name, value) in [("full", 6.0), ("lo+1", 3.0), ("tier", 2.0)] {
            results.record("moved", &[name], value);
        }
        for (mode, key, value) in [
            ("ours", "0", 1.0),
            ("ours", "1", 2.0),
            ("published", "0", 5.0),
            ("published", "1", 4.0),
        ] {
            results.record("pages", &[mode, key], value);
        }
        results.record_rounds("least", &[], 1.5, &[3.0, 1.5, 2.0]);
        results.record_text("winner", "tier");
        results
    }

    fn value(text: &str) -> Value {
        let results = results();
        let sets = BTreeMap::from([("leveled".to_owned(), vec!["full".into(), "lo+1".into()])]);
        let defined = BTreeMap::from([
            ("ratio".to_owned(), Expression::parse("moved[full] / moved[tier]").unwrap()),
            ("endless".to_owned(), Expression::parse("endless + 1").unwrap()),
        ]);
        let definitions = [&defined, &BTreeMap::new()];
        let scope = Scope { results: &results, definitions, sets: &sets, mode: Some("ours") };
        scope.value(&Expression::parse(text).unwrap())
    }

    fn number(text: &str) -> f64 {
        match value(text) {
            Value::Number(figure) => figure.value,
            other => panic!("{text} is {other:?}"),
        }
    }

    fn numbers(text: &str) -> Vec<f64> {
        value(text).figures().into_iter().map(|figure| figure.value).collect()
    }

    #[test]
    fn measurements_are_selected_by_key() {
        assert_eq!(number("moved[lo+1]"), 3.0);
        assert_eq!(number("ratio"), 3.0);
        assert_eq!(number("sum(moved[*])"), 11.0);
        assert_eq!(number("mean(moved[@leveled])"), 4.5);
        assert_eq!(number("max(moved[tier|lo+1])"), 3.0);
        assert_eq!(number("median(rounds(least))"), 2.0);
        assert_eq!(number("least"), 1.5);
    }

    #[test]
    fn the_mode_is_the_first_key_where_it_is_left_out() {
        assert_eq!(number("pages[1]"), 2.0);
        assert_eq!(number("pages[published][1]"), 4.0);
        assert_eq!(numbers("steps(pages[*])"), [2.0]);
        assert_eq!(numbers("steps(pages[published][*])"), [0.8]);
        assert_eq!(numbers("pages[*][1]"), [2.0, 4.0]);
        assert_eq!(value("mode == 'ours'").truth(), Truth::Yes);
    }

    #[test]
    fn expressions_depend_on_the_measurements_that_they_select() {
        let results = results();
        let sets = BTreeMap::from([("leveled".to_owned(), vec!["full".into(), "cold".into()])]);
        let defined =
            BTreeMap::from([("of_full".to_owned(), Expression::parse("moved[full]").unwrap())]);
        let definitions = [&defined, &BTreeMap::new()];
        let scope = Scope { results: &results, definitions, sets: &sets, mode: Some("ours") };
        let keys = |text: &str| -> Vec<String> {
            let found = scope.measurements(&Expression::parse(text).unwrap());
            found.into_iter().map(|(name, keys)| format!("{name} {}", keys.join(" "))).collect()
        };
        assert_eq!(keys("of_full / moved[tier]"), ["moved full", "moved tier"]);
        // A key that was not measured is no measurement.
        assert_eq!(keys("max(moved[@leveled]) + 3"), ["moved full"]);
        assert_eq!(keys("pages[*]"), ["pages ours 0", "pages ours 1"]);
    }

    #[test]
    fn operators_work_element_by_element() {
        assert_eq!(numbers("moved[*] / moved[full] * 100")[0], 100.0);
        assert_eq!(numbers("moved[@leveled] - [1, 2]"), [5.0, 1.0]);
        assert_eq!(numbers("moved[*] > 2"), [1.0, 1.0, 0.0]);
        assert_eq!(value("moved[*] in 2..3").truth(), Truth::No);
        assert_eq!(value("moved[tier|lo+1] in 2..3").truth(), Truth::Yes);
        assert_eq!(value("not moved[full] < 3 and moved[tier] == 2").truth(), Truth::Yes);
    }

    #[test]
    fn names_come_in_the_order_of_their_numbers() {
        assert_eq!(value("order(moved[*])"), Value::text("tier < lo+1 < full"));
        assert_eq!(value("lowest(moved[*]) == winner").truth(), Truth::Yes);
        assert_eq!(numbers("sorted(moved[*])"), [2.0, 3.0, 6.0]);
        assert_eq!(value("highest(moved[*]) == 'full'").truth(), Truth::Yes);
    }

    #[test]
    fn numbers_that_were_not_measured_decide_nothing() {
        assert!(number("moved[cold]").is_nan());
        assert!(number("unknown + 1").is_nan());
        assert!(number("endless").is_nan());
        assert_eq!(value("moved[cold] > 1").truth(), Truth::NotMeasured);
        assert_eq!(value("moved[full|cold] > 1").truth(), Truth::NotMeasured);
        assert_eq!(value("moved[tier|cold] > 2").truth(), Truth::No);
        assert_eq!(value("moved[cold] > 1 or moved[full] > 1").truth(), Truth::Yes);
        assert_eq!(value("max(moved[full|cold]) > 1").truth(), Truth::NotMeasured);
        assert_eq!(value("0 / 0 < 1").truth(), Truth::NotMeasured);
    }

    #[test]
    fn comparisons_of_rounds_are_certain_or_undecided() {
        // The rounds of `least` are 3, 1.5 and 2.
        assert_eq!(value("least < 4 and least > 1").truth(), Truth::Yes);
        assert_eq!(value("least < 1.4").truth(), Truth::No);
        assert_eq!(value("least < 2").truth(), Truth::Undecided);
        assert_eq!(value("moved[full] / least > 2").truth(), Truth::Undecided);
        assert_eq!(value("moved[full] / least >= 2").truth(), Truth::Yes);
        assert_eq!(value("not least < 2").truth(), Truth::Undecided);
        assert_eq!(value("lowest(least, moved[full]) == ''").truth(), Truth::Yes);
        assert_eq!(value("lowest(least, moved[tier|full]) == ''").truth(), Truth::Undecided);
        assert_eq!(value("least in 1..3").truth(), Truth::Yes);
        assert_eq!(value("max(least, 2) > 2.5").truth(), Truth::Undecided);
    }
}
