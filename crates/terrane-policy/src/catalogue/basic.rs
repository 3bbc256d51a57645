//! The default design, a design for each eagerness, and designs from the literature.

use super::entry::{Entry, plain};
use crate::design::Design;
use crate::strategy::Eagerness;

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "balanced",
        about: "flushes gather in level 0, deeper levels are one run and move table by table; Monkey's filters",
        source: "the default, see docs/papers/compaction.md; 1-leveling with the level sizes of RocksDB",
        design: || plain("1-leveling base=256MiB; filter=monkey(10); violation=spread"),
        row: None,
        beyond: "",
    },
    Entry {
        name: "leveling",
        about: "one run in every level, moving table by table: fewest runs to read, most rewriting",
        source: "compaction paper §3.1.2 (i), Table 2 LO+1",
        design: || Design::new(Eagerness::Leveling),
        row: None,
        beyond: "",
    },
    Entry {
        name: "leveling-full",
        about: "one run in every level, whole levels merged at once",
        source: "compaction paper §3.1.2 (i), Table 2 Full",
        design: || plain("leveling granularity=level"),
        row: None,
        beyond: "",
    },
    Entry {
        name: "1-leveling",
        about: "flushes gather in level 0, deeper levels are one run",
        source: "compaction paper §3.1.2 (iii)",
        design: || Design::new(Eagerness::OneLeveling),
        row: None,
        beyond: "",
    },
    Entry {
        name: "tiering",
        about: "every level gathers T runs before they are merged: least rewriting, most runs",
        source: "compaction paper §3.1.2 (ii), Table 2 Tier",
        // Levels that gather T runs need room for more than T runs before writers are stalled.
        design: || plain("tiering trigger=run-count; delay=20; stop=36"),
        row: None,
        beyond: "",
    },
    Entry {
        name: "lazy-leveling",
        about: "tiering with one run in the last level: cheap writes, cheap long scans",
        source: "compaction paper §3.1.2 (iv); Dostoevsky",
        design: || plain("lazy-leveling trigger=run-count; delay=20; stop=36"),
        row: None,
        beyond: "",
    },
    Entry {
        name: "dent",
        about: "the CS 265 tree: tiering by 10, buffer of 1000 pages that overwrites in place, half a filter bit per key",
        source: "Dent §1, §2",
        // b = 1000 pages of 4 KiB, an ordered buffer that overwrites in place, fanout f = 10, r = 0.5
        // filter bits per entry, three hash functions.
        design: || {
            plain(
                "tiering trigger=run-count; delay=20; stop=36; buffer=4000KiB; filter=0.5; probes=3; \
                 memtable=flodb(membuffer=0%,drain-threads=0)",
            )
        },
        row: None,
        beyond: "its tree has a fixed depth and refuses writes when full; here the tree grows; with a fanout of 2 a level of its tree holds two runs, here one",
    },
    Entry {
        name: "o-neil",
        about: "the classical tree: one run in every level; a full level is merged with all of the next",
        source: "O'Neil et al. 1996; compaction paper §3.2, first example",
        design: || {
            plain("leveling trigger=level-saturation; granularity=level; movement=none; filter=0")
        },
        row: None,
        beyond: "the rolling merge, which moves a little data at every write; components that are B-trees written in multi-page blocks",
    },
    Entry {
        name: "greedy-leveling",
        about: "whole levels; the smallest merge first, at most twice as many runs as levels, writers at full speed until then",
        source: "performance-stability §5.1.5, §5.2.1: greedy, a global limit of 2L, stop, two memtables of 128 MiB, T = 10",
        design: || {
            plain(
                "leveling T=10; trigger=level-saturation; granularity=level; movement=none; intake=exact; buffer=128MiB; filter=1%; buffers=1; limit=global(2x); scheduler=greedy",
            )
        },
        row: None,
        beyond: "",
    },
    Entry {
        name: "greedy-tiering",
        about: "levels of T runs; the smallest merge first, at most twice as many runs as expected, writers at full speed until then",
        source: "performance-stability §5.1.5, §5.2.1: greedy, a global limit of 2TL, stop, two memtables of 128 MiB, T = 3",
        design: || {
            plain(
                "tiering T=3 L0=3; trigger=run-count; granularity=run; movement=none; intake=exact; buffer=128MiB; filter=1%; buffers=1; limit=global(2x); scheduler=greedy",
            )
        },
        row: None,
        beyond: "",
    },
    Entry {
        name: "moose",
        about: "each level has its own capacity and number of runs; small levels grow fastest",
        source: "Moose (SIGMOD 2024): capacities and runs as vectors",
        design: || {
            plain(
                "hybrid T=4 L0=8; runs=7,5,3,last:1; growth=16,8,4; trigger=level-saturation+run-count; filter=monkey(10)",
            )
        },
        row: None,
        beyond: "the optimizer that computes the vectors from data size and workload: set its result as runs= and growth=",
    },
];
