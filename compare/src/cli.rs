//! The command line.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use clap::{Args, Parser, Subcommand};

use crate::engines::{self, Engine};
use crate::recording::RecordArguments;
use crate::rows::{self, Row};
use crate::settings::{Bytes, Compression, Durability, Settings};
use crate::stability::StabilityArguments;
use terrane_workload::Distribution;

/// The fraction of the given memory that the memtable gets: 64 MiB of 320.
const MEMTABLE_SHARE: u64 = 5;

/// The memory of one memtable and the cache, unless something else is given.
const MEMORY_DEFAULT: u64 = 320 << 20;

/// The name of our engine.
const BASELINE_DEFAULT: &str = "terrane";

/// Runs the same key-value workloads on several storage engines and compares them.
///
/// Every measurement is a process of its own; engines take turns within each repetition. Progress
/// goes to standard error, the tables to standard output.
#[derive(Debug, Parser)]
#[command(name = "terrane-compare", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    #[command(flatten)]
    pub(crate) compare: Compare,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Names the engines of this build and the workloads, and does nothing else
    List,
    /// The two-phase evaluation: how many writes a second each engine takes at most, and what they
    /// take at a share of that
    Stability(Box<StabilityArguments>),
    Record(RecordArguments),
    /// One measurement; how this program calls itself
    #[command(hide = true)]
    Child {
        /// What to measure, as JSON
        job: String,
    },
    /// One evaluation; how this program calls itself
    #[command(hide = true)]
    StabilityChild {
        /// What to evaluate, as JSON
        job: String,
    },
}

/// What every engine is opened with.
#[derive(Debug, Args)]
pub(crate) struct Sizes {
    /// Memory of one memtable and the cache together, a fifth of it for the memtable [default: 320MiB,
    /// or half of the memory limit]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Bytes>,

    /// Size of one memtable, instead of a share of --memory
    #[arg(long, value_name = "SIZE")]
    memtable: Option<Bytes>,

    /// Size of the cache for blocks or pages, instead of a share of --memory
    #[arg(long, value_name = "SIZE")]
    cache: Option<Bytes>,

    /// Size of data blocks
    #[arg(long, default_value = "4KiB", value_name = "SIZE")]
    block: Bytes,

    /// Filter bits for each key
    #[arg(long, default_value_t = 10, value_name = "BITS", value_parser = clap::value_parser!(u32).range(1..=64))]
    filter_bits: u32,

    /// Threads for flushes and compactions
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    background_threads: u32,

    /// Compression of data blocks; engines that cannot do it run without
    #[arg(long, default_value = "none")]
    compression: Compression,
}

#[derive(Debug, Parser)]
pub(crate) struct Compare {
    /// Engines, separated by commas [default: all of this build]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    engines: Vec<String>,

    /// Workloads, separated by commas; `list` names them [default: all]
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    workloads: Vec<String>,

    /// Keys that are loaded; rows with large values have fewer
    #[arg(long, default_value_t = 2_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    num: u64,

    /// Bytes of keys and values that are loaded in every row, instead of --num
    #[arg(long, value_name = "SIZE", conflicts_with = "num")]
    data: Option<Bytes>,

    /// How clients choose keys, in rows that choose: uniform, zipf:0.99 and others [default: as the
    /// row says]
    #[arg(long, value_name = "DISTRIBUTION")]
    pub(crate) distribution: Option<Distribution>,

    /// Operations of workloads that read; rows with long operations have fewer
    /// [default: as many as there are keys]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) reads: Option<u64>,

    /// How often everything is measured; tables show medians
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeat: u32,

    /// Client threads
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: u32,

    /// Where keys, values and choices come from
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,

    /// Folder for the databases, which are removed [default: the system's temporary folder]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,

    #[command(flatten)]
    sizes: Sizes,

    /// Limit for all memory of a measurement, page cache included, by a control group of Linux; where
    /// none can be created, tables bypass the page cache, and only engines that can do this take part
    #[arg(long, value_name = "SIZE")]
    memory_limit: Option<Bytes>,

    /// Tables bypass the page cache; only engines that can do this take part
    #[arg(long)]
    pub(crate) direct: bool,

    /// The engine whose ratios to the others are shown [default: terrane, if it is compared]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,

    /// A measurement that takes longer is given up
    #[arg(long, default_value_t = 1800, value_name = "SECONDS")]
    pub(crate) limit_seconds: u64,

    /// Write the tables to a file instead of standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    /// Write every measurement to a file, as one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

impl Compare {
    /// Returns the requested engines, in the order of the registry.
    pub(crate) fn engines(&self) -> Result<Vec<&'static Engine>> {
        engines_named(&self.engines)
    }

    /// Returns the compared engine whose ratios to the others are shown, if there is one.
    pub(crate) fn baseline(&self, engines: &[&'static Engine]) -> Result<Option<&'static str>> {
        let name = self.baseline.as_deref().unwrap_or(BASELINE_DEFAULT);
        let found = engines.iter().find(|engine| engine.name == name);
        if found.is_none() && self.baseline.is_some() {
            bail!("the baseline '{name}' is not among the engines that are compared");
        }
        Ok(found.map(|engine| engine.name))
    }

    /// Returns the requested rows, in the order in which the user named them.
    pub(crate) fn rows(&self) -> Result<Vec<&'static Row>> {
        if self.workloads.is_empty() {
            return Ok(rows::ALL.iter().collect());
        }
        let known = || rows::ALL.map(|row| row.name).join(", ");
        self.workloads
            .iter()
            .map(|name| rows::by_name(name))
            .zip(&self.workloads)
            .map(|(row, name)| {
                row.ok_or_else(|| anyhow!("no workload '{name}'; there are {}", known()))
            })
            .collect()
    }

    /// Returns the limit for all memory of a measurement, in bytes.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        self.memory_limit.map(|limit| limit.0)
    }

    /// Returns the number of keys of a run in which `row` has the data that the command line states.
    pub(crate) fn num(&self, row: &Row) -> u64 {
        self.data.map_or(self.num, |data| row.num_with(data.0))
    }

    /// Returns the settings with which `engine` is opened for `row`.
    pub(crate) fn settings(&self, engine: &Engine, row: &Row) -> Settings {
        let durability =
            if row.name == "fillsync" { Durability::Sync } else { Durability::Process };
        let limit = self.memory_limit();
        let memory = limit.map_or(MEMORY_DEFAULT, |limit| limit / 2);
        Settings {
            memory_limit_bytes: limit,
            is_direct: self.direct,
            ..self.sizes.settings_within(memory, engine, durability)
        }
    }
}

impl Sizes {
    /// Returns the settings with which `engine` is opened.
    pub(crate) fn settings(&self, engine: &Engine, durability: Durability) -> Settings {
        self.settings_within(MEMORY_DEFAULT, engine, durability)
    }

    /// Returns the settings with which `engine` is opened if the command line states no memory.
    fn settings_within(&self, memory: u64, engine: &Engine, durability: Durability) -> Settings {
        let memory = self.memory.map_or(memory, |memory| memory.0);
        let memtable = self.memtable.map_or(memory / MEMTABLE_SHARE, |size| size.0);
        let rest = memory - memory / MEMTABLE_SHARE;
        let can_compress = engine.compressions.contains(&self.compression);
        Settings {
            memtable_bytes: memtable,
            cache_bytes: self.cache.map_or(rest, |size| size.0),
            block_bytes: u32::try_from(self.block.0).unwrap_or(u32::MAX),
            filter_bits_per_key: self.filter_bits,
            background_threads: self.background_threads,
            compression: if can_compress { self.compression } else { Compression::None },
            durability,
            budget_bytes_per_second: None,
            memory_limit_bytes: None,
            is_direct: false,
        }
    }
}

/// Returns the engines with these names, in the order of the registry. Without names, returns all
/// engines of this build.
pub(crate) fn engines_named(names: &[String]) -> Result<Vec<&'static Engine>> {
    for name in names {
        if engines::by_name(name).is_none() {
            let known: Vec<_> = engines::ALL.iter().map(|engine| engine.name).collect();
            bail!("no engine '{name}' in this build; there are {}", known.join(", "));
        }
    }
    let is_wanted =
        |engine: &&Engine| names.is_empty() || names.iter().any(|name| name == engine.name);
    Ok(engines::ALL.iter().filter(is_wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parsed(arguments: &[&str]) -> Compare {
        let arguments = ["terrane-compare"].iter().chain(arguments);
        Arguments::try_parse_from(arguments).unwrap().compare
    }

    #[test]
    fn the_command_line_makes_sense() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn everything_is_compared_unless_something_is_asked_for() {
        let all = parsed(&[]);
        assert_eq!(all.engines().unwrap().len(), engines::ALL.len());
        assert_eq!(all.rows().unwrap().len(), rows::ALL.len());
        let some = parsed(&["--engines", "mem", "--workloads", "seek10,fillseq"]);
        assert_eq!(some.engines().unwrap()[0].name, "mem");
        let names: Vec<_> = some.rows().unwrap().iter().map(|row| row.name).collect();
        assert_eq!(names, ["seek10", "fillseq"]);
    }

    #[test]
    fn unknown_names_are_refused_with_the_known_ones() {
        let error = parsed(&["--engines", "oracle"]).engines().err().unwrap().to_string();
        assert!(error.contains("'oracle'") && error.contains("mem"), "{error}");
        let chosen = parsed(&["--engines", "mem", "--baseline", "oracle"]);
        let engines = chosen.engines().unwrap();
        assert!(chosen.baseline(&engines).is_err());
        assert_eq!(parsed(&["--baseline", "mem"]).baseline(&engines).unwrap(), Some("mem"));
        assert_eq!(parsed(&[]).baseline(&engines).unwrap(), None);
        let error = parsed(&["--workloads", "fillseq,fil"]).rows().err().unwrap().to_string();
        assert!(error.contains("'fil'") && error.contains("fillseq"), "{error}");
    }

    #[test]
    fn memory_is_split_unless_its_parts_are_given() {
        let mem = engines::by_name("mem").unwrap();
        let row = rows::by_name("fillseq").unwrap();
        let settings = parsed(&[]).settings(mem, row);
        assert_eq!((settings.memtable_bytes, settings.cache_bytes), (64 << 20, 256 << 20));
        assert_eq!(settings.durability, Durability::Process);
        let settings =
            parsed(&["--memtable", "8MiB", "--memory", "100MiB", "--compression", "lz4"])
                .settings(mem, rows::by_name("fillsync").unwrap());
        assert_eq!((settings.memtable_bytes, settings.cache_bytes), (8 << 20, 80 << 20));
        assert_eq!(settings.compression, Compression::None, "the map cannot compress");
        assert_eq!(settings.durability, Durability::Sync);
        let settings = parsed(&["--memory-limit", "400MiB"]).settings(mem, row);
        assert_eq!(settings.memory_limit_bytes, Some(400 << 20));
        assert_eq!((settings.memtable_bytes, settings.cache_bytes), (40 << 20, 160 << 20));
    }

    #[test]
    fn the_data_of_a_row_can_be_stated_in_bytes() {
        let seek100 = rows::by_name("seek100").unwrap();
        assert_eq!(parsed(&["--num", "77"]).num(seek100), 77);
        assert_eq!(parsed(&["--data", "116KiB"]).num(seek100), 1024);
        let fill16k = rows::by_name("fill16k").unwrap();
        let options = fill16k.options(parsed(&["--data", "164000KiB"]).num(fill16k), None, 1, 1);
        assert_eq!(options.num, 10_240);
    }
}
