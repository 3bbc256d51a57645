//! Systems of the compaction paper's Table 1 that apply tiering to all or most of their levels.

use super::entry::{Entry, Row, plain};
use super::leveled::WHOLE_LEVELS;

const RUNS: Row =
    Row { eagerness: "tiering", triggers: "run-count", granularity: "run", movement: "none" };

const ROCKSDB_ROW: Row = Row { triggers: "run-count space-amplification file-staleness", ..RUNS };
const CASSANDRA_ROW: Row = Row { triggers: "run-count file-staleness tombstone-ttl", ..RUNS };

/// Triggers and granularity of Dostoevsky and its successors: saturation and whole levels for a
/// single-run level, the number of runs and whole runs for levels that gather runs.
const LAZY_ROW: Row = Row {
    eagerness: "lazy-leveling",
    triggers: "level-saturation run-count",
    granularity: "level run",
    movement: "least-overlap none",
};

const ROCKSDB: &str = "tiering T=4 L0=4; granularity=run; movement=none; buffer=64MiB; table=64MiB; delay=20; stop=36; violation=slow-down; buffers=2";

/// The defaults of both systems, without the bucket style and the triggers that precede it.
const CASSANDRA: &str = "tiering T=4 L0=4; granularity=run; movement=none; buffer=64MiB; table=160MiB; filter=1%; delay=32; stop=64; trigger=tombstone-ttl(10d)+file-staleness(30d)";
const BUCKETS: &str = "min=4,max=32,low=0.5,high=1.5,small=50MiB";

/// All runs form one list; writers stop at its limit, not earlier (performance-stability §5.1.2).
const SIZE_TIERED: &str = "tiering T=3 L0=3; granularity=run; movement=none; buffer=128MiB; filter=1%; buffers=1; scheduler=greedy";

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "rocksdb-tiering",
        about: "the runs of the tree form one list and merge for space amplification, similar size or their number",
        source: "RocksDB, universal compaction with its defaults: 4 runs, 200 % space amplification, 1 % size ratio; files older than 30 days are compacted",
        design: || {
            plain(&format!(
                "{ROCKSDB}; tombstone-weight=2; trigger=file-staleness(30d)+universal(runs=4,space=200,ratio=1,min=2)"
            ))
        },
        row: Some(ROCKSDB_ROW),
        beyond: "incremental compaction; newer versions leave the newest runs of level 0 out of a merge for space if space amplification exceeds its limit even without them; here old files move alone, there all runs merge; RocksDB has filters only on request, here they have 10 bits",
    },
    Entry {
        name: "monkey-tiering",
        about: "RocksDB's tiering with Monkey's allocation of filter memory",
        source: "Monkey (SIGMOD 2017) §4, tiering",
        design: || plain(&format!("{ROCKSDB}; trigger=run-count; filter=monkey(10)")),
        row: Some(ROCKSDB_ROW),
        beyond: "tuning of size ratio, eagerness and buffer to a workload",
    },
    Entry {
        name: "slimdb",
        about: "levels gather runs and merge them a few tables at a time",
        source: "SlimDB (VLDB 2017): stepped merge",
        design: || {
            plain(
                "tiering T=10; trigger=level-saturation; granularity=files(4); movement=none; delay=20; stop=36",
            )
        },
        row: Some(Row {
            eagerness: "tiering",
            triggers: "level-saturation",
            granularity: "file files",
            movement: "none",
        }),
        beyond: "semi-sorted tables, the compressed three-level index, and the cuckoo filter over all runs of a level",
    },
    Entry {
        name: "dostoevsky",
        about: "tiering with one run in the last level, and Monkey's allocation of filter memory",
        source: "Dostoevsky (SIGMOD 2018): lazy leveling; set K and Z by runs=K,last:Z",
        design: || {
            plain(
                "lazy-leveling T=10; trigger=level-saturation+run-count; granularity=level; movement=none; filter=monkey(10); delay=20; stop=36",
            )
        },
        row: Some(LAZY_ROW),
        beyond: "tuning of K, Z and T to a workload",
    },
    Entry {
        name: "lsm-bush",
        about: "small levels gather very many runs, the last level is a single run",
        source: "LSM-Bush (SIGMOD 2019), T = 2, X = 2",
        design: || {
            plain(
                "hybrid T=2 L0=4; runs=T-1,last:1; growth=bush(2); trigger=level-saturation+run-count; granularity=level; movement=none; filter=monkey(10); delay=20; stop=36",
            )
        },
        row: Some(Row { eagerness: "hybrid", ..LAZY_ROW }),
        beyond: "hash tables instead of filters for the smallest levels; tuning within the Wacky continuum",
    },
    Entry {
        name: "pebblesdb",
        about: "levels gather runs and merge them a few tables at a time; the last level is a single run",
        source: "PebblesDB (SOSP 2017): fragmented LSM tree",
        design: || {
            plain(
                "hybrid T=10 L0=4; runs=T-1,last:1; trigger=level-saturation; granularity=files(4); movement=none; buffer=4MiB; table=2MiB; delay=8; stop=12; violation=slow-down",
            )
        },
        row: Some(Row {
            eagerness: "hybrid",
            triggers: "level-saturation",
            granularity: "file files",
            movement: "none",
        }),
        beyond: "guards, which determine where tables are cut; here the bounds of the input tables do",
    },
    Entry {
        name: "cassandra-tiering",
        about: "four to 32 adjacent runs of like size merge into one; stale tables and expired tombstones are compacted earlier",
        source: "Apache Cassandra, size-tiered compaction: min_threshold 4, max_threshold 32, buckets from 0.5 to 1.5, min_sstable_size 50 MiB, 1 % false positives, gc_grace 10 days",
        design: || plain(&format!("{CASSANDRA}+buckets(style=cassandra,{BUCKETS})")),
        row: Some(CASSANDRA_ROW),
        beyond: "merges of runs in a bucket that are not adjacent in age, which are possible because its cells have timestamps; preference for the bucket that is read most; tombstones kept for gc_grace, here they are dropped as soon as possible; time windows (TWCS)",
    },
    Entry {
        name: "cassandra-unified",
        about: "a scaling parameter for each level: T4 in all of them, as in `scaling=T4`",
        source: "Apache Cassandra 5.0, unified compaction: the default T4; set others by scaling=L10,N,…",
        design: || {
            plain(
                "hybrid scaling=T4; trigger=run-count; granularity=run; movement=none; table=1GiB",
            )
        },
        row: None,
        beyond: "levels by density, shards by key, threads reserved for levels",
    },
    Entry {
        name: "scylladb-tiering",
        about: "two to 32 adjacent runs of like size merge into one, preferably four or more; stale tables and expired tombstones are compacted earlier",
        source: "ScyllaDB, size-tiered compaction: as Cassandra's, with pairs of like size where no bucket has four runs",
        design: || plain(&format!("{CASSANDRA}+buckets(style=scylladb,{BUCKETS})")),
        row: Some(CASSANDRA_ROW),
        beyond: "merges of runs in a bucket that are not adjacent in age, which are possible because its cells have timestamps; incremental compaction, which frees fragments of runs early and bounds space amplification; one shard per core",
    },
    Entry {
        name: "hbase",
        about: "three to ten adjacent runs merge, none larger than 1.2 times the others together: as many as possible, and then the smallest",
        source: "Apache HBase, exploring compaction: 3 to 10 files, ratio 1.2, memstore of 128 MiB, blocks of 64 KiB, 1 % false positives, writers stop at 16 files",
        design: || {
            plain(
                "tiering T=3 L0=3; trigger=exploring(min=3,max=10,ratio=1.2,small=128MiB,stuck=16); granularity=run; movement=none; buffer=128MiB; block=64KiB; filter=1%; stop=16",
            )
        },
        row: Some(RUNS),
        beyond: "another ratio off-peak; periodic major compactions; the older ratio-based policy, date-tiered and striped stores",
    },
    Entry {
        name: "asterixdb-tiering",
        about: "runs gather and merge by number",
        source: "AsterixDB; performance-stability §3.1, §5.1.5 with T = 3: two memtables, filters of 1 % false positives, greedy, at most 2TL runs",
        design: || {
            plain(
                "tiering T=3 L0=3; trigger=run-count; granularity=run; movement=none; buffer=128MiB; filter=1%; buffers=1; limit=global(2x); scheduler=greedy",
            )
        },
        row: Some(RUNS),
        beyond: "its merge policies compare sizes: asterixdb-prefix and asterixdb-concurrent; its binomial policy bounds the number of components",
    },
    Entry {
        name: "asterixdb-prefix",
        about: "small runs gather until they are worth a merge; large runs are not merged again",
        source: "AsterixDB, prefix merge policy: max-mergable-component-size 1 GB, max-tolerance-component-count 5; performance-stability §2.2 and its extended version",
        design: || plain(&format!("{SIZE_TIERED}; trigger=prefix(1GiB,5,1.2); delay=10; stop=20")),
        row: None,
        beyond: "it stops writers as soon as five runs are mergeable while a merge runs; here writers stop at a limit, and runs that are never merged again do not count",
    },
    Entry {
        name: "asterixdb-concurrent",
        about: "3 to 10 of the newest runs merge, back to the oldest of similar size, up to 1 TiB; merges run concurrently",
        source: "AsterixDB, size-bounded concurrent merge policy, its default: 3 to 10 components, ratio 1.2, at most 30, max-component-size 1 TB",
        design: || {
            plain(&format!("{SIZE_TIERED}; trigger=concurrent(3,10,1.2,1TiB); limit=global(30)"))
        },
        row: None,
        beyond: "at 30 components its writers wait only if these can be merged",
    },
    Entry {
        name: "tarantool",
        about: "levels gather runs, the last level is a single run",
        source: "Tarantool's vinyl: run_size_ratio 3.5, run_count_per_level 2, pages of 8 KiB, 5 % false positives",
        design: || {
            plain(
                "lazy-leveling T=4 L0=2; trigger=level-saturation+run-count; granularity=run; movement=none; block=8KiB; filter=6.2; delay=20; stop=36",
            )
        },
        row: Some(Row { movement: "none", ..LAZY_ROW }),
        beyond: "key ranges of 1 GiB with separate trees; a fractional size ratio; two runs per level are runs=2,last:1",
    },
    Entry {
        name: "wiredtiger",
        about: "seven to 15 adjacent runs of the same merge generation merge into one",
        source: "WiredTiger's LSM trees, removed in 2024: chunks of 10 MiB, merge_max 15, merge_min half of it, chunk_max 5 GiB, 16 filter bits per key",
        design: || {
            // Three generations of nearly 15 runs each are normal.
            plain(
                "tiering T=7 L0=7; trigger=generations(chunk=10MiB,min=7,max=15,large=5GiB); granularity=run; movement=none; buffer=10MiB; filter=16; delay=45; stop=90; violation=slow-down",
            )
        },
        row: Some(WHOLE_LEVELS),
        beyond: "the paper's row says leveling, but WiredTiger's source merged generations of chunks; merges of fewer runs and across generations after a time without merges; chunks are B-trees",
    },
    Entry {
        name: "accumulo",
        about: "small runs merge once they hold more than three times the bytes of the largest of them; expired tombstones are compacted earlier",
        source: "Apache Accumulo: compaction ratio 3, 10 files in a compaction, 15 files per tablet, filters only on request",
        design: || {
            plain(
                "tiering T=3 L0=3; trigger=tombstone-ttl(10d)+small-set(ratio=3,max=10); granularity=run; movement=none; filter=0; delay=15; stop=30",
            )
        },
        row: Some(Row { triggers: "level-saturation run-count tombstone-ttl", ..RUNS }),
        beyond: "merges of small files that are not adjacent in age, which are possible because its keys have timestamps; executors by the size of compactions; a lower ratio for tablets with too many files; tablet splits; iterators that filter during compaction",
    },
    Entry {
        name: "sifrdb",
        about: "levels gather runs and merge them several tables at a time",
        source: "SifrDB (SoCC 2018)",
        design: || {
            plain(
                "tiering T=10; trigger=level-saturation; granularity=files(8); movement=none; delay=20; stop=36",
            )
        },
        row: Some(Row {
            eagerness: "tiering",
            triggers: "level-saturation",
            granularity: "files",
            movement: "none",
        }),
        beyond: "early cleaning, which frees merged tables before a merge ends; parallel search of all runs is the option read_threads",
    },
];
