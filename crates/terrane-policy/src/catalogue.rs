//! Named designs.
//!
//! | module | designs |
//! |---|---|
//! | `basic` | the default, and the usual design of each eagerness |
//! | `paper` | the nine strategies of the compaction paper's Table 2, and its tenth |
//! | `leveled`, `tiered` | the systems of its Table 1, by eagerness, with their own parameters |
//! | `separated` | systems that store values separately from their keys |
//!
//! A system's [`Row`] is its row in Table 1; its design is one configuration of that row, and
//! [`Entry::beyond`] says what the system does beyond it. Adding a design is one entry.

mod basic;
mod entry;
mod leveled;
mod paper;
mod separated;
#[cfg(test)]
mod tests;
mod tiered;

pub use entry::{Entry, Row};

/// The name of the default design.
pub const DEFAULT: &str = "balanced";

const PARTS: [&[Entry]; 5] = [basic::ALL, paper::ALL, leveled::ALL, tiered::ALL, separated::ALL];

const COUNT: usize =
    PARTS[0].len() + PARTS[1].len() + PARTS[2].len() + PARTS[3].len() + PARTS[4].len();

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

/// Returns the entry that has this name, now or formerly.
pub fn find(name: &str) -> Option<&'static Entry> {
    let name = if name == "values-apart" { "separated-values" } else { name };
    ALL.iter().find(|entry| entry.name == name)
}
