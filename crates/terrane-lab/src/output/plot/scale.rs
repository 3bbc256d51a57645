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
}

/// The approximate number of ticks on a linear axis.
const TICKS: f64 = 6.0;

impl Axis {
    /// Returns an axis that covers all `values`, starting at zero or at the power of ten below
    /// them.
    pub(super) fn over(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let usable = values.filter(|value| value.is_finite() && *value >= 0.0);
        match scale {
            Scale::Linear => {
                let high = usable.fold(0.0, f64::max);
                let step = step(high);
                let high = if high > 0.0 { (high / step).ceil() * step } else { 1.0 };
                Self { scale, low: 0.0, high }
            }
            Scale::Logarithmic => {
                let ends = usable.filter(|value| *value > 0.0);
                let (low, high) = ends.fold((f64::INFINITY, 0.0), |(low, high), value| {
                    (f64::min(low, value), f64::max(high, value))
                });
                let (low, high) = if low > high { (1.0, 10.0) } else { (low, high) };
                let low = 10f64.powf(low.log10().floor());
                Self { scale, low, high: 10f64.powf(high.log10().ceil()).max(low * 10.0) }
            }
        }
    }

    /// Returns a logarithmic axis from just below `low` to just above `high`.
    pub(super) fn powers(low: f64, high: f64) -> Self {
        let margin = (high / low).powf(0.04).max(1.05);
        Self { scale: Scale::Logarithmic, low: low / margin, high: high * margin }
    }

    /// Returns an axis from `low` to `high`.
    pub(super) fn exactly(low: f64, high: f64) -> Self {
        Self { scale: Scale::Linear, low, high: if high > low { high } else { low + 1.0 } }
    }

    /// Returns the position of a value, from 0 at the low end to 1 at the high end; `None` if the
    /// axis cannot show it.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let place = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => {
                (value.max(self.low) / self.low).log10() / (self.high / self.low).log10()
            }
        };
        place.is_finite().then(|| place.clamp(0.0, 1.0))
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
                (0..=decades).map(|decade| self.low * 10f64.powi(decade)).collect()
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
        assert_eq!(ticks, ["0.01", "0.1", "1", "10", "100", "1000"]);
        assert_eq!(axis.place(0.0), Some(0.0));
        assert_eq!(Axis::over(Scale::Linear, std::iter::empty()).ticks().last(), Some(&1.0));
        assert_eq!(Axis::exactly(0.0, 60.0).ticks().len(), 7);
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.0, 0.5, 250.0, 9_000.0, 40_000.0, 1.5e6, 1e-5].map(label);
        assert_eq!(labels, ["0", "0.5", "250", "9000", "40 k", "1.5 M", "1e-5"]);
    }
}
