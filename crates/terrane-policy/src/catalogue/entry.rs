//! What the catalogue says of a design.

use crate::design::Design;
use crate::strategy::Eagerness;

/// A design with a name.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Entry {
    /// The name, as typed after `--design`.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The design.
    pub design: fn() -> Design,
    /// What Table 1 of the compaction paper says of the system, if it is one of those.
    pub row: Option<Row>,
    /// What the real system does beyond its design here; empty if nothing is known to be missing.
    pub beyond: &'static str,
}

/// A row of Table 1 of the compaction paper: every value of a primitive that a system is said to
/// have, by the names of text forms and with spaces between. `none` is the table's N/A.
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

/// The design of a text that begins with an eagerness. A test parses all texts of the catalogue.
pub(super) fn plain(text: &str) -> Design {
    Design::plain(text).unwrap_or_else(|_| Design::new(Eagerness::Leveling))
}
