//! Evaluates expressions over the results of an experiment.

use std::collections::BTreeMap;

use super::expression::{Expression, Function, Operator, Selector};
use super::value::{Labelled, NOT_MEASURED, Value, all, any, truth};
use crate::results::{Measurement, Results};

/// The maximum depth to which definitions may refer to each other.
const DEPTH_MAX: usize = 16;

/// The definitions of names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scope<'a> {
    pub(super) results: &'a Results,
    /// The definitions of the claim and of the file; those of the claim take precedence.
    pub(super) definitions: [&'a BTreeMap<String, Expression>; 2],
    /// Lists of keys.
    pub(super) sets: &'a BTreeMap<String, Vec<String>>,
    /// The default for the first key of measurements that have one dimension more than selected.
    pub(super) mode: Option<&'a str>,
}

impl Scope<'_> {
    /// Evaluates an expression.
    pub(super) fn value(&self, expression: &Expression) -> Value {
        let evaluation = Evaluation { scope: *self, tolerance: 0.0, depth: 0 };
        evaluation.value(expression)
    }

    /// Evaluates a bound whose limits are relaxed by a share of themselves; `None` if it depends on
    /// something that was not measured.
    pub(super) fn holds(&self, bound: &Expression, tolerance: f64) -> Option<bool> {
        Evaluation { scope: *self, tolerance, depth: 0 }.value(bound).is_true()
    }
}

#[derive(Debug, Clone, Copy)]
struct Evaluation<'a> {
    scope: Scope<'a>,
    /// The share by which the right-hand sides of comparisons are relaxed.
    tolerance: f64,
    depth: usize,
}

impl Evaluation<'_> {
    fn value(&self, expression: &Expression) -> Value {
        match expression {
            Expression::Number(number) => Value::Number(*number),
            Expression::Text(text) => Value::Text(text.clone()),
            Expression::List(all) => Value::List(self.flattened(all)),
            Expression::Name(name, selectors) => self.named(name, selectors),
            Expression::Negate(inner) => self.value(inner).map(|number| -number),
            Expression::Not(inner) => self
                .value(inner)
                .map(|number| if number.is_nan() { number } else { truth(number == 0.0) }),
            Expression::In(inner, low, high) => {
                let (inner, low, high) = (self.value(inner), self.value(low), self.value(high));
                let low = low.map(|low| self.lowered(low));
                let high = high.map(|high| self.raised(high));
                let above = inner.clone().zip(low, compared(|one, low| one >= low));
                let below = inner.zip(high, compared(|one, high| one <= high));
                above.zip(below, |above, below| all(&[above, below]))
            }
            Expression::Binary(operator, left, right) => {
                self.binary(*operator, self.value(left), self.value(right))
            }
            Expression::Call(Function::Rounds, arguments) => self.rounds(&arguments[0]),
            Expression::Call(function, arguments) => {
                let is_single_list = arguments.len() == 1;
                call(*function, self.flattened(arguments), is_single_list)
            }
        }
    }

    fn lowered(&self, limit: f64) -> f64 {
        limit - self.tolerance * limit.abs()
    }

    fn raised(&self, limit: f64) -> f64 {
        limit + self.tolerance * limit.abs()
    }

    fn binary(&self, operator: Operator, left: Value, right: Value) -> Value {
        if let (Value::Text(left), Value::Text(right)) = (&left, &right) {
            return match operator {
                Operator::Equal => Value::Number(truth(left == right)),
                Operator::Unequal => Value::Number(truth(left != right)),
                _ => NOT_MEASURED,
            };
        }
        match operator {
            Operator::Or => left.zip(right, |left, right| any(&[left, right])),
            Operator::And => left.zip(right, |left, right| all(&[left, right])),
            Operator::Less => left.zip(right, compared(|one, limit| one < self.raised(limit))),
            Operator::AtMost => left.zip(right, compared(|one, limit| one <= self.raised(limit))),
            Operator::Greater => left.zip(right, compared(|one, limit| one > self.lowered(limit))),
            Operator::AtLeast => left.zip(right, compared(|one, limit| one >= self.lowered(limit))),
            Operator::Equal => left.zip(right, compared(|one, other| one == other)),
            Operator::Unequal => left.zip(right, compared(|one, other| one != other)),
            Operator::Add => left.zip(right, |left, right| left + right),
            Operator::Subtract => left.zip(right, |left, right| left - right),
            Operator::Multiply => left.zip(right, |left, right| left * right),
            Operator::Divide => left.zip(right, |left, right| left / right),
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
            let deeper = Self { depth: self.depth + 1, tolerance: 0.0, ..*self };
            return deeper.value(definition);
        }
        if let Some(text) = self.text(name) {
            return Value::Text(text.to_owned());
        }
        let all = self.scope.results.measurements(name);
        let selected = self.selected(all, selectors);
        let number = |keys: &Vec<String>| {
            let found = all.iter().find(|measurement| measurement.keys == *keys);
            found.map_or(f64::NAN, |measurement| measurement.value)
        };
        match selected {
            Selected::One(keys) => Value::Number(number(&keys)),
            Selected::Many(all) => Value::List(
                all.into_iter()
                    .map(|(label, keys)| Labelled { label, value: number(&keys) })
                    .collect(),
            ),
        }
    }

    /// Returns the mode, or a recorded text: of the mode, or of all modes.
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
        let label = String::new;
        Value::List(rounds.iter().map(|&value| Labelled { label: label(), value }).collect())
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

/// Turns a comparison into a function that returns 1 or 0.
fn compared(compare: impl Fn(f64, f64) -> bool) -> impl Fn(f64, f64) -> f64 {
    move |left, right| {
        if left.is_nan() || right.is_nan() { f64::NAN } else { truth(compare(left, right)) }
    }
}

/// Applies a function to all its arguments in one list.
fn call(function: Function, list: Vec<Labelled>, is_single: bool) -> Value {
    let numbers: Vec<f64> = list.iter().map(|one| one.value).collect();
    let is_measured = !numbers.is_empty() && !numbers.iter().any(|number| number.is_nan());
    let of_measured =
        |number: &dyn Fn() -> f64| Value::Number(if is_measured { number() } else { f64::NAN });
    let least = || numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = || numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum = || numbers.iter().sum::<f64>();
    let each = |operation: fn(f64) -> f64| match (&list[..], is_single) {
        ([one], true) if one.label.is_empty() => Value::Number(operation(one.value)),
        _ => Value::List(list.clone()).map(operation),
    };
    match function {
        Function::Min => of_measured(&least),
        Function::Max => of_measured(&greatest),
        Function::Sum => of_measured(&sum),
        Function::Mean => of_measured(&|| sum() / numbers.len() as f64),
        Function::Median => of_measured(&|| {
            let mut sorted = numbers.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        }),
        Function::Spread => of_measured(&|| greatest() / least()),
        Function::Count => Value::Number(numbers.len() as f64),
        Function::Steps => neighbours(&list, |before, after| after / before),
        Function::Differences => neighbours(&list, |before, after| after - before),
        Function::Abs => each(f64::abs),
        Function::Sqrt => each(f64::sqrt),
        Function::All => Value::Number(all(&numbers)),
        Function::Any => Value::Number(any(&numbers)),
        Function::Sorted => Value::List(sorted(list)),
        Function::Order if is_measured => Value::Text(ordered(list).join(" < ")),
        Function::Lowest if is_measured => {
            Value::Text(ordered(list).into_iter().next().unwrap_or_default())
        }
        Function::Highest if is_measured => {
            Value::Text(ordered(list).into_iter().next_back().unwrap_or_default())
        }
        Function::Order | Function::Lowest | Function::Highest | Function::Rounds => NOT_MEASURED,
    }
}

/// Applies `operation` to each number and the number before it; the result has the label of the
/// later number.
fn neighbours(list: &[Labelled], operation: fn(f64, f64) -> f64) -> Value {
    let pairs = list.windows(2).map(|pair| Labelled {
        label: pair[1].label.clone(),
        value: operation(pair[0].value, pair[1].value),
    });
    Value::List(pairs.collect())
}

fn sorted(mut list: Vec<Labelled>) -> Vec<Labelled> {
    list.sort_by(|one, other| one.value.total_cmp(&other.value));
    list
}

/// Returns the labels, ordered from the least number to the greatest.
fn ordered(list: Vec<Labelled>) -> Vec<String> {
    sorted(list).into_iter().map(|one| one.label).collect()
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
            Value::Number(number) => number,
            other => panic!("{text} is {other:?}"),
        }
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
        assert_eq!(value("steps(pages[*])").numbers(), [2.0]);
        assert_eq!(value("steps(pages[published][*])").numbers(), [0.8]);
        assert_eq!(value("pages[*][1]").numbers(), [2.0, 4.0]);
        assert_eq!(value("mode == 'ours'").is_true(), Some(true));
    }

    #[test]
    fn operators_work_element_by_element() {
        assert_eq!(value("moved[*] / moved[full] * 100").numbers()[0], 100.0);
        assert_eq!(value("moved[@leveled] - [1, 2]").numbers(), [5.0, 1.0]);
        assert_eq!(value("moved[*] > 2").numbers(), [1.0, 1.0, 0.0]);
        assert_eq!(value("moved[*] in 2..3").is_true(), Some(false));
        assert_eq!(value("moved[tier|lo+1] in 2..3").is_true(), Some(true));
        assert_eq!(value("not moved[full] < 3 and moved[tier] == 2").is_true(), Some(true));
    }

    #[test]
    fn names_come_in_the_order_of_their_numbers() {
        assert_eq!(value("order(moved[*])"), Value::Text("tier < lo+1 < full".into()));
        assert_eq!(value("lowest(moved[*]) == winner").is_true(), Some(true));
        assert_eq!(value("sorted(moved[*])").numbers(), [2.0, 3.0, 6.0]);
        assert_eq!(value("highest(moved[*]) == 'full'").is_true(), Some(true));
    }

    #[test]
    fn numbers_that_were_not_measured_decide_nothing() {
        assert!(number("moved[cold]").is_nan());
        assert!(number("unknown + 1").is_nan());
        assert!(number("endless").is_nan());
        assert_eq!(value("moved[cold] > 1").is_true(), None);
        assert_eq!(value("moved[full|cold] > 1").is_true(), None);
        assert_eq!(value("moved[tier|cold] > 2").is_true(), Some(false));
        assert_eq!(value("moved[cold] > 1 or moved[full] > 1").is_true(), Some(true));
        assert_eq!(value("max(moved[full|cold]) > 1").is_true(), None);
        assert_eq!(value("0 / 0 < 1").is_true(), None);
    }

    #[test]
    fn bounds_are_relaxed_by_their_tolerance() {
        let results = results();
        let nothing = BTreeMap::new();
        let sets = BTreeMap::new();
        let scope =
            Scope { results: &results, definitions: [&nothing; 2], sets: &sets, mode: None };
        let holds = |text: &str, tolerance| {
            scope.holds(&Expression::parse(text).unwrap(), tolerance).unwrap()
        };
        assert!(!holds("moved[tier] >= 2.1", 0.0));
        assert!(holds("moved[tier] >= 2.1", 0.05));
        assert!(holds("moved[tier] in 2.1..3", 0.05));
        assert!(holds("moved[full] < 5.9", 0.05));
        assert!(!holds("moved[full] < 5.9", 0.01));
    }
}
