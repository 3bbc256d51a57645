//! Systems that store values separately from their keys.
//!
//! None of them is a row of the compaction paper's Table 1. Thresholds, file sizes and garbage
//! limits are the systems' defaults. The space bound is this engine's own, because none of them
//! bounds the total size of its files.

use super::entry::{Entry, plain};

pub(super) const ALL: &[Entry] = &[
    Entry {
        name: "separated-values",
        about: "as balanced, with values of 1 KiB and more in value files",
        source: "Terrane",
        design: || {
            plain("1-leveling T=10 L0=4 base=256MiB; violation=spread; values=separate(1KiB)")
        },
        row: None,
        beyond: "",
    },
    Entry {
        name: "wisckey",
        about: "LevelDB whose tables hold keys and pointers; the value log is collected file by file",
        source: "WiscKey (Lu et al., FAST 2016)",
        design: || {
            plain(
                "1-leveling T=10 L0=4 base=10MiB; trigger=run-count,level-saturation; granularity=file; movement=round-robin; buffer=4MiB; table=2MiB; block=4KiB; delay=8; stop=12; violation=slow-down; buffers=2; values=separate(128,garbage=100%,space=2,file=64MiB)",
            )
        },
        row: None,
        beyond: "the value log is the write-ahead log and is collected from its tail; scans prefetch values in parallel",
    },
    Entry {
        name: "rocksdb-blobdb",
        about: "RocksDB's level compaction with blob files: merges move values of files with garbage",
        source: "RocksDB, integrated BlobDB (2021), with values of 1 KiB and more",
        design: || {
            plain(
                "1-leveling T=10 L0=4 base=256MiB; trigger=run-count,level-saturation+file-staleness(30d); granularity=file; movement=least-overlap; buffer=64MiB; table=64MiB; block=4KiB; delay=20; stop=36; violation=slow-down; buffers=2; values=separate(1KiB,garbage=100%,space=1.5,file=256MiB)",
            )
        },
        row: None,
        beyond: "collections are off by default and pick files by age: the oldest quarter; compression and caching of blobs",
    },
    Entry {
        name: "titan",
        about: "RocksDB's level compaction with blob files that are rewritten when half of them is garbage",
        source: "Titan, the plug-in of TiKV, with its defaults",
        design: || {
            plain(
                "1-leveling T=10 L0=4 base=256MiB; trigger=run-count,level-saturation+file-staleness(30d); granularity=file; movement=least-overlap; buffer=64MiB; table=64MiB; block=4KiB; delay=20; stop=36; violation=slow-down; buffers=2; values=separate(1KiB,garbage=50%,space=2,file=256MiB)",
            )
        },
        row: None,
        beyond: "a collection writes new pointers through the log instead of rewriting tables; level merge sorts blobs by key in the last levels",
    },
    Entry {
        name: "fjall",
        about: "fjall's leveled compaction with blob files that are rewritten when a quarter is garbage",
        source: "fjall 3.1, with key-value separation and its defaults",
        design: || {
            plain(
                "1-leveling T=10 L0=4 base=256MiB; trigger=run-count,level-saturation; granularity=file; movement=least-overlap; memtable=skiplist; buffer=64MiB; table=64MiB; block=4KiB; filter=20,10; compression=none,none,lz4; delay=20; stop=30; violation=slow-down; buffers=4; values=separate(1KiB,garbage=25%,space=2,file=64MiB)",
            )
        },
        row: None,
        beyond: "only the oldest quarter of the files with garbage is collected at a time; compression of blobs",
    },
];
