//! Designs with names.
//!
//! | module | designs |
//! |---|---|
//! | `basic` | the default, and the usual design of each eagerness |
//! | `paper` | the nine strategies of the compaction paper's Table 2, and its tenth |
//! | `leveled`, `tiered` | the systems of its Table 1, by eagerness, with the parameters that they have themselves |
//!
//! A system's [`Row`] is what Table 1 says of it; its design is one configuration of that row, and
//! [`Entry::beyond`] says what the system does that is not in it. Adding a design is one entry.

mod basic;
mod leveled;
mod paper;
#[cfg(test)]
mod tests;
mod tiered;

use crate::design::Design;
use crate::strategy::Eagerness;

/// A design with a name.
#[derive(Debug, Clone, Copy)]
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

/// The name of the design that a tree has unless another one is asked for.
pub const DEFAULT: &str = "balanced";

const PARTS: [&[Entry]; 4] = [basic::ALL, paper::ALL, leveled::ALL, tiered::ALL];

const COUNT: usize = PARTS[0].len() + PARTS[1].len() + PARTS[2].len() + PARTS[3].len();

/// All named designs.
pub const ALL: &[Entry] = &{
    let mut all = [basic::ALL[0]; COUNT];
    let (mut part, mut count) = (0, 0);
    while part < PARTS.len() {
        let mut at = 0;
        while at < PARTS[part].len() {
            all[count] = PARTS[part][at];
            (at, count) = (at + 1, count + 1);
        }
        part += 1;
    }
    all
};

/// The entry of a name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

/// The design of a text that begins with an eagerness. A test parses all texts of the catalogue.
fn plain(text: &str) -> Design {
    Design::plain(text).unwrap_or_else(|_| Design::new(Eagerness::Leveling))
}
