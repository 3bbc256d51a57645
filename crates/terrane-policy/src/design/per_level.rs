//! A value for each level; the last one applies to all deeper levels.

use std::fmt;
use std::str::FromStr;

use crate::error::ParseError;
use crate::text::split_outside;

/// A value for each level; never empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PerLevel<T> {
    values: Vec<T>,
}

impl<T> PerLevel<T> {
    /// Returns the same value for all levels.
    pub fn all(value: T) -> Self {
        Self { values: vec![value] }
    }

    /// Takes `first` for level 0 and `rest` for the next levels; the last of `rest` applies to all
    /// deeper levels.
    pub fn new(first: T, rest: impl IntoIterator<Item = T>) -> Self {
        Self { values: std::iter::once(first).chain(rest).collect() }
    }

    /// Returns a reference to the value for a level.
    pub fn at(&self, level: usize) -> &T {
        &self.values[level.min(self.values.len() - 1)]
    }

    /// Returns the values as given, beginning with the value for level 0.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}

impl<T> From<T> for PerLevel<T> {
    fn from(value: T) -> Self {
        Self::all(value)
    }
}

impl<T: Copy> PerLevel<T> {
    /// The value for a level.
    pub fn get(&self, level: usize) -> T {
        *self.at(level)
    }
}

impl<T: fmt::Display> fmt::Display for PerLevel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, value) in self.values.iter().enumerate() {
            write!(f, "{}{value}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl<T: FromStr> FromStr for PerLevel<T> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |word: &str| ParseError::new("value per level", word, "a list such as '10,10,8'");
        let values = split_outside(text, ',')
            .into_iter()
            .map(|word| word.parse().map_err(|_| bad(word)))
            .collect::<Result<Vec<T>, _>>()?;
        Ok(Self { values })
    }
}
