//! Text with expressions in braces: `Full {moved[full]:x}, ratio {ratio:.2}`.
//!
//! A format follows a colon; lists are joined with commas, after `named` with their labels.
//!
//! | format | shows |
//! |---|---|
//! | none | a number with three digits, a text as it is |
//! | `.1` | one digit after the point |
//! | `x`, `.1x` | a ratio: `1.23×` |
//! | `s` | seconds as a time |
//! | `ns` | nanoseconds as a time |
//! | `bytes` | bytes with their unit |
//! | `count` | a whole number |
//! | `mib` | bytes in MiB |
//! | `raw` | a number with all its digits |

use anyhow::{Context, Result, bail, ensure};
use terrane_lab::output::human;

use super::evaluate::Scope;
use super::expression::{Expression, Selector};
use super::value::Value;

/// A template, parsed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Text(String),
    Expression(Expression, Format),
}

/// How numbers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    is_named: bool,
    unit: Unit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Number,
    Digits(usize),
    Ratio(Option<usize>),
    Seconds,
    Nanos,
    Bytes,
    Mebibytes,
    Count,
    Raw,
}

impl Format {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let (is_named, unit) = match text.strip_prefix("named") {
            Some(rest) => (true, rest.trim()),
            None => (false, text),
        };
        let digits = |text: &str| text.parse().with_context(|| format!("no format '{text}'"));
        let unit = match unit {
            "" => Unit::Number,
            "x" => Unit::Ratio(None),
            "s" => Unit::Seconds,
            "ns" => Unit::Nanos,
            "bytes" => Unit::Bytes,
            "mib" => Unit::Mebibytes,
            "count" => Unit::Count,
            "raw" => Unit::Raw,
            other => {
                let Some(rest) = other.strip_prefix('.') else { bail!("no format '{other}'") };
                match rest.strip_suffix('x') {
                    Some(rest) => Unit::Ratio(Some(digits(rest)?)),
                    None => Unit::Digits(digits(rest)?),
                }
            }
        };
        Ok(Self { is_named, unit })
    }

    pub(super) fn number(self, number: f64) -> String {
        if number.is_nan() {
            return "?".to_owned();
        }
        match self.unit {
            Unit::Number => human::number(number),
            Unit::Digits(digits) => format!("{number:.digits$}"),
            Unit::Ratio(None) => human::ratio(number),
            Unit::Ratio(Some(digits)) => format!("{number:.digits$}×"),
            Unit::Seconds => human::seconds(number),
            Unit::Nanos => human::nanos(number),
            Unit::Bytes => human::bytes(number as u64),
            Unit::Mebibytes => (number as u64 >> 20).to_string(),
            Unit::Count => human::count(number.max(0.0) as u64),
            Unit::Raw => raw(number),
        }
    }

    /// Formats a number with the digits of its source: `63×`, `2.1`.
    pub(super) fn written(self, number: f64) -> String {
        match self.unit {
            Unit::Number | Unit::Digits(_) => number.to_string(),
            Unit::Ratio(_) => format!("{number}×"),
            _ => self.number(number),
        }
    }

    fn show(self, value: Value) -> String {
        match value {
            Value::Text { text, .. } => text,
            Value::Number(figure) => self.number(figure.value),
            Value::List(list) => {
                let all = list.into_iter().map(|one| match self.is_named {
                    true => format!("{} {}", one.label, self.number(one.figure.value)),
                    false => self.number(one.figure.value),
                });
                all.collect::<Vec<_>>().join(", ")
            }
        }
    }
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// If an expression or a format is malformed; the error names it.
    pub fn parse(text: &str) -> Result<Self> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some(begin) = rest.find('{') {
            pieces.push(Piece::Text(rest[..begin].to_owned()));
            let Some(length) = rest[begin..].find('}') else { bail!("a '{{' without its '}}'") };
            let inner = &rest[begin + 1..begin + length];
            let (expression, format) = inner.split_once(':').unwrap_or((inner, ""));
            let parsed = Expression::parse(expression);
            let parsed = parsed.with_context(|| format!("in '{{{inner}}}'"))?;
            pieces.push(Piece::Expression(parsed, Format::parse(format)?));
            rest = &rest[begin + length + 1..];
        }
        ensure!(!rest.contains('}'), "a '}}' without its '{{'");
        pieces.push(Piece::Text(rest.to_owned()));
        Ok(Self { pieces })
    }

    /// Calls `visit` for every name in the expressions.
    pub(super) fn names(&self, visit: &mut dyn FnMut(&str, &[Selector])) {
        for piece in &self.pieces {
            if let Piece::Expression(expression, _) = piece {
                expression.names(visit);
            }
        }
    }

    /// Fills in the values; a number that was not measured is a question mark.
    pub(super) fn fill(&self, scope: &Scope<'_>) -> String {
        let pieces = self.pieces.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Expression(expression, format) => format.show(scope.value(expression)),
        });
        pieces.collect()
    }
}

/// Formats a number so that the command line reads the same number: `0.125`, and `1/30` if it has
/// too many digits.
fn raw(number: f64) -> String {
    const DIGITS_MAX: usize = 8;
    let (digits, divisor) = (number.to_string(), (1.0 / number).round());
    match digits.len() > DIGITS_MAX && 1.0 / divisor == number {
        true => format!("1/{divisor}"),
        false => digits,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::results::{Metric, Results};

    const METRICS: &[&[Metric]] =
        &[&[Metric { name: "moved", about: "" }, Metric { name: "machine", about: "" }]];

    #[test]
    fn values_are_filled_in_by_their_formats() {
        let mut results = Results::new("test", METRICS);
        results.record("moved", &["full"], 12.34);
        results.record("moved", &["tier"], 2.0);
        results.record_text("machine", "two cores");
        let (nothing, sets) = (BTreeMap::new(), BTreeMap::new());
        let scope =
            Scope { results: &results, definitions: [&nothing; 2], sets: &sets, mode: None };
        let filled = |text: &str| Template::parse(text).unwrap().fill(&scope);
        assert_eq!(filled("on {machine}"), "on two cores");
        assert_eq!(filled("{moved[full]} {moved[full]:.0} {moved[full]:x}"), "12.3 12 12.3×");
        assert_eq!(filled("{moved[*]:named .1x}"), "full 12.3×, tier 2.0×");
        assert_eq!(
            filled("{moved[tier]:s} {moved[tier]:ns} {moved[tier] * 1024:bytes}"),
            "2.00 s 2 ns 2.00 KiB"
        );
        assert_eq!(filled("{moved[cold]:x}"), "?");
        assert_eq!(filled("{moved[tier] / 60:raw} {moved[tier] / 16:raw}"), "1/30 0.125");
    }

    #[test]
    fn malformed_templates_are_refused() {
        for text in ["{", "}", "{1", "{1:y}", "{1:.z}", "{}"] {
            assert!(Template::parse(text).is_err(), "{text}");
        }
    }
}
