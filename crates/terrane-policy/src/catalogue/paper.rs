//! The strategies that the compaction paper measures: the nine of its Table 2, and a tenth from its
//! journal version. All use the paper's setup (§5): size ratio 10, a buffer of 8 MiB, pages of 16
//! KiB, 10 filter bits per key, and compactions before writes (§4.1). In the strategies that level,
//! flushes merge into the first level at once, except in the tenth strategy. Table 2 gives level
//! saturation as Tier's trigger, but the paper's programs run a different one: `tier` is the
//! strategy that they ran, `tier-levels` the one in the table.

use super::entry::{Entry, plain};
use crate::design::Design;

const SET_UP: &str = "T=10; buffer=8MiB; table=8MiB; block=16KiB; filter=10; stall=full";

/// Returns a leveling strategy that moves one file at a time.
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
        "a full level merges as a whole into the next",
        "compaction paper, Table 2 Full",
        || {
            plain(&format!(
                "leveling {SET_UP}; trigger=level-saturation; granularity=level; movement=none"
            ))
        },
    ),
    entry(
        "lo+1",
        "a full level moves the table with least overlap in the next level",
        "compaction paper, Table 2 LO+1",
        || leveled("level-saturation", "least-overlap"),
    ),
    entry(
        "lo+2",
        "a full level moves the table with least overlap in the level after the next",
        "compaction paper, Table 2 LO+2",
        || leveled("level-saturation", "least-overlap-grandparent"),
    ),
    entry(
        "rr",
        "a full level moves its tables round-robin, in key order",
        "compaction paper, Table 2 RR",
        || leveled("level-saturation", "round-robin"),
    ),
    entry(
        "cold",
        "a full level moves the least recently read table",
        "compaction paper, Table 2 Cold; §3.1.4 (iv)",
        || leveled("level-saturation", "coldest"),
    ),
    entry(
        "cold-update",
        "a full level moves the least recently updated table",
        "compaction paper, Table 2 Cold as in its artifact: RocksDB's oldest largest sequence number",
        || leveled("level-saturation", "coldest-update"),
    ),
    entry(
        "old",
        "a full level moves the table with the oldest entry",
        "compaction paper, Table 2 Old",
        || leveled("level-saturation", "oldest"),
    ),
    entry(
        "tsd",
        "tables of at least half tombstones move first; a full level moves the one with most tombstones, or with least overlap",
        "compaction paper, Table 2 TSD",
        || leveled("tombstone-density(50)+level-saturation", "most-tombstones+least-overlap"),
    ),
    entry(
        "tsa",
        "tables whose tombstones are too old for their level move first; a full level moves such a table, or the one with least overlap",
        "compaction paper, Table 2 TSA; its artifact's threshold of 2250 s",
        || leveled("tombstone-ttl(2250s)+level-saturation", "expired-ttl+least-overlap"),
    ),
    entry(
        "tier",
        "the runs of the tree form one list and merge for space amplification, similar size or their number",
        "compaction paper, Table 2 Tier as it was run: RocksDB's universal compaction with its defaults (§3.2, §4.1)",
        || {
            plain(&format!(
                "tiering {SET_UP}; L0=4; trigger=universal(runs=4,space=200,ratio=1,min=2); granularity=run; movement=none; delay=20; stop=36"
            ))
        },
    ),
    entry(
        "tier-levels",
        "every level gathers T runs, which merge when the level is full",
        "compaction paper, Table 2 Tier as it is printed: textbook tiering; the paper ran tier",
        || {
            plain(&format!(
                "tiering {SET_UP}; L0=10; trigger=level-saturation; granularity=run; movement=none; delay=20; stop=36"
            ))
        },
    ),
    entry(
        "1-lvl",
        "the first level gathers T runs, deeper levels are one run and move table by table",
        "compaction paper, journal version: the tenth strategy",
        || {
            plain(&format!(
                "1-leveling {SET_UP}; L0=10; trigger=run-count,level-saturation; granularity=file; movement=least-overlap; delay=20; stop=36"
            ))
        },
    ),
];
