//! The values of expressions.

/// A number with the keys of the measurement it comes from, such as `lo+1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Labelled {
    /// The keys that were selected, joined by commas; empty for a literal.
    pub label: String,
    /// The number; NaN if it was not measured.
    pub value: f64,
}

/// A number, a list of numbers, or text. Truth is a number: 1, 0, or NaN where a number that it
/// depends on was not measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// One number.
    Number(f64),
    /// Numbers in the order in which they were selected.
    List(Vec<Labelled>),
    /// A text, such as the name of a strategy.
    Text(String),
}

/// The number that stands for a missing measurement.
pub(super) const NOT_MEASURED: Value = Value::Number(f64::NAN);

/// Returns truth as a number.
pub(super) fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

impl Value {
    /// Returns the numbers; a text has none.
    pub(super) fn numbers(&self) -> Vec<f64> {
        match self {
            Self::Number(number) => vec![*number],
            Self::List(list) => list.iter().map(|one| one.value).collect(),
            Self::Text(_) => Vec::new(),
        }
    }

    /// Returns the numbers with their labels.
    pub(super) fn labelled(self) -> Vec<Labelled> {
        match self {
            Self::Number(value) => vec![Labelled { label: String::new(), value }],
            Self::List(list) => list,
            Self::Text(_) => Vec::new(),
        }
    }

    /// Returns true if no number is 0; `None` if no number is 0 but some were not measured.
    pub(super) fn is_true(&self) -> Option<bool> {
        let numbers = self.numbers();
        match all(&numbers) {
            truth if truth.is_nan() || numbers.is_empty() => None,
            truth => Some(truth != 0.0),
        }
    }

    /// Applies `operation` to each number.
    pub(super) fn map(self, operation: impl Fn(f64) -> f64) -> Self {
        match self {
            Self::Number(number) => Self::Number(operation(number)),
            Self::List(mut list) => {
                for one in &mut list {
                    one.value = operation(one.value);
                }
                Self::List(list)
            }
            Self::Text(_) => NOT_MEASURED,
        }
    }

    /// Applies `operation` to pairs of numbers: a single number pairs with each number of a list,
    /// and two lists must have the same length.
    pub(super) fn zip(self, other: Self, operation: impl Fn(f64, f64) -> f64) -> Self {
        match (self, other) {
            (one, Self::Number(other)) => one.map(|one| operation(one, other)),
            (Self::Number(one), other) => other.map(|other| operation(one, other)),
            (Self::List(ones), Self::List(others)) if ones.len() == others.len() => {
                let pairs = ones.into_iter().zip(others);
                Self::List(
                    pairs
                        .map(|(one, other)| Labelled {
                            value: operation(one.value, other.value),
                            label: if one.label.is_empty() { other.label } else { one.label },
                        })
                        .collect(),
                )
            }
            _ => NOT_MEASURED,
        }
    }
}

/// Returns 0 if a number is 0, else NaN if a number is NaN, else 1.
pub(super) fn all(numbers: &[f64]) -> f64 {
    if numbers.contains(&0.0) {
        0.0
    } else if numbers.iter().any(|number| number.is_nan()) {
        f64::NAN
    } else {
        1.0
    }
}

/// Returns 1 if a number is neither 0 nor NaN, else NaN if a number is NaN, else 0.
pub(super) fn any(numbers: &[f64]) -> f64 {
    if numbers.iter().any(|number| !number.is_nan() && *number != 0.0) {
        1.0
    } else if numbers.iter().any(|number| number.is_nan()) {
        f64::NAN
    } else {
        0.0
    }
}
