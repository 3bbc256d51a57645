//! Systems of the compaction paper's Table 1 that level all or most of their levels.
//!
//! Level 0 of LevelDB and its descendants is full by its number of files, deeper levels by their
//! bytes: `trigger=run-count,level-saturation`.

use super::entry::{Entry, Row, plain};

const LEVELDB: &str = "T=10 L0=4 base=10MiB; trigger=run-count,level-saturation; granularity=file; buffer=4MiB; table=2MiB; block=4KiB; delay=8; stop=12; buffers=2";
const ROCKSDB: &str = "T=10 L0=4 base=256MiB; granularity=file; movement=least-overlap; buffer=64MiB; table=64MiB; block=4KiB; delay=20; stop=36; buffers=2";

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

const WHOLE_LEVELS: Row = Row {
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
        about: "flushes gather in the first level, tables with least overlap move down, old ones by time",
        source: "RocksDB, level compaction with its defaults; files older than 30 days move",
        design: || {
            plain(&format!(
                "1-leveling {ROCKSDB}; trigger=run-count,level-saturation+file-staleness(30d)"
            ))
        },
        row: Some(ROCKSDB_ROW),
        beyond: "compactions within level 0, sizes compensated for deletes, limits of pending bytes; level sizes that follow the last level (dynamic level bytes) are growth=dynamic, one compaction on several threads is the option merge_threads; it has filters, here of 10 bits, only if asked for",
    },
    Entry {
        name: "monkey-leveling",
        about: "RocksDB's leveling with filter memory where it saves most",
        source: "Monkey (SIGMOD 2017) §4, leveling",
        design: || {
            plain(&format!(
                "1-leveling {ROCKSDB}; trigger=run-count,level-saturation; filter=monkey(10)"
            ))
        },
        row: Some(ROCKSDB_ROW),
        beyond: "its filter allocation is built; the search for size ratio, eagerness and buffer by workload is not",
    },
    Entry {
        name: "leveldb",
        about: "flushes gather four at a time, then tables move down in turn",
        source: "LevelDB with its defaults",
        design: || plain(&format!("leveling {LEVELDB}; movement=round-robin; filter=0")),
        row: Some(LEVELDB_ROW),
        beyond: "compaction by seeks (add trigger=read-triggered(16KiB)); flushes that go to level 2 at once where nothing overlaps; tables are cut by their overlap with the grandparent here too",
    },
    Entry {
        name: "monkey-j",
        about: "LevelDB with filter memory where it saves most",
        source: "Monkey (TODS 2018), on LevelDB",
        design: || plain(&format!("leveling {LEVELDB}; movement=least-overlap; filter=monkey(10)")),
        row: Some(LEVELDB_ROW),
        beyond: "its filter allocation is built; the search for size ratio, eagerness and buffer by workload is not",
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
        beyond: "its time for each level is built, with ages from the delete; delete tiles within tables for deletes by a second key (KiWi) are not, nor are sizes that count what deletes invalidate",
    },
    Entry {
        name: "silk",
        about: "leveling with tables moved in turn",
        source: "SILK (ATC 2019), on RocksDB",
        design: || {
            plain(&format!(
                "leveling {ROCKSDB}; trigger=run-count,level-saturation; movement=round-robin"
            ))
        },
        row: Some(SILK_ROW),
        beyond: "bandwidth that reads and the log leave over is the option io_budget=leftover(RATE), and flushes go first; compactions of level 0 do not go before deeper ones, and what is interrupted is the larger one (scheduler=greedy), not the deeper one",
    },
    Entry {
        name: "silk+",
        about: "leveling with tables moved in turn, several at a time",
        source: "SILK+ (TOCS 2020), on RocksDB",
        design: || {
            plain(&format!(
                "leveling {ROCKSDB}; trigger=run-count,level-saturation; granularity=files(4); movement=round-robin"
            ))
        },
        row: Some(SILK_ROW),
        beyond: "as silk, and its handling of requests of several kinds",
    },
    Entry {
        name: "hyperleveldb",
        about: "LevelDB with the table moved that overlaps least",
        source: "HyperLevelDB",
        design: || plain(&format!("leveling {LEVELDB}; movement=least-overlap; filter=0")),
        row: Some(LEVELDB_ROW),
        beyond: "its source takes the best contiguous set of tables by size against overlap, not one table; writes are appended by many threads",
    },
    Entry {
        name: "cassandra-leveling",
        about: "one run in every level of large tables, moved several at a time, tombstones first",
        source: "Apache Cassandra, leveled compaction: tables of 160 MiB, fanout 10, 10 % false positives, gc_grace of 10 days",
        design: || {
            plain(
                "leveling T=10 L0=4; trigger=run-count,tombstone-ttl(10d)+level-saturation; granularity=files(4); movement=expired-ttl+most-tombstones+least-overlap; buffer=64MiB; table=160MiB; filter=10%; delay=32; stop=64",
            )
        },
        row: Some(CASSANDRA_ROW),
        beyond: "size-tiered compaction of a level 0 that falls behind; tombstones may only go after gc_grace, here they go as soon as they can; compaction of single tables by their share of droppable tombstones",
    },
    Entry {
        name: "scylladb-leveling",
        about: "one run in every level of large tables, moved several at a time, tombstones first",
        source: "ScyllaDB, leveled compaction: tables of 160 MiB, fanout 10, 10 % false positives, gc_grace of 10 days",
        design: || {
            plain(
                "leveling T=10 L0=4; trigger=run-count,tombstone-ttl(10d)+level-saturation; granularity=files(4); movement=expired-ttl+least-overlap; buffer=64MiB; table=160MiB; filter=10%; delay=32; stop=64",
            )
        },
        row: Some(CASSANDRA_ROW),
        beyond: "shards of one core each; a backlog controller that gives compactions their share of time",
    },
    Entry {
        name: "wiredtiger",
        about: "whole levels of one run merge when full",
        source: "WiredTiger's LSM trees, removed in 2024: chunks of 10 MiB, 16 filter bits per key",
        design: || {
            plain(
                "leveling T=10; trigger=level-saturation; granularity=level; movement=none; buffer=10MiB; filter=16",
            )
        },
        row: Some(WHOLE_LEVELS),
        beyond: "its source merged contiguous chunks of like generation, up to merge_max of them, which is nearer to tiering; chunks are B-trees",
    },
    Entry {
        name: "x-engine",
        about: "flushes gather in the first level, several tables move down, those with deletes first",
        source: "X-Engine (SIGMOD 2019)",
        design: || {
            plain(
                "hybrid T=10 L0=4 base=256MiB; runs=1; trigger=run-count,level-saturation; granularity=files(4); movement=most-tombstones+least-overlap; table=2MiB; block=16KiB; delay=20; stop=36",
            )
        },
        row: Some(XENGINE_ROW),
        beyond: "extents of 2 MiB that compactions reuse inside of tables; merging on FPGAs; compactions within level 0",
    },
    Entry {
        name: "leaper",
        about: "X-Engine's compactions, for a cache that is filled ahead",
        source: "Leaper (VLDB 2020), on X-Engine",
        design: || {
            plain(
                "hybrid T=10 L0=4 base=256MiB; runs=1; trigger=run-count,level-saturation; granularity=files(4); movement=least-overlap; table=2MiB; block=16KiB; delay=20; stop=36",
            )
        },
        row: Some(XENGINE_ROW),
        beyond: "the learned prefetcher that warms the cache after compactions",
    },
    Entry {
        name: "asterixdb-leveling",
        about: "whole levels of one run merge when full",
        source: "AsterixDB; filters of 1 % false positives; performance-stability §3.1",
        design: || {
            plain(
                "leveling T=10; trigger=level-saturation; granularity=level; movement=none; buffer=128MiB; filter=9.6",
            )
        },
        row: Some(WHOLE_LEVELS),
        beyond: "its merge policies of today bound sizes instead: asterixdb-prefix, asterixdb-concurrent; its schedulers of merges are scheduler=single, fair and greedy",
    },
    Entry {
        name: "blsm",
        about: "leveling with tables moved in turn",
        source: "bLSM (SIGMOD 2012)",
        design: || {
            plain("leveling T=10; trigger=level-saturation; granularity=file; movement=round-robin")
        },
        row: Some(BLSM_ROW),
        beyond: "its source merges whole components, as blsm-spring does; snowshovelling from the memory component",
    },
    Entry {
        name: "blsm-spring",
        about: "whole levels that merge as fast as they fill again, and writers that follow them",
        source: "bLSM (SIGMOD 2012) as performance-stability §4.2 measures it: ratio 10, at most two runs a level",
        design: || {
            plain(
                "leveling T=10; trigger=level-saturation; granularity=level; movement=none; intake=exact; buffers=1; limit=local(2x); scheduler=gear",
            )
        },
        row: None,
        beyond: "snowshovelling from the memory component; writers are slowed down by how full a level is again, and not also by how far the merge out of it has come",
    },
    Entry {
        name: "clsm",
        about: "LevelDB's compactions under concurrent writers",
        source: "cLSM (EuroSys 2015), on LevelDB",
        design: || plain(&format!("leveling {LEVELDB}; movement=round-robin; filter=10")),
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
        beyond: "the compaction buffer, which keeps merged tables that are read often, so that cached blocks stay valid",
    },
];
