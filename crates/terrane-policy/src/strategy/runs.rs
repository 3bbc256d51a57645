//! How many sorted runs levels may hold: one mechanism that covers every eagerness.
//!
//! The text form is a list of values for levels 1, 2, …, whose last value applies to all deeper
//! levels. The value for the deepest level in use follows `last:`. For example, `T-1,last:1` is
//! Dostoevsky's lazy leveling, and `4,last:2` its fluid tree with K = 4 and Z = 2 (Dostoevsky §4).
//! `T-1` stands for the size ratio of the level less one, which is tiering.
//!
//! Level 0, where flushes land, has its own setting.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;

/// The number of runs that a settled level may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunLimit {
    /// This many runs; at least 1.
    Fixed(u32),
    /// One less than the number of runs of the level above that fit: the level is tiered.
    Tiered,
}

/// The number of runs of each level from level 1 on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Runs {
    upper: Vec<RunLimit>,
    last: Option<RunLimit>,
}

impl Runs {
    /// Takes `first` for level 1 and `rest` for the next levels; the last of `rest` applies to all
    /// deeper levels. The deepest level in use has `last`, if given.
    pub fn new(
        first: RunLimit,
        rest: impl IntoIterator<Item = RunLimit>,
        last: Option<RunLimit>,
    ) -> Self {
        Self { upper: std::iter::once(first).chain(rest).collect(), last }
    }

    /// Returns the same value for all levels from level 1 on.
    pub fn all(count: RunLimit) -> Self {
        Self::new(count, [], None)
    }

    /// Returns the number of runs that `level`, from level 1 on, may hold if its ratio to the level
    /// above is `ratio`.
    pub(super) fn allowed(&self, level: usize, last_level: usize, ratio: u64) -> u32 {
        let index = level.saturating_sub(1).min(self.upper.len() - 1);
        let upper = self.upper.get(index).copied().unwrap_or(RunLimit::Fixed(1));
        let count = self.last.filter(|_| level >= last_level.max(1)).unwrap_or(upper);
        match count {
            RunLimit::Fixed(runs) => runs.max(1),
            RunLimit::Tiered => u32::try_from(ratio).unwrap_or(u32::MAX).saturating_sub(1).max(1),
        }
    }

    /// Returns all values, including the one for the deepest level.
    pub(crate) fn values(&self) -> impl Iterator<Item = RunLimit> {
        self.upper.iter().copied().chain(self.last)
    }
}

impl fmt::Display for RunLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(runs) => write!(f, "{runs}"),
            Self::Tiered => f.write_str("T-1"),
        }
    }
}

impl fmt::Display for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, count) in self.upper.iter().enumerate() {
            write!(f, "{}{count}", if index == 0 { "" } else { "," })?;
        }
        self.last.map_or(Ok(()), |last| write!(f, ",last:{last}"))
    }
}

impl FromStr for RunLimit {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        if text == "T-1" {
            return Ok(Self::Tiered);
        }
        let runs = text.parse().ok().filter(|runs| (1..=1000).contains(runs));
        runs.map(Self::Fixed).ok_or_else(|| ParseError::new("runs", text, "1 to 1000 runs, or T-1"))
    }
}

impl FromStr for Runs {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (mut upper, mut last) = (Vec::new(), None);
        for word in text.split(',').map(str::trim) {
            match word.strip_prefix("last:") {
                Some(count) if last.is_none() => last = Some(count.trim().parse()?),
                None if last.is_none() => upper.push(word.parse()?),
                _ => return Err(ParseError::new("runs", text, "'last:' once, at the end")),
            }
        }
        if upper.is_empty() {
            return Err(ParseError::new("runs", text, "a list such as '4,4,last:1'"));
        }
        Ok(Self { upper, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_follow_list_ratio_and_last_level() {
        let runs: Runs = "7,T-1,last:2".parse().unwrap();
        let at = |level| runs.allowed(level, 4, 5);
        assert_eq!([at(1), at(2), at(3), at(4)], [7, 4, 4, 2]);
        assert_eq!(runs.to_string(), "7,T-1,last:2");
        assert_eq!(runs.allowed(1, 0, 5), 2, "level 1 is the last one of an empty tree");
    }

    #[test]
    fn lists_without_sense_are_refused() {
        for text in ["", "0", "x", "last:1", "1,last:1,2", "1,last:1,last:2"] {
            assert!(text.parse::<Runs>().is_err(), "{text}");
        }
    }
}
