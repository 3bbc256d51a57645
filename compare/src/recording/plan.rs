//! The recordings.

use std::path::Path;

use anyhow::Result;
use terrane_policy::recorded::Trace;

use super::load::Load;

/// Runs a system on a load and returns what it did.
type Run = fn(&Recording, &Path) -> Result<Trace>;

/// A recording to make.
pub(super) struct Recording {
    /// The name of its file.
    pub(super) name: String,
    /// The options of the system, in its own words.
    pub(super) options: String,
    pub(super) load: Load,
    /// The design that stands for the system.
    pub(super) design: String,
    run: Run,
}

impl Recording {
    pub(super) fn run(&self, dir: &Path) -> Result<Trace> {
        (self.run)(self, dir)
    }
}

/// All recordings that this build can make.
pub(super) fn all() -> Vec<Recording> {
    #[allow(unused_mut, reason = "a build without these engines makes none")]
    let mut all = Vec::new();
    #[cfg(feature = "leveldb")]
    all.extend(leveldb());
    #[cfg(feature = "rocksdb")]
    all.extend(rocksdb());
    all
}

/// LevelDB's level 1 holds 10 MiB and its tables 1 MiB or more, whatever the options.
#[cfg(feature = "leveldb")]
fn leveldb() -> Vec<Recording> {
    let loads = [Load::Uniform, Load::Sequential, Load::Zipf, Load::Deletes, Load::Lookups];
    let of = |load: Load| Recording {
        name: format!("leveldb-{load}"),
        options: "write_buffer_size=1048576; max_file_size=1048576".to_owned(),
        load,
        design: "leveldb; buffer=1MiB; table=1MiB".to_owned(),
        run: super::leveldb::run,
    };
    loads.into_iter().map(of).collect()
}

#[cfg(feature = "rocksdb")]
const LEVELED: &str = "target_file_size_base=65536; max_bytes_for_level_base=262144";
#[cfg(feature = "rocksdb")]
const LEVELED_DESIGN: &str = "rocksdb-leveling; base=256KiB; buffer=64KiB; table=64KiB";

#[cfg(feature = "rocksdb")]
fn rocksdb() -> Vec<Recording> {
    let of = |name: &str, load: Load, options: String, design: String| Recording {
        name: format!("rocksdb-{name}-{load}"),
        options,
        load,
        design,
        run: super::rocksdb::run,
    };
    let leveled = |name: &str, load: Load, rule: &str, dynamic: bool, design: &str| {
        let dynamic = format!("level_compaction_dynamic_level_bytes={dynamic}");
        let options = format!("compaction_pri={rule}; {LEVELED}; {dynamic}");
        of(name, load, options, format!("{LEVELED_DESIGN}{design}"))
    };
    let mut all = Vec::new();
    for load in [Load::Uniform, Load::Sequential, Load::Zipf, Load::Deletes, Load::Bursts] {
        all.push(leveled("overlap", load, "kMinOverlappingRatio", false, ""));
    }
    for load in [Load::Uniform, Load::Zipf] {
        let design = "; growth=dynamic";
        all.push(leveled("dynamic", load, "kMinOverlappingRatio", true, design));
    }
    let rules = [
        ("size", "kByCompensatedSize", "most-tombstones", Load::Deletes),
        ("coldest", "kOldestLargestSeqFirst", "coldest-update", Load::Uniform),
        ("oldest", "kOldestSmallestSeqFirst", "oldest", Load::Uniform),
        ("turns", "kRoundRobin", "round-robin", Load::Uniform),
    ];
    for (name, rule, movement, load) in rules {
        all.push(leveled(name, load, rule, false, &format!("; movement={movement}")));
    }
    for load in [Load::Uniform, Load::Zipf, Load::Deletes, Load::Bursts] {
        let options = "compaction_style=kCompactionStyleUniversal; target_file_size_base=65536";
        let design = "rocksdb-tiering; buffer=64KiB; table=64KiB".to_owned();
        all.push(of("universal", load, options.to_owned(), design));
    }
    all
}
