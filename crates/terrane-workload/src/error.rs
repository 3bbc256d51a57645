//! Errors: unknown names, invalid options and failures of the engine.

use std::error::Error;
use std::fmt;

/// An error of the engine under test, with the operation that failed.
#[derive(Debug)]
pub struct StoreError {
    /// The operation, for example `put`.
    pub operation: &'static str,
    /// The engine's own error.
    pub source: Box<dyn Error + Send + Sync>,
}

impl StoreError {
    /// Returns an error in `operation`.
    pub fn new(operation: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { operation, source: source.into() }
    }

    /// Returns a function for `map_err` that adds the operation to an engine's error.
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

/// A text that cannot be parsed, with the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// The kind of value, for example `workload`.
    pub what: &'static str,
    /// The rejected text.
    pub found: String,
    /// The accepted texts.
    pub expected: String,
}

impl ParseError {
    /// Returns an error that says that `found` is not one of the `expected` texts.
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

/// An option whose value is invalid, by itself or in combination with other options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionsError {
    /// The option, for example `key_size_bytes`.
    pub option: &'static str,
    /// The problem, and the accepted values.
    pub reason: String,
}

impl OptionsError {
    /// Returns an error about `option`.
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

/// The reason why a run has no report.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// The options are invalid; no operation was executed.
    Options(OptionsError),
    /// The engine failed, which stopped the run.
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
    fn store_errors_name_the_operation_and_the_cause() {
        let failed: Result<(), &str> = Err("no space left");
        let error = failed.map_err(StoreError::during("put")).unwrap_err();
        assert_eq!(error.to_string(), "the engine failed to put: no space left");
        assert_eq!(RunError::from(error).to_string(), "the engine failed to put: no space left");
    }

    #[test]
    fn parse_errors_list_the_accepted_texts() {
        let error = ParseError::new("workload", "fill", "one of fillseq, fillrandom");
        let text = "bad workload: found 'fill', expected one of fillseq, fillrandom";
        assert_eq!(error.to_string(), text);
    }
}
