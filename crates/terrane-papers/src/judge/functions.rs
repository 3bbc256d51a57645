//! The operators and functions of expressions.

use super::expression::{Function, Operator};
use super::figure::{Figure, all, any, truth};
use super::value::{Labelled, NOT_MEASURED, Value};

/// Applies an operator to two values.
pub(super) fn binary(operator: Operator, left: Value, right: Value) -> Value {
    match operator {
        Operator::Or => left.zip(right, |left, right| any(&[left, right])),
        Operator::And => left.zip(right, |left, right| all(&[left, right])),
        Operator::Add => left.zip(right, Figure::plus),
        Operator::Subtract => left.zip(right, Figure::minus),
        Operator::Multiply => left.zip(right, Figure::times),
        Operator::Divide => left.zip(right, Figure::over),
        _ => compared(operator, left, right),
    }
}

/// Compares two values.
pub(super) fn compared(operator: Operator, left: Value, right: Value) -> Value {
    if let (Value::Text { text: one, .. }, Value::Text { text: other, .. }) = (&left, &right) {
        let is_true = match operator {
            Operator::Equal => one == other,
            Operator::Unequal => one != other,
            _ => return NOT_MEASURED,
        };
        let is_certain = [&left, &right]
            .iter()
            .all(|value| matches!(value, Value::Text { is_certain: true, .. }));
        let value = truth(is_true);
        let (low, high) = if is_certain { (value, value) } else { (0.0, 1.0) };
        return Value::Number(Figure { value, low, high });
    }
    match operator {
        Operator::Less => left.zip(right, |one, limit| one.below(limit, |low, high| low < high)),
        Operator::AtMost => left.zip(right, |one, limit| one.below(limit, |low, high| low <= high)),
        Operator::Greater => left.zip(right, |one, limit| limit.below(one, |low, high| low < high)),
        Operator::AtLeast => {
            left.zip(right, |one, limit| limit.below(one, |low, high| low <= high))
        }
        Operator::Equal => left.zip(right, Figure::equals),
        Operator::Unequal => left.zip(right, |one, other| {
            let equal = one.equals(other);
            if equal.value.is_nan() { equal } else { equal.inverted() }
        }),
        _ => NOT_MEASURED,
    }
}

/// Applies a function to all its arguments in one list.
pub(super) fn call(function: Function, list: Vec<Labelled>, is_single: bool) -> Value {
    let figures: Vec<Figure> = list.iter().map(|one| one.figure).collect();
    let is_measured = !figures.is_empty() && !figures.iter().any(|one| one.value.is_nan());
    let of_measured = |figure: &dyn Fn() -> Figure| match is_measured {
        true => Value::Number(figure()),
        false => NOT_MEASURED,
    };
    let combined = |combine: &dyn Fn(&[f64]) -> f64| {
        let of =
            |number: fn(&Figure) -> f64| combine(&figures.iter().map(number).collect::<Vec<_>>());
        Figure { value: of(|one| one.value), low: of(|one| one.low), high: of(|one| one.high) }
    };
    let each = |operation: fn(Figure) -> Figure| match (&list[..], is_single) {
        ([one], true) if one.label.is_empty() => Value::Number(operation(one.figure)),
        _ => Value::List(list.clone()).map(operation),
    };
    match function {
        Function::Min => of_measured(&|| combined(&least)),
        Function::Max => of_measured(&|| combined(&greatest)),
        Function::Sum => of_measured(&|| combined(&|all| all.iter().sum())),
        Function::Mean => {
            of_measured(&|| combined(&|all| all.iter().sum::<f64>() / all.len() as f64))
        }
        Function::Median => of_measured(&|| combined(&median)),
        Function::Spread => of_measured(&|| {
            let spread = combined(&greatest).over(combined(&least));
            Figure { low: spread.low.max(1.0_f64.min(spread.value)), ..spread }
        }),
        Function::Count => Value::Number(Figure::exact(figures.len() as f64)),
        Function::Steps => neighbours(&list, |before, after| after.over(before)),
        Function::Differences => neighbours(&list, |before, after| after.minus(before)),
        Function::Abs => each(Figure::absolute),
        Function::Sqrt => each(|figure| figure.ascending(f64::sqrt)),
        Function::All => Value::Number(all(&figures)),
        Function::Any => Value::Number(any(&figures)),
        Function::Sorted => Value::List(sorted(list)),
        Function::Order if is_measured => ordered(list, |all| all.join(" < ")),
        Function::Lowest if is_measured => {
            extreme(sorted(list), |least, other| least.high < other.low)
        }
        Function::Highest if is_measured => {
            let descending = sorted(list).into_iter().rev().collect();
            extreme(descending, |greatest, other| greatest.low > other.high)
        }
        Function::Order | Function::Lowest | Function::Highest | Function::Rounds => NOT_MEASURED,
    }
}

fn least(all: &[f64]) -> f64 {
    all.iter().copied().fold(f64::INFINITY, f64::min)
}

fn greatest(all: &[f64]) -> f64 {
    all.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

fn median(all: &[f64]) -> f64 {
    let mut sorted = all.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Applies `operation` to each number and the number before it; the result has the label of the
/// later number.
fn neighbours(list: &[Labelled], operation: fn(Figure, Figure) -> Figure) -> Value {
    let pairs = list.windows(2).map(|pair| Labelled {
        label: pair[1].label.clone(),
        figure: operation(pair[0].figure, pair[1].figure),
    });
    Value::List(pairs.collect())
}

fn sorted(mut list: Vec<Labelled>) -> Vec<Labelled> {
    list.sort_by(|one, other| one.figure.value.total_cmp(&other.figure.value));
    list
}

/// Returns the labels from the least number to the greatest; certain if no neighbours' rounds
/// overlap.
fn ordered(list: Vec<Labelled>, text: impl Fn(&[&str]) -> String) -> Value {
    let sorted = sorted(list);
    let is_apart = |pair: &[Labelled]| is_certain(pair, |one, other| one.high < other.low);
    let labels: Vec<&str> = sorted.iter().map(|one| one.label.as_str()).collect();
    Value::Text { text: text(&labels), is_certain: sorted.windows(2).all(is_apart) }
}

/// Returns the label of the first number; certain if its rounds overlap no other's.
fn extreme(list: Vec<Labelled>, is_apart: fn(Figure, Figure) -> bool) -> Value {
    let is_certain = list.iter().skip(1).all(|other| {
        list[0].figure.is_exact() && other.figure.is_exact()
            || is_apart(list[0].figure, other.figure)
    });
    let text = list.into_iter().next().map(|one| one.label);
    Value::Text { text: text.unwrap_or_default(), is_certain }
}

/// Returns true if two neighbours are exact or their rounds do not overlap.
fn is_certain(pair: &[Labelled], is_apart: fn(Figure, Figure) -> bool) -> bool {
    let [one, other] = [pair[0].figure, pair[1].figure];
    one.is_exact() && other.is_exact() || is_apart(one, other)
}
