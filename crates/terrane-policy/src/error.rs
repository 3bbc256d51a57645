//! Errors for texts that are no valid design, shape or size.

use std::fmt;

use crate::suggest::hint;

/// A text that could not be parsed, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// The kind of value, for example `design` or `size`.
    pub what: &'static str,
    /// The part of the text that could not be parsed.
    pub found: String,
    /// The accepted values.
    pub expected: String,
}

impl ParseError {
    /// Returns an error for `found` in place of `expected`.
    pub fn new(what: &'static str, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { what, found: found.into(), expected: expected.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = &self.found;
        let what = match self.expected.starts_with("one of the keys ") {
            true => "setting",
            false => self.what,
        };
        match self.expected.starts_with("one of ") {
            true => write!(f, "unknown {what} '{found}'{}", hint(found, &self.expected)),
            false => write!(f, "bad {what}: found '{found}', expected {}", self.expected),
        }
    }
}

impl std::error::Error for ParseError {}
