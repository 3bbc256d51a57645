//! `terrane compact`: merges a database until no old version is left.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane::{Db, Keyspace};

use crate::exit::{Exit, usage};
use crate::open;
use crate::output;
use terrane_lab::human;
use terrane_lab::json::{SCHEMA, write_line};
use terrane_lab::literal::{self, KeyBounds, LiteralError, all_keys, parse_range_argument};
use terrane_lab::progress;

const EXAMPLES: &str = "\
Examples:
  terrane compact ./db
  terrane compact ./db user:a user:m     (keys from user:a, before user:m)
  terrane compact ./db user:a..=user:m --keyspace people";

/// Merge a range of keys into the last level that holds any of them
///
/// This removes every overwritten and deleted value of the range. Without --keyspace and a range,
/// the whole database is merged.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CompactArgs {
    /// The directory of the database
    db: PathBuf,

    /// The first key, or a range such as a..m [default: all keys]
    from: Option<String>,

    /// The first key after the range
    to: Option<String>,

    /// The keyspace [default: all; with a range, the default keyspace]
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
}

/// The time between two updates of the progress.
const TICK: Duration = Duration::from_millis(200);

/// Merges a range of some keyspaces. The progress is the share of its bytes that compactions have read;
/// tables that need not be rewritten are not read.
fn compact(db: &Db, keyspaces: &[Keyspace], range: &KeyBounds) -> Result<()> {
    let mut total = 0;
    for keyspace in keyspaces {
        total += keyspace.approximate_size(range.clone())?;
    }
    let bar = progress::bytes(total, "compacting");
    let before = db.stats().compaction_bytes_read;
    let done = AtomicBool::new(false);
    let compacted = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                bar.set_position((db.stats().compaction_bytes_read - before).min(total));
                thread::park_timeout(TICK);
            }
        });
        let each = |keyspace: &Keyspace| keyspace.compact_range(range.clone());
        let compacted = keyspaces.iter().try_for_each(each);
        done.store(true, Ordering::Relaxed);
        compacted
    });
    bar.finish_and_clear();
    Ok(compacted?)
}

#[derive(Serialize)]
struct JsonCompacted {
    schema: u32,
    table_bytes_before: u64,
    table_bytes: u64,
    tables: usize,
    compaction_bytes_read: u64,
    compaction_bytes_written: u64,
}

impl CompactArgs {
    /// Merges the range.
    pub(crate) fn run(&self) -> Result<Exit> {
        let range = self.range()?;
        let db = open::existing(&self.db)?;
        let names = match (&self.keyspace, &self.from) {
            (Some(name), _) => vec![name.clone()],
            (None, Some(_)) => vec![open::DEFAULT_KEYSPACE.to_owned()],
            (None, None) => db.keyspaces(),
        };
        let keyspaces =
            names.iter().map(|name| open::keyspace(&db, name)).collect::<Result<Vec<_>>>()?;
        // Flush first, so that the memtable's entries count in the sizes before the compaction.
        let flushed = keyspaces.iter().try_for_each(Keyspace::flush);
        let bytes = || keyspaces.iter().map(|one| one.tree().shape.size_bytes()).sum::<u64>();
        let before = bytes();
        let compacted = flushed.map_err(Into::into).and_then(|()| compact(&db, &keyspaces, &range));
        let after = bytes();
        let tables = keyspaces.iter().map(|one| one.tree().shape.table_count()).sum::<usize>();
        let stats = db.stats();
        let closed = db.close();
        compacted?;
        closed?;
        if self.json {
            let compacted = JsonCompacted {
                schema: SCHEMA,
                table_bytes_before: before,
                table_bytes: after,
                tables,
                compaction_bytes_read: stats.compaction_bytes_read,
                compaction_bytes_written: stats.compaction_bytes_written,
            };
            write_line(&mut output::stdout(), &compacted)?;
        } else {
            let (before, after) = (human::bytes(before), human::bytes(after));
            let tables = human::counted(tables as u64, "table");
            let written = human::bytes(stats.compaction_bytes_written);
            let _ = writeln!(
                io::stderr(),
                "compacted {before} of tables to {after} in {tables}; wrote {written}"
            );
        }
        Ok(Exit::Done)
    }

    fn range(&self) -> Result<KeyBounds> {
        use std::ops::Bound::{Excluded, Included};
        let bad = |error: LiteralError| usage(error.to_string());
        match (&self.from, &self.to) {
            (None, _) => Ok(all_keys()),
            (Some(range), None) => parse_range_argument(range).map_err(bad),
            (Some(from), Some(to)) => Ok((
                Included(literal::parse_all(from).map_err(bad)?),
                Excluded(literal::parse_all(to).map_err(bad)?),
            )),
        }
    }
}
