//! Systems of the compaction paper's Table 1 that apply leveling to all or most of their levels.
//!
//! In LevelDB and its descendants, the number of files decides whether level 0 is full, and bytes
//! decide for deeper levels: `trigger=run-count,level-saturation`.

use super::entry::{Entry, Row, plain};

const LEVELDB: &str = "T=10 L0=4 base=10MiB; trigger=run-count,level-saturation; granularity=file(expand=25); buffer=4MiB; table=2MiB; block=4KiB; delay=8; stop=12; violation=slow-down; buffers=2";
const ROCKSDB: &str = "T=10 L0=4 base=256MiB; granularity=file(expand=50,move=4); movement=least-overlap; buffer=64MiB; table=64MiB; block=4KiB; delay=20; stop=36; violation=slow-down; buffers=2";

const ONE_RUN_PER_LEVEL: &str = "leveling";
const SATURATION: &str = "level-saturation";
const FILES: &str = "file files";

const ROCKSDB_ROW: Row = Row {
    eagerness: "leveling 1-leveling",
    triggers: "level-saturation file-staleness",
    granularity: FILES,
    movement: "least-overlap coldest oldest most-tombstones",
};

const LEVELDB_ROW: Row = Row {
    eagerness: ONE_RUN_PER_LEVEL,
    triggers: SATURATION,
    granularity: "file",
    movement: "round-robin least-overlap least-overlap-grandparent",
};

const SILK_ROW: Row = Row {
    eagerness: ONE_RUN_PER_LEVEL,
    triggers: SATURATION,
    granularity: FILES,
    movement: "round-robin",
};

pub(super) const WHOLE_LEVELS: Row = Row {
    eagerness: ONE_RUN_PER_LEVEL,
    triggers: SATURATION,
    granularity: "level",
    movement: "none",
};

const BLSM_ROW: Row = Row { granularity: "file", ..SILK_ROW };

const XENGINE_ROW: Row = Row {
    eagerness: "hybrid",
    triggers: SATURATION,
    granularity: FILES,
    movement: "least-overlap most-tombstones",
};

const CASSANDRA_ROW: Row = Row {
    eagerness: ONE_RUN_PER_LEVEL,
    triggers: "level-saturation tombstone-ttl",
    granularity: FILES,
    movement: "least-overlap most-tombstones expired-ttl",
};

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "rocksdb-leveling",
        about: "flushes gather in the first level; the table with least overlap moves down, and stale tables as well",
        source: "RocksDB, level compaction with its defaults; files older than 30 days move",
        design: || {
            plain(&format!(
                "1-leveling {ROCKSDB}; trigger=run-count,level-saturation+file-staleness(30d); tombstone-weight=2"
            ))
        },
        row: Some(ROCKSDB_ROW),
        beyond: "compactions within level 0, limits on pending bytes, ties of overlap by key; dynamic level bytes are growth=dynamic, subcompactions are the option merge_threads; RocksDB has filters only on request, here they have 10 bits",
    },
    Entry {
        name: "monkey-leveling",
        about: "RocksDB's leveling with Monkey's allocation of filter memory",
        source: "Monkey (SIGMOD 2017) §4, leveling",
        design: || {
            plain(&format!(
                "1-leveling {ROCKSDB}; trigger=run-count,level-saturation; filter=monkey(10)"
            ))
        },
        row: Some(ROCKSDB_ROW),
        beyond: "tuning of size ratio, eagerness and buffer to a workload",
    },
    Entry {
        name: "leveldb",
        about: "flushes gather four at a time, then tables move down round-robin",
        source: "LevelDB with its defaults",
        design: || plain(&format!("leveling {LEVELDB}; movement=round-robin-within; filter=0")),
        row: Some(LEVELDB_ROW),
        beyond: "flushes that go directly to level 2 if nothing overlaps; seek compaction, which trigger=read-triggered(16KiB) resembles; tables are cut by their overlap with the grandparent here too",
    },
    Entry {
        name: "monkey-j",
        about: "LevelDB with Monkey's allocation of filter memory",
        source: "Monkey (TODS 2018), on LevelDB",
        design: || plain(&format!("leveling {LEVELDB}; movement=least-overlap; filter=monkey(10)")),
        row: Some(LEVELDB_ROW),
        beyond: "tuning of size ratio, eagerness and buffer to a workload",
    },
    Entry {
        name: "lethe",
        about: "tables whose tombstones are too old for their level move first",
        source: "Lethe (SIGMOD 2020): FADE",
        design: || {
            plain(&format!(
                "leveling {ROCKSDB}; L0=1; trigger=tombstone-ttl(1h)+level-saturation; granularity=file; movement=expired-ttl+least-overlap"
            ))
        },
        row: Some(Row {
            eagerness: ONE_RUN_PER_LEVEL,
            triggers: "level-saturation tombstone-ttl",
            granularity: FILES,
            movement: "least-overlap expired-ttl",
        }),
        beyond: "delete tiles within tables for deletes by a second key (KiWi); sizes that count invalidated entries; here the age of a tombstone counts from the delete",
    },
    Entry {
        name: "silk",
        about: "leveling with tables moved round-robin",
        source: "SILK (ATC 2019), on RocksDB",
        design: || {
            plain(&format!(
                "leveling {ROCKSDB}; trigger=run-count,level-saturation; movement=round-robin"
            ))
        },
        row: Some(SILK_ROW),
        beyond: "priority of level 0 compactions over deeper ones, which it preempts (here scheduler=greedy preempts larger ones); spare bandwidth for compactions is the option io_budget=leftover(RATE), and flushes have priority here too",
    },
    Entry {
        name: "silk+",
        about: "leveling with tables moved round-robin, several at a time",
        source: "SILK+ (TOCS 2020), on RocksDB",
        design: || {
            plain(&format!(
                "leveling {ROCKSDB}; trigger=run-count,level-saturation; granularity=files(4); movement=round-robin"
            ))
        },
        row: Some(SILK_ROW),
        beyond: "as silk, and its handling of different kinds of requests",
    },
    Entry {
        name: "hyperleveldb",
        about: "LevelDB, but the table with least overlap moves",
        source: "HyperLevelDB",
        design: || plain(&format!("leveling {LEVELDB}; movement=least-overlap; filter=0")),
        row: Some(LEVELDB_ROW),
        beyond: "its source moves the contiguous set of tables with the best ratio of size to overlap, not one table; concurrent writes to the log",
    },
    Entry {
        name: "cassandra-leveling",
        about: "one run in every level of large tables, moved several at a time, tombstones first",
        source: "Apache Cassandra, leveled compaction: tables of 160 MiB, fanout 10, 10 % false positives, gc_grace 10 days",
        design: || {
            plain(
                "leveling T=10 L0=4; trigger=run-count,tombstone-ttl(10d)+level-saturation; granularity=files(4); movement=expired-ttl+most-tombstones+least-overlap; buffer=64MiB; table=160MiB; filter=10%; delay=32; stop=64",
            )
        },
        row: Some(CASSANDRA_ROW),
        beyond: "size-tiered compaction of a level 0 that falls behind; tombstones kept for gc_grace, here they are dropped as soon as possible; compaction of single tables by their ratio of droppable tombstones",
    },
    Entry {
        name: "scylladb-leveling",
        about: "one run in every level of large tables, moved several at a time, tombstones first",
        source: "ScyllaDB, leveled compaction: tables of 160 MiB, fanout 10, 10 % false positives, gc_grace 10 days",
        design: || {
            plain(
                "leveling T=10 L0=4; trigger=run-count,tombstone-ttl(10d)+level-saturation; granularity=files(4); movement=expired-ttl+least-overlap; buffer=64MiB; table=160MiB; filter=10%; delay=32; stop=64",
            )
        },
        row: Some(CASSANDRA_ROW),
        beyond: "one shard per core; the backlog controller, which sets the share of time for compactions",
    },
    Entry {
        name: "x-engine",
        about: "flushes gather in the first level, then several tables move down, those with most tombstones first",
        source: "X-Engine (SIGMOD 2019)",
        design: || {
            plain(
                "hybrid T=10 L0=4 base=256MiB; runs=1; trigger=run-count,level-saturation; granularity=files(4); movement=most-tombstones+least-overlap; table=2MiB; block=16KiB; delay=20; stop=36; violation=slow-down",
            )
        },
        row: Some(XENGINE_ROW),
        beyond: "extents of 2 MiB that compactions reuse without rewriting; merging on FPGAs; compactions within level 0",
    },
    Entry {
        name: "leaper",
        about: "X-Engine's compactions with table choice by overlap alone",
        source: "Leaper (VLDB 2020), on X-Engine",
        design: || {
            plain(
                "hybrid T=10 L0=4 base=256MiB; runs=1; trigger=run-count,level-saturation; granularity=files(4); movement=least-overlap; table=2MiB; block=16KiB; delay=20; stop=36; violation=slow-down",
            )
        },
        row: Some(XENGINE_ROW),
        beyond: "the learned prefetcher, which warms the cache after compactions",
    },
    Entry {
        name: "asterixdb-leveling",
        about: "whole levels of one run merge when full",
        source: "AsterixDB; performance-stability §3.1, §5.1.5: two memtables, filters of 1 % false positives, greedy, at most 2L runs",
        design: || {
            plain(
                "leveling T=10; trigger=level-saturation; granularity=level; movement=none; buffer=128MiB; filter=1%; buffers=1; limit=global(2x); scheduler=greedy",
            )
        },
        row: Some(WHOLE_LEVELS),
        beyond: "its current merge policies bound sizes instead: asterixdb-prefix, asterixdb-concurrent; its merge schedulers are scheduler=single, fair and greedy",
    },
    Entry {
        name: "blsm",
        about: "leveling with tables moved round-robin",
        source: "bLSM (SIGMOD 2012)",
        design: || {
            plain("leveling T=10; trigger=level-saturation; granularity=file; movement=round-robin")
        },
        row: Some(BLSM_ROW),
        beyond: "its source merges whole components, as blsm-spring does; snowshoveling from the memory component",
    },
    Entry {
        name: "blsm-spring",
        about: "whole levels merge at the rate at which they refill, and writers slow down accordingly",
        source: "bLSM (SIGMOD 2012) as performance-stability §4.2 measures it: ratio 10, at most two runs per level",
        design: || {
            plain(
                "leveling T=10; trigger=level-saturation; granularity=level; movement=none; intake=exact; buffers=1; limit=local(2x); violation=slow-down; scheduler=gear",
            )
        },
        row: None,
        beyond: "snowshoveling from the memory component; here only the fill of a level slows writers down, not the progress of the merge out of it",
    },
    Entry {
        name: "clsm",
        about: "LevelDB's compactions, for concurrent writers",
        source: "cLSM (EuroSys 2015), on LevelDB",
        design: || plain(&format!("leveling {LEVELDB}; movement=round-robin-within; filter=10")),
        row: Some(BLSM_ROW),
        beyond: "its concurrency control of the memory component",
    },
    Entry {
        name: "lsbm-tree",
        about: "whole levels of one run merge when full",
        source: "LSbM-tree (ICDCS 2017)",
        design: || {
            plain("leveling T=10; trigger=level-saturation; granularity=level; movement=none")
        },
        row: Some(WHOLE_LEVELS),
        beyond: "the compaction buffer, which keeps frequently read tables after they were merged, so that cached blocks stay valid",
    },
];
