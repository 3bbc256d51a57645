//! `terrane flush`: writes memtables into tables.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde::Serialize;
use terrane_control::{Reply, Request};

use crate::database::{change, unexpected};
use crate::exit::Exit;
use crate::output;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// Write the memtables of a database into tables
///
/// This frees the log that they needed. If another process has the database open, that process
/// flushes.
#[derive(Debug, Clone, Args)]
pub(crate) struct FlushArgs {
    /// The directory of the database
    db: PathBuf,

    /// The keyspace [default: all]
    #[arg(long, value_name = "NAME")]
    keyspace: Option<String>,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct JsonFlushed {
    schema: u32,
    entries: u64,
    memtable_bytes: u64,
    seconds: f64,
}

impl FlushArgs {
    /// Flushes the database.
    pub(crate) fn run(&self) -> Result<Exit> {
        let reply = change(&self.db, &Request::Flush { keyspace: self.keyspace.clone() })?;
        let Reply::Flushed { entries, memtable_bytes, seconds } = reply else {
            return Err(unexpected(&reply));
        };
        if self.json {
            let flushed = JsonFlushed { schema: SCHEMA, entries, memtable_bytes, seconds };
            write_line(&mut output::stdout(), &flushed)?;
        } else {
            let (entries, bytes) = (human::counted(entries, "entry"), human::bytes(memtable_bytes));
            let _ = writeln!(io::stderr(), "flushed {entries}, {bytes} of memtables");
        }
        Ok(Exit::Done)
    }
}
