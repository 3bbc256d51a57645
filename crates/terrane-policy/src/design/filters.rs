//! How many filter bits each level has.

use super::{Design, PerLevel};
use crate::allocation::{LevelLoad, filter_bits};
use crate::error::ParseError;
use crate::text::call;

/// How filter bits come to levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FilterAllocation {
    /// Each level has the bits that are given for it.
    Given,
    /// The bits given are an average, shared out so that a lookup of a missing key costs least
    /// (Monkey §4).
    Monkey,
}

impl FilterAllocation {
    /// Parses `10`, `20,10,5` or `monkey(10)`.
    pub(super) fn parse(text: &str) -> Result<(PerLevel<f64>, Self), ParseError> {
        match call(text)? {
            ("monkey", Some(bits)) => {
                let bits: f64 = bits.trim().parse().map_err(|_| {
                    ParseError::new("filter", text, "average bits per key, as in monkey(10)")
                })?;
                Ok((PerLevel::all(bits), Self::Monkey))
            }
            _ => Ok((text.parse()?, Self::Given)),
        }
    }
}

impl Design {
    /// Filter bits per key for new tables of a level, where `last_level` is the deepest level in
    /// use.
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
