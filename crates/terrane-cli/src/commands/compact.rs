//! `terrane compact`: merges a database until no old version is left.

use std::io::{self, Write};
use std::ops::Bound;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_control::{Bytes, Reply, Request};

use crate::database::{change, unexpected};
use crate::exit::{Exit, usage};
use crate::open;
use crate::output;
use terrane_lab::input::kv_literal::{self, LiteralError, parse_range_argument};
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

const EXAMPLES: &str = "\
Examples:
  terrane compact ./db
  terrane compact ./db user:a user:m     (keys from user:a, before user:m)
  terrane compact ./db user:a..=user:m --keyspace people";

/// Merge a range of keys into the last level that holds any of them
///
/// This removes every overwritten and deleted value of the range. Without --keyspace and a range,
/// the whole database is merged. If another process has the database open, that process merges it.
/// Ctrl-C cancels; finished merges stay.
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

#[derive(Serialize)]
struct JsonCompacted {
    schema: u32,
    table_bytes_before: u64,
    table_bytes: u64,
    tables: u64,
    compaction_bytes_read: u64,
    compaction_bytes_written: u64,
}

impl CompactArgs {
    /// Merges the range.
    pub(crate) fn run(&self) -> Result<Exit> {
        let (from, to) = self.range()?;
        // `..` is a range too.
        let default = self.from.as_ref().map(|_| open::DEFAULT_KEYSPACE.to_owned());
        let request = Request::Compact { keyspace: self.keyspace.clone().or(default), from, to };
        let reply = change(&self.db, &request)?;
        let Reply::Compacted(compacted) = reply else { return Err(unexpected(&reply)) };
        if self.json {
            let compacted = JsonCompacted {
                schema: SCHEMA,
                table_bytes_before: compacted.table_bytes_before,
                table_bytes: compacted.table_bytes,
                tables: compacted.tables,
                compaction_bytes_read: compacted.compaction_bytes_read,
                compaction_bytes_written: compacted.compaction_bytes_written,
            };
            write_line(&mut output::stdout(), &compacted)?;
        } else {
            let before = human::bytes(compacted.table_bytes_before);
            let after = human::bytes(compacted.table_bytes);
            let tables = human::counted(compacted.tables, "table");
            let written = human::bytes(compacted.compaction_bytes_written);
            let _ = writeln!(
                io::stderr(),
                "compacted {before} of tables to {after} in {tables}; wrote {written}"
            );
        }
        Ok(Exit::Done)
    }

    /// Returns the first key of the range, and the first key after it.
    fn range(&self) -> Result<(Option<Bytes>, Option<Bytes>)> {
        let bad = |error: LiteralError| usage(error.to_string());
        match (&self.from, &self.to) {
            (None, _) => Ok((None, None)),
            (Some(range), None) => {
                let (from, to) = parse_range_argument(range).map_err(bad)?;
                Ok((first(from), after(to)))
            }
            (Some(from), Some(to)) => Ok((
                Some(Bytes(kv_literal::parse_all(from).map_err(bad)?)),
                Some(Bytes(kv_literal::parse_all(to).map_err(bad)?)),
            )),
        }
    }
}

/// Returns the smallest key of a range with this start; `None` if it is unbounded.
fn first(begin: Bound<Vec<u8>>) -> Option<Bytes> {
    match begin {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(Bytes(key)),
        Bound::Excluded(key) => Some(Bytes(successor(key))),
    }
}

/// Returns the smallest key after a range with this end; `None` if it is unbounded.
fn after(end: Bound<Vec<u8>>) -> Option<Bytes> {
    match end {
        Bound::Unbounded => None,
        Bound::Included(key) => Some(Bytes(successor(key))),
        Bound::Excluded(key) => Some(Bytes(key)),
    }
}

/// Returns the next key in bytewise order.
fn successor(mut key: Vec<u8>) -> Vec<u8> {
    key.push(0);
    key
}
