//! The strategies that the compaction paper measures: its Table 2, and the tenth of its journal
//! version. All have its set-up (§5): size ratio 10, a buffer of 8 MiB, pages of 16 KiB, 10 filter
//! bits per key, pure leveling with one run at most in the first level, and compactions before
//! writes (§4.1).

use super::entry::{Entry, plain};
use crate::design::Design;

const SET_UP: &str = "T=10; buffer=8MiB; table=8MiB; block=16KiB; filter=10; stall=full";

/// A leveled strategy of one file at a time, by its triggers and its movement.
fn leveled(triggers: &str, movement: &str) -> Design {
    plain(&format!("leveling {SET_UP}; trigger={triggers}; granularity=file; movement={movement}"))
}

const fn entry(
    name: &'static str,
    about: &'static str,
    source: &'static str,
    design: fn() -> Design,
) -> Entry {
    Entry { name, about, source, design, row: None, beyond: "" }
}

pub(super) const ALL: &[Entry] = &[
    entry(
        "full",
        "whole levels merge into the next when they are full; writers wait until it is done",
        "compaction paper, Table 2 Full",
        || {
            plain(&format!(
                "leveling {SET_UP}; trigger=level-saturation; granularity=level; movement=none"
            ))
        },
    ),
    entry(
        "lo+1",
        "of a full level, the table that overlaps the next level least moves",
        "compaction paper, Table 2 LO+1",
        || leveled("level-saturation", "least-overlap"),
    ),
    entry(
        "lo+2",
        "of a full level, the table that overlaps the level after the next least moves",
        "compaction paper, Table 2 LO+2",
        || leveled("level-saturation", "least-overlap-grandparent"),
    ),
    entry(
        "rr",
        "of a full level, tables move in turn, in key order",
        "compaction paper, Table 2 RR",
        || leveled("level-saturation", "round-robin"),
    ),
    entry(
        "cold",
        "of a full level, the table that was read least recently moves",
        "compaction paper, Table 2 Cold; §3.1.4 (iv)",
        || leveled("level-saturation", "coldest"),
    ),
    entry(
        "cold-update",
        "of a full level, the table that was written to least recently moves",
        "compaction paper, Table 2 Cold as its artifact has it: RocksDB's oldest largest sequence number",
        || leveled("level-saturation", "coldest-update"),
    ),
    entry(
        "old",
        "of a full level, the table with the oldest entry moves",
        "compaction paper, Table 2 Old",
        || leveled("level-saturation", "oldest"),
    ),
    entry(
        "tsd",
        "tables full of tombstones move first; of a full level, the one with most, or with least overlap",
        "compaction paper, Table 2 TSD",
        || leveled("tombstone-density(50)+level-saturation", "most-tombstones+least-overlap"),
    ),
    entry(
        "tsa",
        "tables whose tombstones are too old for their level move first; of a full level, those or the one with least overlap",
        "compaction paper, Table 2 TSA; its artifact's threshold of 2250 s",
        || leveled("tombstone-ttl(2250s)+level-saturation", "expired-ttl+least-overlap"),
    ),
    entry(
        "tier",
        "every level gathers T runs, which merge when the level is full",
        "compaction paper, Table 2 Tier; its text has space amplification as the trigger: see rocksdb-tiering",
        || {
            plain(&format!(
                "tiering {SET_UP}; L0=10; trigger=level-saturation; granularity=run; movement=none; delay=20; stop=36"
            ))
        },
    ),
    entry(
        "1-lvl",
        "the first level gathers T runs, deeper levels are one run, moved table by table",
        "compaction paper, journal version: the tenth strategy",
        || {
            plain(&format!(
                "1-leveling {SET_UP}; L0=10; trigger=run-count,level-saturation; granularity=file; movement=least-overlap; delay=20; stop=36"
            ))
        },
    ),
];
