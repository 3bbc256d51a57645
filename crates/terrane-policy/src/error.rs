//! Errors for text that is not a valid design, shape or size.

use std::fmt;

use crate::suggest::hint;

/// Why a text could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// The text does not have the expected form, or its value is out of range.
    Malformed,
    /// The text is not a name that this kind of value accepts.
    UnknownName,
    /// The text is not the name of a design.
    UnknownDesign,
    /// The text is not the key of a setting.
    UnknownSetting,
}

/// A text that could not be parsed, and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParseError {
    /// Why it could not be parsed.
    pub kind: ParseErrorKind,
    /// The kind of value, for example `design` or `size`.
    pub what: &'static str,
    /// The part of the text that could not be parsed.
    pub found: String,
    /// The accepted values.
    pub expected: String,
}

impl ParseError {
    /// Returns an error that says that `found` was given where `expected` is required.
    pub fn new(what: &'static str, found: impl Into<String>, expected: impl Into<String>) -> Self {
        let (found, expected) = (found.into(), expected.into());
        Self { kind: ParseErrorKind::Malformed, what, found, expected }
    }

    /// Returns an error that says that `found` is not in the list `names`.
    pub(crate) fn unknown_name(what: &'static str, found: &str, names: &str) -> Self {
        let expected = format!("one of {names}");
        Self { kind: ParseErrorKind::UnknownName, ..Self::new(what, found, expected) }
    }

    pub(crate) fn unknown_design(found: &str, names: &str) -> Self {
        let error = Self::unknown_name("design", found, names);
        Self { kind: ParseErrorKind::UnknownDesign, ..error }
    }

    pub(crate) fn unknown_setting(found: &str, keys: &str) -> Self {
        let expected = format!("one of the keys {keys}");
        Self { kind: ParseErrorKind::UnknownSetting, ..Self::new("design", found, expected) }
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, what, found, expected } = self;
        let what = match kind {
            ParseErrorKind::Malformed => {
                return write!(f, "bad {what}: found '{found}', expected {expected}");
            }
            ParseErrorKind::UnknownName | ParseErrorKind::UnknownDesign => what,
            ParseErrorKind::UnknownSetting => "setting",
        };
        write!(f, "unknown {what} '{found}'{}", hint(found, expected))
    }
}

impl std::error::Error for ParseError {}

#[cfg(test)]
mod tests {
    use super::ParseErrorKind;
    use crate::design::Design;

    #[test]
    fn kinds_tell_names_from_values() {
        for (text, kind, message) in [
            ("levling", ParseErrorKind::UnknownDesign, "unknown design 'levling'"),
            ("leveling; triger=x", ParseErrorKind::UnknownSetting, "unknown setting 'triger'"),
            ("leveling; trigger=x", ParseErrorKind::UnknownName, "unknown trigger 'x'"),
            ("leveling; T=x", ParseErrorKind::Malformed, "bad design: found 'T=x'"),
        ] {
            let error = text.parse::<Design>().unwrap_err();
            assert_eq!(error.kind, kind, "{text}");
            assert!(error.to_string().starts_with(message), "{error}");
        }
    }
}
