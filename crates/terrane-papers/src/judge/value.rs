//! The values of expressions.

use super::figure::{Figure, Truth, all};

/// A number with the keys of the measurement it comes from, such as `lo+1`.
#[derive(Debug, Clone, PartialEq)]
pub struct Labelled {
    /// The keys that were selected, joined by commas; empty for a literal.
    pub label: String,
    /// The number.
    pub figure: Figure,
}

/// A number, a list of numbers, or text. Truth is a number: 1, 0, or NaN if it depends on a number
/// that was not measured.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// One number.
    Number(Figure),
    /// Numbers in the order in which they were selected.
    List(Vec<Labelled>),
    /// A text, such as the name of a strategy.
    Text {
        /// The text.
        text: String,
        /// True if every round gives the same text.
        is_certain: bool,
    },
}

/// The number that stands for a missing measurement.
pub(super) const NOT_MEASURED: Value = Value::Number(Figure::exact(f64::NAN));

impl Value {
    /// Returns a text that does not depend on rounds.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into(), is_certain: true }
    }

    /// Returns the numbers; a text has none.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        match self {
            Self::Number(figure) => vec![*figure],
            Self::List(list) => list.iter().map(|one| one.figure).collect(),
            Self::Text { .. } => Vec::new(),
        }
    }

    /// Returns the numbers with their labels.
    pub(super) fn labelled(self) -> Vec<Labelled> {
        match self {
            Self::Number(figure) => vec![Labelled { label: String::new(), figure }],
            Self::List(list) => list,
            Self::Text { .. } => Vec::new(),
        }
    }

    /// Returns whether every number is a truth that holds.
    pub(super) fn truth(&self) -> Truth {
        let figures = self.figures();
        if figures.is_empty() { Truth::NotMeasured } else { Truth::of(all(&figures)) }
    }

    /// Applies `operation` to each number.
    pub(super) fn map(self, operation: impl Fn(Figure) -> Figure) -> Self {
        match self {
            Self::Number(figure) => Self::Number(operation(figure)),
            Self::List(mut list) => {
                for one in &mut list {
                    one.figure = operation(one.figure);
                }
                Self::List(list)
            }
            Self::Text { .. } => NOT_MEASURED,
        }
    }

    /// Applies `operation` to pairs of numbers: a single number pairs with each number of a list,
    /// and two lists must have the same length.
    pub(super) fn zip(self, other: Self, operation: impl Fn(Figure, Figure) -> Figure) -> Self {
        match (self, other) {
            (one, Self::Number(other)) => one.map(|one| operation(one, other)),
            (Self::Number(one), other) => other.map(|other| operation(one, other)),
            (Self::List(ones), Self::List(others)) if ones.len() == others.len() => {
                let pairs = ones.into_iter().zip(others);
                Self::List(
                    pairs
                        .map(|(one, other)| Labelled {
                            figure: operation(one.figure, other.figure),
                            label: if one.label.is_empty() { other.label } else { one.label },
                        })
                        .collect(),
                )
            }
            _ => NOT_MEASURED,
        }
    }
}
