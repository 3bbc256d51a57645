//! Axes: where values and ticks are placed.

/// The scale of an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// Linear, from zero.
    Linear,
    /// Logarithmic, to base 10.
    Logarithmic,
}

/// An axis with its range.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Axis {
    scale: Scale,
    low: f64,
    high: f64,
    /// True if a logarithmic axis has a row for zero below its lower end.
    has_zero: bool,
}

/// The approximate number of ticks on a linear axis.
const TICKS: f64 = 6.0;

/// The share of a logarithmic axis between its lower end and its row for zero.
const ZERO_ROW: f64 = 0.1;

impl Axis {
    /// Returns an axis that covers all `values`. A linear axis includes zero. A logarithmic one begins
    /// at the power of ten below the values; zero, which it cannot place, gets a row of its own.
    pub(super) fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let usable = values.filter(|value| value.is_finite());
        match scale {
            Scale::Linear => {
                let (low, high) = usable.fold((0.0, 0.0), |(low, high), value| {
                    (f64::min(low, value), f64::max(high, value))
                });
                let step = step(high - low);
                let high = if high > low { (high / step).ceil() * step } else { 1.0 };
                Self { scale, low: (low / step).floor() * step, high, has_zero: false }
            }
            Scale::Logarithmic => {
                let mut has_zero = false;
                let (low, high) = usable.fold((f64::INFINITY, 0.0), |(low, high), value| {
                    has_zero |= value == 0.0;
                    if value > 0.0 {
                        (f64::min(low, value), f64::max(high, value))
                    } else {
                        (low, high)
                    }
                });
                let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
                let low = 10f64.powf(low.log10().floor());
                let high = 10f64.powf(high.log10().ceil()).max(low * 10.0);
                Self { scale, low, high, has_zero }
            }
        }
    }

    /// Returns a logarithmic axis from just below the least positive value to just above the greatest.
    pub(super) fn powers(values: impl Iterator<Item = f64>) -> Self {
        let mut axis = Self::over(Scale::Logarithmic, std::iter::empty());
        let (mut low, mut high) = (f64::INFINITY, 0.0);
        for value in values.filter(|value| value.is_finite()) {
            axis.has_zero |= value == 0.0;
            if value > 0.0 {
                (low, high) = (f64::min(low, value), f64::max(high, value));
            }
        }
        if low < high {
            let margin = (high / low).powf(0.04).max(1.05);
            (axis.low, axis.high) = (low / margin, high * margin);
        }
        axis
    }

    /// Returns a linear axis over values that need not begin at zero, such as the values of a
    /// parameter: it does if the least one is near zero.
    pub(super) fn along(values: impl Iterator<Item = f64> + Clone) -> Self {
        let usable = values.filter(|value| value.is_finite());
        let low = usable.clone().fold(f64::INFINITY, f64::min);
        let axis = Self::over(Scale::Linear, usable);
        let step = step(axis.high - low);
        match low > 0.1 * axis.high && low < axis.high {
            true => Self { low: (low / step).floor() * step, ..axis },
            false => axis,
        }
    }

    /// Returns an axis from `low` to `high`.
    pub(super) fn exactly(low: f64, high: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self { scale: Scale::Linear, low, high, has_zero: false }
    }

    /// Returns the position of a value, from 0 at the low end to 1 at the high end; `None` if the
    /// axis cannot show it.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value == 0.0 && self.has_zero => 0.0,
            Scale::Logarithmic if value <= 0.0 => return None,
            Scale::Logarithmic => {
                let lowest = self.lowest();
                let place =
                    (value.max(self.low) / self.low).log10() / (self.high / self.low).log10();
                lowest + (1.0 - lowest) * place
            }
        };
        place.is_finite().then(|| place.clamp(0.0, 1.0))
    }

    /// Returns the middle of the break between the row for zero and the lower end; `None` without such
    /// a row.
    pub(super) fn break_place(&self) -> Option<f64> {
        self.has_zero.then_some(ZERO_ROW / 2.0)
    }

    /// Returns the position of the lower end, above the row for zero.
    fn lowest(&self) -> f64 {
        if self.has_zero { ZERO_ROW } else { 0.0 }
    }

    /// Returns the values of the ticks in ascending order.
    pub(super) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let step = step(self.high - self.low);
                let first = (self.low / step).ceil();
                let count = ((self.high - first * step) / step + 1e-6).floor() as u32;
                (0..=count).map(|number| (first + f64::from(number)) * step).collect()
            }
            Scale::Logarithmic => {
                let decades = (self.high / self.low).log10().round() as i32;
                let powers = (0..=decades).map(|decade| self.low * 10f64.powi(decade));
                self.has_zero.then_some(0.0).into_iter().chain(powers).collect()
            }
        }
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten that divides `span` into about [`TICKS`] steps.
fn step(span: f64) -> f64 {
    let rough = (span / TICKS).max(f64::MIN_POSITIVE);
    let power = 10f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

/// Formats a number for an axis: `0`, `2.5`, `300`, `40 k`, `1.5 M`, `0.002`.
pub(super) fn label(value: f64) -> String {
    let short = |value: f64| {
        let text = format!("{value:.3}");
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    };
    match value.abs() {
        0.0 => "0".to_owned(),
        size if size >= 1e6 => format!("{} M", short(value / 1e6)),
        size if size >= 1e4 => format!("{} k", short(value / 1e3)),
        size if size >= 1e-3 => short(value),
        _ => format!("{value:.0e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_that_cover_all_values() {
        let axis = Axis::over(Scale::Linear, [3.0, 97.0].into_iter());
        assert_eq!(axis.ticks(), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(axis.place(50.0), Some(0.5));
        let axis = Axis::over(Scale::Logarithmic, [0.03, 700.0, 0.0].into_iter());
        let ticks: Vec<_> = axis.ticks().into_iter().map(label).collect();
        assert_eq!(ticks, ["0", "0.01", "0.1", "1", "10", "100", "1000"]);
        assert_eq!(Axis::over(Scale::Linear, std::iter::empty()).ticks().last(), Some(&1.0));
        assert_eq!(Axis::exactly(0.0, 60.0).ticks().len(), 7);
    }

    #[test]
    fn zero_on_a_logarithmic_axis_lies_below_its_lower_end() {
        let axis = Axis::over(Scale::Logarithmic, [0.0, 1.0, 40.0].into_iter());
        assert_eq!(axis.place(0.0), Some(0.0));
        assert_eq!((axis.place(1.0), axis.place(100.0)), (Some(ZERO_ROW), Some(1.0)));
        assert!(axis.break_place().is_some_and(|place| place > 0.0 && place < ZERO_ROW));
        // Without a zero there is no row for it, and other values without a logarithm have no place.
        let axis = Axis::over(Scale::Logarithmic, [1.0, 40.0].into_iter());
        assert_eq!((axis.place(1.0), axis.place(0.0), axis.place(-1.0)), (Some(0.0), None, None));
        assert_eq!((axis.ticks()[0], axis.break_place()), (1.0, None));
        let axis = Axis::powers([0.0, 2.0, 8.0].into_iter());
        assert!(axis.place(0.0) == Some(0.0) && axis.place(2.0).unwrap() > ZERO_ROW);
    }

    #[test]
    fn negative_values_extend_a_linear_axis_below_zero() {
        let axis = Axis::over(Scale::Linear, [-30.0, 70.0].into_iter());
        assert_eq!(axis.ticks(), [-40.0, -20.0, 0.0, 20.0, 40.0, 60.0, 80.0]);
        assert!(axis.place(-30.0).unwrap() > 0.0 && axis.place(0.0).unwrap() > 0.3);
    }

    #[test]
    fn an_axis_along_a_parameter_begins_near_its_least_value() {
        let ticks = |values: &[f64]| Axis::along(values.iter().copied()).ticks();
        assert_eq!(ticks(&[4.0, 8.0]), [4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_eq!(ticks(&[0.5, 60.0])[0], 0.0);
        assert_eq!(ticks(&[3.0]).last(), Some(&3.0));
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.0, 0.5, 250.0, 9_000.0, 40_000.0, 1.5e6, 1e-5].map(label);
        assert_eq!(labels, ["0", "0.5", "250", "9000", "40 k", "1.5 M", "1e-5"]);
    }
}
