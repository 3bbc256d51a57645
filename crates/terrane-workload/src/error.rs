//! What goes wrong: a text that names nothing, options without sense, an engine that failed.

use std::error::Error;
use std::fmt;

/// An error of the engine under test, and what it was asked to do.
#[derive(Debug)]
pub struct StoreError {
    /// What was asked of the engine, for example `put`.
    pub operation: &'static str,
    /// The engine's own error.
    pub source: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// An error of the engine while it carried out `operation`.
    pub fn new(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation, source: source.into() }
    }

    /// For `map_err`: turns an engine's error into one that says what it was asked to do.
    pub fn during<E: Into<Box<dyn Error + Send + Sync>>>(
        operation: &'static str,
    ) -> impl FnOnce(E) -> Self {
        move |source| Self::new(operation, source)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the engine failed to {}: {}", self.operation, self.source)
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// A text that could not be parsed, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// What was being read, for example `workload`.
    pub what: &'static str,
    /// The text that was not understood.
    pub found: String,
    /// What would have been accepted.
    pub expected: String,
}

impl ParseError {
    /// An error about `found` where `expected` was wanted.
    pub fn new(what: &'static str, found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self { what, found: found.into(), expected: expected.into() }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad {}: found '{}', expected {}", self.what, self.found, self.expected)
    }
}

impl Error for ParseError {}

/// An option whose value makes no sense, alone or beside the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionsError {
    /// The option, for example `key_size_bytes`.
    pub option: &'static str,
    /// What is wrong with it, and what would be right.
    pub reason: String,
}

impl OptionsError {
    /// An error about `option`.
    pub fn new(option: &'static str, reason: impl Into<String>) -> Self {
        Self { option, reason: reason.into() }
    }
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad option {}: {}", self.option, self.reason)
    }
}

impl Error for OptionsError {}

/// Why a run ended without a report.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The options make no sense; nothing was done.
    Options(OptionsError),
    /// The engine failed; the run was stopped.
    Store(StoreError),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(error) => error.fmt(f),
            Self::Store(error) => error.fmt(f),
        }
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Options(error) => Some(error),
            Self::Store(error) => Some(error),
        }
    }
}

impl From<OptionsError> for RunError {
    fn from(error: OptionsError) -> Self {
        Self::Options(error)
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn store_errors_say_what_was_asked_and_what_happened() {
        let failed: Result<(), &str> = Err("no space left");
        let error = failed.map_err(StoreError::during("put")).unwrap_err();
        assert_eq!(error.to_string(), "the engine failed to put: no space left");
        assert_eq!(RunError::from(error).to_string(), "the engine failed to put: no space left");
    }

    #[test]
    fn parse_errors_say_what_would_have_been_right() {
        let error = ParseError::new("workload", "fill", "one of fillseq, fillrandom");
        let text = "bad workload: found 'fill', expected one of fillseq, fillrandom";
        assert_eq!(error.to_string(), text);
    }
}
