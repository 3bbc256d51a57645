//! A measured number with its rounds.

/// A number, and the least and the greatest number that the rounds of its measurements give.
///
/// The rounds of a calculated number are every combination of the rounds of its operands, so that
/// `a / b > 1` is certain only if every round of `a` is above every round of `b`. A count is the
/// same in every round, hence exact.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figure {
    /// The number that represents all rounds; NaN if it was not measured.
    pub value: f64,
    /// The least number of any combination of rounds.
    pub low: f64,
    /// The greatest number of any combination of rounds.
    pub high: f64,
}

impl Figure {
    /// Returns a number that is the same in every round.
    #[must_use]
    pub const fn exact(value: f64) -> Self {
        Self { value, low: value, high: value }
    }

    /// Returns a number with its rounds; it is exact if there are none.
    #[must_use]
    pub fn with_rounds(value: f64, rounds: &[f64]) -> Self {
        let low = rounds.iter().copied().fold(value, f64::min);
        let high = rounds.iter().copied().fold(value, f64::max);
        Self { value, low, high }
    }

    /// Returns true if all rounds agree.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.low >= self.high
    }

    /// Applies a function that preserves the order of numbers.
    pub(super) fn ascending(self, operation: impl Fn(f64) -> f64) -> Self {
        let [value, low, high] = [self.value, self.low, self.high].map(operation);
        Self { value, low, high }
    }

    /// Applies an operation of two numbers that is monotone in each of them.
    fn corners(self, other: Self, operation: impl Fn(f64, f64) -> f64) -> Self {
        let value = operation(self.value, other.value);
        if self.is_exact() && other.is_exact() {
            return Self::exact(value);
        }
        let lows = [operation(self.low, other.low), operation(self.low, other.high)];
        let highs = [operation(self.high, other.low), operation(self.high, other.high)];
        let corners = || lows.into_iter().chain(highs).filter(|corner| !corner.is_nan());
        Self { value, low: corners().fold(value, f64::min), high: corners().fold(value, f64::max) }
    }

    pub(super) fn negated(self) -> Self {
        Self { value: -self.value, low: -self.high, high: -self.low }
    }

    pub(super) fn absolute(self) -> Self {
        let (one, other) = (self.low.abs(), self.high.abs());
        let crosses_zero = self.low < 0.0 && self.high > 0.0;
        let low = if crosses_zero { 0.0 } else { one.min(other) };
        Self { value: self.value.abs(), low, high: one.max(other) }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.corners(other, |one, other| one + other)
    }

    pub(super) fn minus(self, other: Self) -> Self {
        self.corners(other, |one, other| one - other)
    }

    pub(super) fn times(self, other: Self) -> Self {
        self.corners(other, |one, other| one * other)
    }

    pub(super) fn over(self, other: Self) -> Self {
        if other.low < 0.0 && other.high > 0.0 {
            let value = self.value / other.value;
            return Self { value, low: f64::NEG_INFINITY, high: f64::INFINITY };
        }
        self.corners(other, |one, other| one / other)
    }

    /// Returns the truth of a comparison of two numbers, which is uncertain if it depends on the
    /// rounds. `compare` must not turn false when the first number falls or the second rises.
    pub(super) fn below(self, other: Self, compare: impl Fn(f64, f64) -> bool) -> Self {
        if self.value.is_nan() || other.value.is_nan() {
            return Self::exact(f64::NAN);
        }
        Self {
            value: truth(compare(self.value, other.value)),
            low: truth(compare(self.high, other.low)),
            high: truth(compare(self.low, other.high)),
        }
    }

    /// Returns whether two numbers are equal: certain if both are exact or their rounds do not
    /// overlap.
    pub(super) fn equals(self, other: Self) -> Self {
        if self.value.is_nan() || other.value.is_nan() {
            return Self::exact(f64::NAN);
        }
        let is_certain = self.is_exact() && other.is_exact();
        let may_be = self.low <= other.high && other.low <= self.high;
        let value = truth(self.value == other.value);
        match is_certain {
            true => Self::exact(value),
            false => Self { value, low: 0.0, high: truth(may_be) },
        }
    }

    /// Returns the negation of a truth.
    pub(super) fn inverted(self) -> Self {
        Self { value: 1.0 - self.value, low: 1.0 - self.high, high: 1.0 - self.low }
    }
}

/// Returns truth as a number.
pub(super) fn truth(is_true: bool) -> f64 {
    f64::from(u8::from(is_true))
}

/// The truth of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It holds in every combination of rounds.
    Yes,
    /// It holds in no combination of rounds.
    No,
    /// It depends on the rounds.
    Undecided,
    /// It depends on a number that was not measured.
    NotMeasured,
}

impl Truth {
    /// Returns the truth of a number from a comparison.
    pub(super) fn of(figure: Figure) -> Self {
        if figure.value.is_nan() {
            Self::NotMeasured
        } else if figure.low != 0.0 {
            Self::Yes
        } else if figure.high == 0.0 {
            Self::No
        } else {
            Self::Undecided
        }
    }
}

/// Returns whether all conditions hold: no if one certainly does not, else not measured if one was
/// not measured.
pub(super) fn all(conditions: &[Figure]) -> Figure {
    let is_refuted = |one: &&Figure| !one.value.is_nan() && one.high == 0.0;
    if let Some(no) = conditions.iter().find(is_refuted) {
        return *no;
    }
    let least = |number: fn(&Figure) -> f64| {
        conditions.iter().map(|one| truth(number(one) != 0.0)).fold(1.0, f64::min)
    };
    match conditions.iter().any(|one| one.value.is_nan()) {
        true => Figure::exact(f64::NAN),
        false => Figure {
            value: least(|one| one.value),
            low: least(|one| one.low),
            high: least(|one| one.high),
        },
    }
}

/// Returns whether any condition holds: yes if one certainly does, else not measured if one was not
/// measured.
pub(super) fn any(conditions: &[Figure]) -> Figure {
    let inverted: Vec<_> = conditions
        .iter()
        .map(|one| match one.value.is_nan() {
            true => *one,
            false => one.ascending(|number| truth(number != 0.0)).inverted(),
        })
        .collect();
    let none = all(&inverted);
    if none.value.is_nan() { none } else { none.inverted() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(rounds: &[f64]) -> Figure {
        Figure::with_rounds(rounds[0], rounds)
    }

    #[test]
    fn a_difference_is_certain_only_if_every_round_beats_every_round() {
        let is_greater =
            |one: Figure, other: Figure| Truth::of(other.below(one, |low, high| low < high));
        let [slow, fast] = [figure(&[3.0, 2.5, 3.5]), figure(&[1.0, 0.8, 2.4])];
        assert_eq!(is_greater(slow, fast), Truth::Yes);
        assert_eq!(is_greater(slow.over(fast), Figure::exact(1.0)), Truth::Yes);
        assert_eq!(is_greater(fast.over(slow), Figure::exact(1.0)), Truth::No);
        let noisy = figure(&[1.0, 0.8, 2.6]);
        assert_eq!(is_greater(slow, noisy), Truth::Undecided);
        assert_eq!(is_greater(slow.over(noisy), Figure::exact(1.0)), Truth::Undecided);
        assert_eq!(is_greater(slow.minus(noisy), Figure::exact(0.0)), Truth::Undecided);
        assert_eq!(is_greater(slow, Figure::exact(f64::NAN)), Truth::NotMeasured);
    }

    #[test]
    fn operations_keep_the_extremes_of_all_rounds() {
        let one = figure(&[2.0, 1.0, 3.0]);
        let other = figure(&[-1.0, -2.0, 4.0]);
        assert_eq!((one.plus(other).low, one.plus(other).high), (-1.0, 7.0));
        assert_eq!((one.times(other).low, one.times(other).high), (-6.0, 12.0));
        assert_eq!(one.over(other).high, f64::INFINITY);
        assert_eq!((other.absolute().low, other.absolute().high), (0.0, 4.0));
        assert_eq!((one.negated().low, one.negated().high), (-3.0, -1.0));
        assert!(Figure::exact(1.0).over(Figure::exact(4.0)).is_exact());
    }

    #[test]
    fn conditions_are_joined_by_what_is_certain() {
        let (yes, no, unknown) = (Figure::exact(1.0), Figure::exact(0.0), Figure::exact(f64::NAN));
        let maybe = Figure { value: 1.0, low: 0.0, high: 1.0 };
        let joined =
            |conditions: &[Figure]| (Truth::of(all(conditions)), Truth::of(any(conditions)));
        assert_eq!(joined(&[yes, yes]), (Truth::Yes, Truth::Yes));
        assert_eq!(joined(&[yes, maybe]), (Truth::Undecided, Truth::Yes));
        assert_eq!(joined(&[no, maybe]), (Truth::No, Truth::Undecided));
        assert_eq!(joined(&[no, unknown]), (Truth::No, Truth::NotMeasured));
        assert_eq!(joined(&[yes, unknown]), (Truth::NotMeasured, Truth::Yes));
    }
}
