//! `terrane load`: writes the entries of a file into a database.
//!
//! Entries are written in batches. An error or an interruption keeps the entries before it, and the message says which
//! line to go on with. With `--sorted` they are ingested: all of them are loaded, or none.
//!
//! | module | one line |
//! |---|---|
//! | [`arguments`] | the flags of a file |
//! | [`loader`] | writes entries in batches or as an ingest |
//! | [`interruption`] | Ctrl-C and SIGTERM |
//! | [`report`] | what was loaded |

mod arguments;
mod interruption;
mod loader;
mod report;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use clap::Args;
use terrane::{Durability, KeyspaceOptions, Options};

use self::arguments::ReadFlags;
use self::loader::{CountingReader, Loader};
use self::report::Report;
use crate::control::ControlFlag;
use crate::engine_flags::EngineFlags;
use crate::exit::{Exit, usage};
use crate::format_flag::FormatFlag;
use crate::open::DEFAULT_KEYSPACE;
use terrane_lab::host::progress;
use terrane_lab::input::import_export::{EntryFormat, EntryReader, ReadOptions, Skipped};
use terrane_lab::input::spec;
use terrane_lab::output::human;

const EXAMPLES: &str = "\
Formats:
  tsv     key, tab, value; escapes are \\t \\n \\r \\0 \\\\ and \\xff, and \\N is null
  csv     key, comma, value, with quotes as in RFC 4180
  jsonl   {\"key\":\"a\",\"value\":\"1\"}; a number, object or array is stored as its
          text; {\"hex\":\"ff00\"} stands for bytes
  pairs   two 32-bit little-endian numbers each, as in the files of CS 265
  A value has an expiry time, in microseconds since the Unix epoch, if a header or
  a field of jsonl names the column expires_at_micros, or --expiry names it.

  Byte order marks, line ends of Windows and old Macs, and Zstandard are recognised.

Examples:
  terrane load ./db users.tsv
  terrane load ./db words.txt --keys-only
  terrane load ./db cities.csv --key name --value population
  terrane load ./db events.jsonl --key id --value '*'
  terrane load ./db export.csv --delimiter ';' --encoding latin1 --key 1 --value 2,3
  terrane dump ./old | terrane load ./new - --sorted
  terrane load ./db 0.dat --keyspace numbers

Without --sorted, a load that stops keeps the entries before the error, and names
the line to go on with: correct that line, and add --from-line. Loading lines again
does no harm.";

/// Load the entries of a file into a database, which is created if it does not exist
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// The directory of the database
    db: PathBuf,

    /// The file, or - for standard input
    file: PathBuf,

    /// The format [default: from the file extension; tsv for standard input and lists of keys]
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatFlag>,

    #[command(flatten)]
    read: ReadFlags,

    /// The keyspace, which is created if it does not exist
    #[arg(long, value_name = "NAME", default_value = DEFAULT_KEYSPACE)]
    keyspace: String,

    /// The design of a new database; see `terrane design list`
    #[arg(long, value_name = "SPEC")]
    design: Option<String>,

    /// Write tables without the log and memtables, which is several times as fast. The keys must
    /// ascend, each once, as `terrane dump` writes them. All entries are loaded, or none
    #[arg(long)]
    sorted: bool,

    /// Print the result as a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    control: ControlFlag,

    #[command(flatten)]
    engine: EngineFlags,
}

impl LoadArgs {
    /// Loads the file.
    pub(crate) fn run(&self) -> Result<Exit> {
        let format = self.format()?;
        let read_options = self.read.options(format)?;
        let (input, total_bytes) = open_input(&self.file)?;
        let db = self.options()?.open(&self.db)?;
        let control = self.control.serve(&db);
        let begun = Instant::now();
        let bar = match total_bytes {
            Some(total_bytes) => progress::bytes(total_bytes, "loading"),
            None => progress::spinner("loading"),
        };
        let keyspace = db.keyspace(&self.keyspace, KeyspaceOptions::new())?;
        let ingest = if self.sorted { Some(keyspace.begin_ingest()?) } else { None };
        let (input, read_bytes) = CountingReader::new(input);
        let progress = (bar.clone(), read_bytes);
        let mut loader = Loader::new(&keyspace, (&db, &self.file), ingest, progress);
        let read = read_all(&mut loader, input, format, &read_options);
        // The entries before a bad line are kept, unless they are ingested.
        let written = if read.is_ok() || !self.sorted { loader.finish() } else { Ok(()) };
        bar.finish_and_clear();
        let (counts, durability) = (loader.counts(), db.durability());
        drop(control);
        let closed = db.close();
        let time = begun.elapsed();
        let skipped = written.and(read).with_context(|| self.stopped(&loader))?;
        closed?;
        let durability = durability_of(self.sorted, durability);
        Report { counts, skipped, time, durability }.print(self.json)?;
        Ok(Exit::Done)
    }

    fn options(&self) -> Result<Options> {
        let options = self.engine.options()?;
        match &self.design {
            None => Ok(options),
            Some(text) => Ok(options.design(spec::parse(text)?)),
        }
    }

    /// Says what a failed load has loaded, and how to go on.
    fn stopped(&self, loader: &Loader) -> String {
        let file = self.file.display();
        if self.sorted {
            return format!("cannot load {file}, so no entry was loaded");
        }
        let entries = loader.counts().entries;
        let loaded = human::counted(entries, "entry");
        let resume = loader.resume_line().filter(|_| entries > 0).map_or(String::new(), |line| {
            format!("; after correcting it, go on with --from-line {line}")
        });
        format!("cannot load all of {file}; loaded {loaded} before the error{resume}")
    }

    fn format(&self) -> Result<EntryFormat> {
        if let Some(format) = self.format {
            return Ok(format.into());
        }
        if is_standard_input(&self.file) {
            return Ok(EntryFormat::Tsv);
        }
        let lists_keys = self.read.are_keys_only().then_some(EntryFormat::Tsv);
        EntryFormat::of_path(&self.file).or(lists_keys).ok_or_else(|| {
            let file = self.file.display();
            usage(format!("unknown format of {file}; add --format"))
        })
    }
}

fn read_all(
    loader: &mut Loader,
    input: impl Read,
    format: EntryFormat,
    options: &ReadOptions,
) -> Result<Skipped> {
    match EntryReader::new(input, format, options) {
        Ok(mut reader) => loader.rows(&mut reader),
        Err(input) => loader.pairs(input),
    }
}

/// Returns the durability of the entries, as text. An ingest is synced.
fn durability_of(is_sorted: bool, durability: Durability) -> String {
    if is_sorted { Durability::Sync } else { durability }.to_string()
}

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Opens a file, and returns its length if the length is known.
fn open_input(path: &Path) -> Result<(Box<dyn Read>, Option<u64>)> {
    if is_standard_input(path) {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let opened = File::open(path).and_then(|file| {
        let metadata = file.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok((file, metadata.is_file().then_some(metadata.len())))
    });
    let (file, length) = opened.with_context(|| format!("cannot open {}", path.display()))?;
    Ok((Box::new(file), length))
}
