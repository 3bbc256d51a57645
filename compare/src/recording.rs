//! Records what other systems decide: `terrane-compare record`.
//!
//! A system runs a deterministic load with small buffers, and comes to rest after every flush or burst
//! of flushes, so that every decision is made for a tree that its own files describe: MANIFEST has
//! every flush and compaction in order, and RocksDB's LOG the reasons. The result is a
//! [`terrane_policy::recorded::Trace`], which `terrane design recorded` replays against a design.
//!
//! | module | one line |
//! |---|---|
//! | [`plan`] | the recordings: system, options, load and design |
//! | [`load`] | the loads |
//! | [`manifest`] | reads the version edits that LevelDB and RocksDB write |
//! | [`assemble`] | makes a trace of edits |
//! | `rocksdb`, `leveldb` | run a system |
// Most of it is unused in builds without these systems.
#![cfg_attr(not(feature = "default"), allow(dead_code, unused_imports))]

mod assemble;
#[cfg(feature = "leveldb")]
mod leveldb;
mod load;
mod manifest;
mod plan;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use clap::Args;

use plan::Recording;

/// Records the flushes and compactions of other systems under deterministic loads
#[derive(Debug, Args)]
pub(crate) struct RecordArguments {
    /// The directory that takes the recordings
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Keep this many decisions at the end of each recording; without it, all
    #[arg(long, value_name = "DECISIONS")]
    last: Option<usize>,

    /// Make only the recordings whose name contains this
    #[arg(long, value_name = "TEXT", default_value = "")]
    only: String,

    /// Where databases are created; they are removed afterwards
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// Makes the recordings.
pub(crate) fn record(arguments: &RecordArguments) -> Result<()> {
    std::fs::create_dir_all(&arguments.out).context("create the directory of recordings")?;
    let chosen: Vec<Recording> =
        plan::all().into_iter().filter(|one| one.name.contains(&arguments.only)).collect();
    if chosen.is_empty() {
        bail!("no recording of this build has a name with '{}'", arguments.only);
    }
    let mut stderr = std::io::stderr().lock();
    for recording in chosen {
        write!(stderr, "{} ", recording.name)?;
        stderr.flush()?;
        let dir = match &arguments.dir {
            Some(parent) => tempfile::tempdir_in(parent),
            None => tempfile::tempdir(),
        };
        let dir = dir.context("create a directory for the database")?;
        let trace = recording.run(dir.path()).with_context(|| recording.name.clone())?;
        let trace = match arguments.last {
            Some(decisions) => trace.last(decisions).context("shorten the recording")?,
            None => trace,
        };
        let events = trace.events.iter().filter(|event| event.is_decision()).count();
        writeln!(stderr, "{events} decisions")?;
        let path = arguments.out.join(format!("{}.txt", recording.name));
        std::fs::write(&path, trace.to_string()).with_context(|| path.display().to_string())?;
    }
    Ok(())
}
