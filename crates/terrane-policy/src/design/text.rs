//! The text form of a design and of its parts. See [`crate::design`].

use std::fmt::{self, Display};
use std::str::FromStr;

use super::{Compression, Design};
use crate::error::ParseError;
use crate::text::split_outside;

/// Keys that are printed in the first part, after the eagerness.
const FIRST_PART: [&str; 3] = ["T", "L0", "base"];

impl Display for Design {
    /// Every choice, in the form that parses back to the same design.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let settings = self.settings();
        let settings = settings.iter().map(|(key, value)| (*key, value.as_str()));
        f.write_str(&joined(&self.strategy.eagerness.to_string(), settings))
    }
}

/// Returns a name and its settings as text.
pub(super) fn joined<'a>(name: &str, settings: impl Iterator<Item = Setting<'a>>) -> String {
    let mut text = name.to_owned();
    for (key, value) in settings {
        let separator = if FIRST_PART.contains(&key) { " " } else { "; " };
        text.extend([separator, key, "=", value]);
    }
    text
}

impl FromStr for Design {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (name, settings) = parts(text)?;
        Self::from_settings(name, settings)
    }
}

/// A key and its value.
type Setting<'a> = (&'a str, &'a str);

/// Splits a text into its first word and its settings.
pub(super) fn parts(text: &str) -> Result<(&str, Vec<Setting<'_>>), ParseError> {
    let parts = split_outside(text, ';');
    let mut words = parts.first().copied().unwrap_or("").split_whitespace();
    let name = words.next().unwrap_or("");
    let given = words.chain(parts.iter().skip(1).copied());
    let settings = given.filter(|setting| !setting.is_empty()).map(|setting| {
        let (key, value) = setting.split_once('=').ok_or_else(|| {
            ParseError::new("design", setting, "settings such as 'T=10' or 'filter=10'")
        })?;
        Ok((key.trim(), value.trim()))
    });
    Ok((name, settings.collect::<Result<_, ParseError>>()?))
}

impl FromStr for Compression {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text {
            "none" => Ok(Self::None),
            "lz4" => Ok(Self::Lz4),
            "zstd" => Ok(Self::Zstd),
            _ => Err(ParseError::new("compression", text, "none, lz4 or zstd")),
        }
    }
}
