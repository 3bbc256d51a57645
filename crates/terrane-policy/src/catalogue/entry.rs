//! The entry of a design in the catalogue.

use crate::design::Design;
use crate::strategy::Eagerness;

/// A named design.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Entry {
    /// The name that users type after `--design`.
    pub name: &'static str,
    /// What the design is, in a sentence.
    pub about: &'static str,
    /// Where the design comes from.
    pub source: &'static str,
    /// The design.
    pub design: fn() -> Design,
    /// The system's row in Table 1 of the compaction paper, if it has one.
    pub row: Option<Row>,
    /// Features of the real system that its design here lacks; empty if none.
    pub beyond: &'static str,
}

/// A row of Table 1 of the compaction paper: for each primitive, all values that the paper lists
/// for the system, in their text forms, separated by spaces. `none` stands for "N/A" in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Row {
    /// Eagerness.
    pub eagerness: &'static str,
    /// Triggers.
    pub triggers: &'static str,
    /// Granularities.
    pub granularity: &'static str,
    /// Data movement.
    pub movement: &'static str,
}

/// Parses a text that begins with an eagerness. A test parses all texts of the catalogue.
pub(super) fn plain(text: &str) -> Design {
    Design::plain(text).unwrap_or_else(|_| Design::new(Eagerness::Leveling))
}
