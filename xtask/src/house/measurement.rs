//! Values that have limits.

use std::fmt;

/// The kind of value that a limit applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rule {
    FileLines,
    FunctionLines,
    CycleFiles,
    TypeMethods,
    VoiceMarkers,
}

impl Rule {
    pub(super) const ALL: [Self; 5] = [
        Self::FileLines,
        Self::FunctionLines,
        Self::CycleFiles,
        Self::TypeMethods,
        Self::VoiceMarkers,
    ];

    /// Returns the name in `house.toml`.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::FileLines => "file_lines",
            Self::FunctionLines => "function_lines",
            Self::CycleFiles => "cycle_files",
            Self::TypeMethods => "type_methods",
            Self::VoiceMarkers => "voice_markers",
        }
    }

    fn unit(self) -> &'static str {
        match self {
            Self::FileLines => "lines of production code",
            Self::FunctionLines => "lines",
            Self::CycleFiles => "files import each other",
            Self::TypeMethods => "methods",
            Self::VoiceMarkers => "markers per 10,000 words",
        }
    }
}

/// A value that has a limit.
#[derive(Debug, Clone)]
pub(super) struct Measurement {
    pub rule: Rule,
    /// The name of the exception: a file, a function or a type with its file, or a kind of prose.
    pub subject: String,
    pub value: f64,
    /// A file with a line, or the scope of the value.
    pub place: String,
    /// Further lines for `--list`.
    pub details: Vec<String>,
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.subject.rsplit_once("::").map_or("", |(_, name)| name);
        let space = if name.is_empty() { "" } else { " " };
        write!(f, "{}: {name}{space}{} {}", self.place, self.value, self.rule.unit())
    }
}
