//! How to read a text, and the rows that are not entries.

use encoding_rs::Encoding;

use super::columns::Columns;

/// How to read a text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// The columns of keys, values and expiry times.
    pub columns: Columns,
    /// Whether the first row names the columns.
    pub header: Header,
    /// The byte between columns, instead of the tab or the comma.
    pub delimiter: Option<u8>,
    /// No escapes: backslashes of TSV and objects `{"hex":…}` of JSON lines are text.
    pub is_raw: bool,
    /// What to do with null.
    pub null: NullRule,
    /// The encoding; without it, a byte order mark decides.
    pub encoding: Option<&'static Encoding>,
    /// Lines to leave out at the beginning, before the header.
    pub skip_lines: u64,
    /// Returns only the entries that begin in this line or after it; the header before it is read.
    pub from_line: u64,
}

/// Whether the first row names the columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Header {
    /// If it is the header of a dump, or if columns are selected by name.
    #[default]
    Detect,
    /// It does.
    Present,
    /// It does not.
    Absent,
}

/// What to do with null: `\N` in TSV, `null` in JSON lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NullRule {
    /// Null is an error.
    #[default]
    Refuse,
    /// A null value is an empty value.
    Empty,
    /// A row with a null key or value is left out.
    Skip,
}

/// The result of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// An entry.
    Entry,
    /// The header.
    Header,
    /// A row that is left out because of a null.
    Null,
}

/// Rows of a text that are not entries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skipped {
    /// The line of the header.
    pub header_line: Option<u64>,
    /// Blank lines.
    pub blank_lines: u64,
    /// Rows that were left out because of a null.
    pub nulls: u64,
    /// Lines and entries before the line to begin with.
    pub earlier: u64,
    /// Entries with backslash escapes, which are not left out.
    pub escaped: u64,
    /// Lines that open a field with more than 1,000 line breaks, which are not left out.
    pub long_fields: Vec<u64>,
}

/// A row that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// The line in which the row begins, from 1.
    pub line: u64,
    /// What is wrong, and what to do.
    pub what: String,
}

impl std::fmt::Display for RowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl std::error::Error for RowError {}

impl NullRule {
    /// Returns the consequence of a null key.
    pub(super) fn key(self) -> Result<Taken, String> {
        match self {
            Self::Skip => Ok(Taken::Null),
            Self::Refuse | Self::Empty => Err(null_refused("key", "--null skip to skip the row")),
        }
    }

    /// Returns the consequence of a null value.
    pub(super) fn value(self) -> Result<Taken, String> {
        match self {
            Self::Skip => Ok(Taken::Null),
            Self::Empty => Ok(Taken::Entry),
            Self::Refuse => Err(null_refused(
                "value",
                "--null empty to store an empty value, or --null skip to skip the row",
            )),
        }
    }
}

fn null_refused(part: &str, remedy: &str) -> String {
    format!("the {part} is null; add {remedy}")
}
