//! The number of filter bits for each level.

use std::borrow::Cow;

use super::{Design, PerLevel};
use crate::allocation::{LevelLoad, bits_for_rate, filter_bits};
use crate::error::ParseError;
use crate::text::call;

/// How filter bits are allocated to levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FilterAllocation {
    /// The design gives the bits for each level.
    Given,
    /// The given bits are an average, which is allocated to minimize the cost of looking up a
    /// missing key (Monkey §4).
    Monkey,
}

impl FilterAllocation {
    /// Parses `10`, `20,10,5` or `monkey(10)`; a false positive rate such as `1%` may stand for the
    /// bits.
    pub(super) fn parse(text: &str) -> Result<(PerLevel<f64>, Self), ParseError> {
        match call(text)? {
            ("monkey", Some(bits)) => {
                let bits: f64 = in_bits(bits.trim())?.parse().map_err(|_| {
                    ParseError::new("filter", text, "average bits per key, as in monkey(10)")
                })?;
                Ok((PerLevel::all(bits), Self::Monkey))
            }
            _ => {
                let levels = text.split(',').map(|level| in_bits(level.trim()));
                let bits = levels.collect::<Result<Vec<_>, _>>()?.join(",");
                Ok((bits.parse()?, Self::Given))
            }
        }
    }
}

/// Converts a false positive rate such as `1%` to the bits per key that achieve it; returns any
/// other text unchanged.
fn in_bits(text: &str) -> Result<Cow<'_, str>, ParseError> {
    let Some(percent) = text.strip_suffix('%') else { return Ok(text.into()) };
    let percent: f64 = percent.trim().parse().unwrap_or(f64::NAN);
    if !(1e-9..=100.0).contains(&percent) {
        return Err(ParseError::new(
            "filter",
            text,
            "a share of missing keys above 0 %, such as 1%",
        ));
    }
    // The bits are rounded up to a tenth of a bit, the resolution of filters, so that the rate is
    // not exceeded.
    let tenths = (10.0 * bits_for_rate(percent / 100.0) - 1e-9).ceil();
    // The larger one of the two zeros is either, and -0 would be printed.
    let tenths = if tenths > 0.0 { tenths } else { 0.0 };
    Ok((tenths / 10.0).to_string().into())
}

impl Design {
    /// Returns the filter bits per key for new tables of a level, if `last_level` is the deepest
    /// level in use.
    pub fn filter_bits_at(&self, level: usize, last_level: usize) -> f64 {
        let bits = self.filter_bits.get(level);
        if self.filter_allocation == FilterAllocation::Given {
            return bits;
        }
        let last_level = last_level.max(level).max(1);
        let loads: Vec<LevelLoad> = (0..=last_level)
            .map(|level| LevelLoad {
                keys: self.capacity_bytes(level, last_level) as f64,
                runs: f64::from(self.strategy.runs_allowed(level, last_level).max(1)),
            })
            .collect();
        filter_bits(bits, &loads).get(level).copied().unwrap_or(bits)
    }

    pub(super) fn filters_text(&self) -> String {
        match self.filter_allocation {
            FilterAllocation::Given => self.filter_bits.to_string(),
            FilterAllocation::Monkey => format!("monkey({})", self.filter_bits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_false_positive_rate_stands_for_bits() {
        for (given, bits) in
            [("1%", "9.6"), ("10,1%, 100%", "10,9.6,0"), ("monkey(0.1%)", "monkey(14.4)")]
        {
            let design: Design = format!("leveling; filter={given}").parse().unwrap();
            assert_eq!(design.filters_text(), bits, "{given}");
        }
        for wrong in ["%", "0%", "101%", "-1%", "x%", "monkey(%)"] {
            assert!(format!("leveling; filter={wrong}").parse::<Design>().is_err(), "{wrong}");
        }
    }
}
