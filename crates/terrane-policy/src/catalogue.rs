//! Designs with names. Adding one is one line in [`ALL`].

use crate::design::{Design, PerLevel};
use crate::strategy::{Eagerness, Granularity, Trigger};

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
}

/// The name of the design that a tree has unless another one is asked for.
pub const DEFAULT: &str = "balanced";

/// All named designs.
pub const ALL: &[Entry] = &[
    Entry {
        name: "balanced",
        about: "flushes gather in level 0, deeper levels are one run, moved table by table",
        source: "the default; 1-leveling with the level sizes of RocksDB",
        design: balanced,
    },
    Entry {
        name: "leveling",
        about: "one run in every level, moved table by table: fewest runs to read, most rewriting",
        source: "compaction paper §3.1.2 (i), Table 2 LO+1",
        design: || Design::new(Eagerness::Leveling),
    },
    Entry {
        name: "leveling-full",
        about: "one run in every level, whole levels merged at once",
        source: "compaction paper §3.1.2 (i), Table 2 Full",
        design: leveling_full,
    },
    Entry {
        name: "1-leveling",
        about: "flushes gather in level 0, deeper levels are one run",
        source: "compaction paper §3.1.2 (iii)",
        design: || Design::new(Eagerness::OneLeveling),
    },
    Entry {
        name: "tiering",
        about: "every level gathers T runs before they are merged: least rewriting, most runs",
        source: "compaction paper §3.1.2 (ii), Table 2 Tier",
        design: || tiered(Eagerness::Tiering),
    },
    Entry {
        name: "lazy-leveling",
        about: "tiering with one run in the last level: cheap writes, cheap long scans",
        source: "compaction paper §3.1.2 (iv); Dostoevsky",
        design: || tiered(Eagerness::LazyLeveling),
    },
    Entry {
        name: "dent",
        about: "the CS 265 tree: tiering by 10, buffer of 1000 pages, half a filter bit per key",
        source: "Dent §1, §2",
        design: dent,
    },
];

/// The entry of a name.
pub fn find(name: &str) -> Option<&'static Entry> {
    ALL.iter().find(|entry| entry.name == name)
}

fn balanced() -> Design {
    let mut design = Design::new(Eagerness::OneLeveling);
    design.strategy.base_bytes = Some(256 << 20);
    design
}

fn leveling_full() -> Design {
    let mut design = Design::new(Eagerness::Leveling);
    design.strategy.granularity = Granularity::Level;
    design
}

/// Levels that gather T runs need room for more before writers are held up.
fn tiered(eagerness: Eagerness) -> Design {
    let mut design = Design::new(eagerness);
    design.strategy.triggers = vec![Trigger::RunCount];
    design.constraint.delay_runs = 20;
    design.constraint.stop_runs = 36;
    design
}

/// Dent §1: buffer of b = 1000 pages of 4 KiB, fanout f = 10, r = 0.5 filter bits per entry.
fn dent() -> Design {
    let mut design = tiered(Eagerness::Tiering);
    design.buffer_bytes = 1000 * 4096;
    design.filter_bits = PerLevel::all(0.5);
    design
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_default_is_there() {
        let mut names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(find(DEFAULT).is_some());
    }

    #[test]
    fn all_designs_are_valid() {
        for entry in ALL {
            assert_eq!((entry.design)().validate(), Ok(()), "{}", entry.name);
        }
    }
}
