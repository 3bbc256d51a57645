//! A paper's statement about a figure, and the interval that it implies.
//!
//! | form | the paper says | the interval of the figure |
//! |---|---|---|
//! | `[a, b]` | from a to b | a to b, each end within its rounding |
//! | `x` or `{ about = x }` | x | x within its rounding and 10 % of x |
//! | `{ equal_to = x }` | as much as, the same | x within 10 % of x |
//! | `{ exactly = x }` | a count or a calculated size | x within its rounding |
//! | `{ up_to = x }` | up to x | the greatest figure as for `about`, the others at most that |
//! | `{ at_least = x }` | at least x | from x less its rounding and 10 % of x |
//! | `{ more_than = x }` | more than x | above x |
//! | `{ at_most = x }` | at most x | up to x and its rounding and 10 % of x |
//! | `{ less_than = x }` | less than x | below x |
//!
//! The rounding of a number is half a unit of its last digit: 12 is 11.5 to 12.5, 2.1 is 2.05 to
//! 2.15. The 10 % allow for another machine and another engine; `tolerance` in a claim sets another
//! share, with the reason in a comment.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use terrane_lab::output::human;

use super::figure::Figure;

/// The share of a single number by which a figure may differ from it.
const TOLERANCE: f64 = 0.1;

/// A statement, as text.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum StatementText {
    Number(f64),
    Interval([f64; 2]),
    Form(FormText),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FormText {
    about: Option<f64>,
    equal_to: Option<f64>,
    exactly: Option<f64>,
    up_to: Option<f64>,
    at_least: Option<f64>,
    more_than: Option<f64>,
    at_most: Option<f64>,
    less_than: Option<f64>,
}

/// How a paper states a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Form {
    Between,
    About,
    EqualTo,
    Exactly,
    UpTo,
    AtLeast,
    MoreThan,
    AtMost,
    LessThan,
}

/// A paper's statement about a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statement {
    form: Form,
    /// The number, or the ends of the interval.
    numbers: [f64; 2],
    tolerance: f64,
}

/// The position of a figure relative to a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// In the interval.
    Inside,
    /// Outside of it in every combination of rounds.
    Outside,
    /// Outside of it, but not in every combination of rounds.
    Undecided,
}

impl Statement {
    /// Reads a statement.
    pub(super) fn parse(text: StatementText, tolerance: Option<f64>) -> Result<Self> {
        let one = |form, number: f64| (form, [number; 2]);
        let (form, numbers) = match text {
            StatementText::Number(number) => one(Form::About, number),
            StatementText::Interval([low, high]) if low <= high => (Form::Between, [low, high]),
            StatementText::Interval([low, high]) => bail!("the interval [{low}, {high}] is empty"),
            StatementText::Form(form) => {
                let all = [
                    (Form::About, form.about),
                    (Form::EqualTo, form.equal_to),
                    (Form::Exactly, form.exactly),
                    (Form::UpTo, form.up_to),
                    (Form::AtLeast, form.at_least),
                    (Form::MoreThan, form.more_than),
                    (Form::AtMost, form.at_most),
                    (Form::LessThan, form.less_than),
                ];
                let all = all.into_iter().filter_map(|(form, number)| Some(one(form, number?)));
                match all.collect::<Vec<_>>()[..] {
                    [form] => form,
                    _ => bail!("a statement has one form"),
                }
            }
        };
        Ok(Self { form, numbers, tolerance: tolerance.unwrap_or(TOLERANCE) })
    }

    /// Returns the ends of the interval that each figure must be in; infinite on an open side.
    #[must_use]
    pub fn interval(&self) -> (f64, f64) {
        let [low, high] = self.numbers;
        let (below, above) = (low - rounding(low), high + rounding(high));
        let share = self.tolerance * low.abs();
        match self.form {
            Form::Between | Form::Exactly => (below, above),
            Form::About => (below - share, above + share),
            Form::EqualTo => (low - share, high + share),
            Form::AtLeast => (below - share, f64::INFINITY),
            Form::UpTo | Form::AtMost => (f64::NEG_INFINITY, above + share),
            Form::MoreThan => (low, f64::INFINITY),
            Form::LessThan => (f64::NEG_INFINITY, high),
        }
    }

    /// Returns the position of figures: inside if all are inside.
    pub(super) fn position(&self, figures: &[Figure]) -> Position {
        let (low, high) = self.interval();
        let is_open = matches!(self.form, Form::MoreThan | Form::LessThan);
        let is_inside = |number: f64| match is_open {
            true => number > low && number < high,
            false => number >= low && number <= high,
        };
        let greatest = figures.iter().map(|one| one.value).fold(f64::NEG_INFINITY, f64::max);
        let greatest_high = figures.iter().map(|one| one.high).fold(f64::NEG_INFINITY, f64::max);
        let about = Self { form: Form::About, ..*self }.interval().0;
        let is_low = self.form == Form::UpTo && greatest < about;
        if figures.iter().all(|one| is_inside(one.value)) && !is_low {
            return Position::Inside;
        }
        let is_outside = |one: &Figure| {
            !is_inside(one.low) && !is_inside(one.high) && (one.high <= low || one.low >= high)
        };
        let is_certain = figures.iter().any(is_outside) || is_low && greatest_high < about;
        if is_certain { Position::Outside } else { Position::Undecided }
    }

    /// Returns the statement in words, with its numbers formatted by `show`: `up to 12×`.
    pub(super) fn words(&self, show: impl Fn(f64) -> String) -> String {
        let [low, high] = self.numbers.map(show);
        match self.form {
            Form::Between => format!("{low} to {high}"),
            Form::About | Form::EqualTo | Form::Exactly => low,
            Form::UpTo => format!("up to {low}"),
            Form::AtLeast => format!("at least {low}"),
            Form::MoreThan => format!("more than {low}"),
            Form::AtMost => format!("at most {low}"),
            Form::LessThan => format!("less than {low}"),
        }
    }

    /// Returns the interval that the judge applies, in words: `10.3 to 13.7`.
    pub(super) fn rule(&self) -> String {
        let (low, high) = self.interval();
        let about = Self { form: Form::About, ..*self }.interval().0;
        match self.form {
            Form::UpTo => format!("the greatest {} to {}", signed(about), signed(high)),
            Form::MoreThan => format!("> {}", signed(low)),
            Form::LessThan => format!("< {}", signed(high)),
            _ if low == f64::NEG_INFINITY => format!("≤ {}", signed(high)),
            _ if high == f64::INFINITY => format!("≥ {}", signed(low)),
            _ => format!("{} to {}", signed(low), signed(high)),
        }
    }
}

/// Formats a number that may be negative with three digits.
pub(super) fn signed(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "" };
    let size = number.abs();
    let digits =
        if size > 0.0 && size < 0.095 { format!("{size:.3}") } else { human::number(size) };
    format!("{sign}{digits}")
}

/// Returns half a unit of the last digit of a number as written.
fn rounding(number: f64) -> f64 {
    let text = number.to_string();
    let decimals = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    0.5 / 10f64.powi(i32::try_from(decimals).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(text: &str) -> Statement {
        #[derive(Deserialize)]
        struct Line {
            paper: StatementText,
        }
        let line: Line = toml::from_str(&format!("paper = {text}")).unwrap();
        Statement::parse(line.paper, None).unwrap()
    }

    fn position(text: &str, figures: &[f64]) -> Position {
        let figures: Vec<_> = figures.iter().map(|&one| Figure::exact(one)).collect();
        statement(text).position(&figures)
    }

    #[test]
    fn forms_become_intervals_by_one_rule() {
        let interval = |text: &str| {
            let (low, high) = statement(text).interval();
            ((low * 1e3).round() / 1e3, (high * 1e3).round() / 1e3)
        };
        let infinity = f64::INFINITY;
        assert_eq!(interval("12"), (10.3, 13.7));
        assert_eq!(interval("{ about = 2.1 }"), (1.84, 2.36));
        assert_eq!(interval("{ equal_to = 1 }"), (0.9, 1.1));
        assert_eq!(interval("{ exactly = 81920 }"), (81919.5, 81920.5));
        assert_eq!(interval("[1.2, 1.9]"), (1.15, 1.95));
        assert_eq!(interval("{ at_least = 3.1 }"), (2.74, infinity));
        assert_eq!(interval("{ more_than = 10 }"), (10.0, infinity));
        assert_eq!(interval("{ at_most = 10 }"), (-infinity, 11.5));
        assert_eq!(interval("{ less_than = 1 }"), (-infinity, 1.0));
        assert_eq!(statement("{ up_to = 12 }").rule(), "the greatest 10.3 to 13.7");
        assert_eq!(statement("[2.5, 5.5]").rule(), "2.45 to 5.55");
    }

    #[test]
    fn figures_far_beyond_a_number_are_not_that_number() {
        assert_eq!(position("{ up_to = 12 }", &[3952.0]), Position::Outside);
        assert_eq!(position("{ up_to = 12 }", &[2.0, 11.0]), Position::Inside);
        assert_eq!(position("{ up_to = 12 }", &[2.0, 4.0]), Position::Outside);
        assert_eq!(position("[2.5, 5.5]", &[3.0, 16.0]), Position::Outside);
        assert_eq!(position("[2.5, 5.5]", &[2.5, 5.5]), Position::Inside);
        assert_eq!(position("{ more_than = 10 }", &[10.0]), Position::Outside);
        assert_eq!(position("{ more_than = 10 }", &[3952.0]), Position::Inside);
    }

    #[test]
    fn rounds_that_reach_into_the_interval_decide_nothing() {
        let noisy = Figure { value: 14.0, low: 12.0, high: 15.0 };
        assert_eq!(statement("12").position(&[noisy]), Position::Undecided);
        let inside = Figure { value: 12.0, low: 8.0, high: 15.0 };
        assert_eq!(statement("12").position(&[inside]), Position::Inside);
        let around = Figure { value: 14.0, low: 8.0, high: 15.0 };
        assert_eq!(statement("12").position(&[around]), Position::Undecided);
        let beyond = Figure { value: 14.0, low: 13.8, high: 15.0 };
        assert_eq!(statement("12").position(&[beyond]), Position::Outside);
    }

    #[test]
    fn malformed_statements_are_refused() {
        let parse = |text: StatementText| Statement::parse(text, None);
        assert!(parse(StatementText::Interval([2.0, 1.0])).is_err());
        assert!(parse(StatementText::Form(FormText::default())).is_err());
        let two = FormText { about: Some(1.0), up_to: Some(2.0), ..FormText::default() };
        assert!(parse(StatementText::Form(two)).is_err());
    }
}
