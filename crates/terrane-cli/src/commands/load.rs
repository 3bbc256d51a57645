//! `terrane load`: writes the entries of a file into a database.
//!
//! Entries are written in batches. Entries before a bad line are kept; an interruption loses only the
//! last batch. With `--sorted` they are ingested: all of them are loaded, or none.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use indicatif::ProgressBar;
use serde::Serialize;
use terrane::{Db, Durability, Ingest, Keyspace, KeyspaceOptions, WriteBatch};

use crate::control::ControlFlag;
use crate::engine_flags::EngineFlags;
use crate::exit::{Exit, usage};
use crate::format_flag::FormatFlag;
use crate::open::DEFAULT_KEYSPACE;
use crate::output;
use terrane_lab::host::progress;
use terrane_lab::input::import_export::{Entry, EntryFormat, csv, jsonl, pairs, tsv};
use terrane_lab::input::lines::Lines;
use terrane_lab::input::spec;
use terrane_lab::output::human;
use terrane_lab::output::json::{SCHEMA, write_line};

/// The size of a batch in bytes of keys and values: large enough to amortise the cost of a write,
/// and small compared with a memtable.
const BATCH_BYTES: usize = 256 << 10;

const EXAMPLES: &str = "\
Formats:
  tsv     key, tab, value; escapes are \\t \\n \\r \\0 \\\\ and \\xff
  csv     key, comma, value, with quotes as in RFC 4180; a header key,value is
          optional
  jsonl   {\"key\":\"a\",\"value\":\"1\"}; invalid UTF-8 is {\"hex\":\"ff00\"}
  pairs   two 32-bit little-endian numbers each, as in the files of CS 265
  A value may have an expiry time in microseconds since the Unix epoch: after \\e at
  the end of a tsv line, in a third csv field, or as \"expires_at_micros\" in jsonl.

Examples:
  terrane load ./db users.tsv
  terrane dump ./old | terrane load ./new -
  terrane dump ./old | terrane load ./new - --sorted
  terrane load ./db 0.dat --keyspace numbers";

/// Load the entries of a file into a database, which is created if it does not exist
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LoadArgs {
    /// The directory of the database
    db: PathBuf,

    /// The file, or - for standard input
    file: PathBuf,

    /// The format [default: from the file extension; tsv for standard input]
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatFlag>,

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

#[derive(Serialize)]
struct JsonLoaded {
    schema: u32,
    entries: u64,
    user_bytes: u64,
    seconds: f64,
    durability: String,
}

impl LoadArgs {
    /// Loads the file.
    pub(crate) fn run(&self) -> Result<Exit> {
        let format = self.format()?;
        let (input, total_bytes) = open_input(&self.file)?;
        let mut options = self.engine.options()?;
        if let Some(text) = &self.design {
            options = options.design(spec::parse(text)?);
        }
        let db = options.open(&self.db)?;
        let control = self.control.serve(&db);
        let begun = Instant::now();
        let bar = match total_bytes {
            Some(total_bytes) => progress::bytes(total_bytes, "loading"),
            None => progress::spinner("loading"),
        };
        let keyspace = db.keyspace(&self.keyspace, KeyspaceOptions::new())?;
        let ingest = if self.sorted { Some(keyspace.begin_ingest()?) } else { None };
        let mut loader = Loader::new(db, keyspace, ingest, bar);
        let read = match format {
            EntryFormat::Tsv => loader.lines(input, tsv::parse),
            EntryFormat::Csv => loader.csv(input),
            EntryFormat::Jsonl => loader.lines(input, jsonl::parse),
            EntryFormat::Pairs => loader.pairs(input),
        };
        // The entries before a bad line are kept, unless they are ingested.
        let written = if read.is_ok() || !self.sorted { loader.finish() } else { Ok(()) };
        loader.bar.finish_and_clear();
        let Loader { db, entries, user_bytes, .. } = loader;
        let durability = db.durability();
        drop(control);
        let closed = db.close();
        let seconds = begun.elapsed();
        written.and(read).with_context(|| {
            let file = self.file.display();
            if self.sorted {
                return format!("cannot load {file}, so no entry was loaded");
            }
            let entries = human::counted(entries, "entry");
            format!("cannot load all of {file}; loaded {entries} before the error")
        })?;
        closed?;
        if self.json {
            let durability = durability_of(self.sorted, durability);
            let seconds = seconds.as_secs_f64();
            let loaded = JsonLoaded { schema: SCHEMA, entries, user_bytes, seconds, durability };
            write_line(&mut output::stdout(), &loaded)?;
        } else {
            let (entries, bytes) = (human::counted(entries, "entry"), human::bytes(user_bytes));
            let time = human::duration(seconds);
            let durability = durability_of(self.sorted, durability);
            let _ = writeln!(
                io::stderr(),
                "loaded {entries}, {bytes}, in {time} · durability {durability}"
            );
        }
        Ok(Exit::Done)
    }

    fn format(&self) -> Result<EntryFormat> {
        if let Some(format) = self.format {
            return Ok(format.into());
        }
        if is_standard_input(&self.file) {
            return Ok(EntryFormat::Tsv);
        }
        EntryFormat::of_path(&self.file).ok_or_else(|| {
            let file = self.file.display();
            usage(format!("unknown format of {file}; add --format"))
        })
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

/// A running load.
struct Loader {
    db: Db,
    keyspace: Keyspace,
    /// With `--sorted`, receives the entries instead of the batch.
    ingest: Option<Ingest>,
    batch: WriteBatch,
    batch_bytes: usize,
    entries: u64,
    user_bytes: u64,
    bar: ProgressBar,
}

impl Loader {
    fn new(db: Db, keyspace: Keyspace, ingest: Option<Ingest>, bar: ProgressBar) -> Self {
        let batch = WriteBatch::new();
        Self { db, keyspace, ingest, batch, batch_bytes: 0, entries: 0, user_bytes: 0, bar }
    }

    fn lines(&mut self, input: impl Read, parse: fn(&[u8]) -> Result<Entry, String>) -> Result<()> {
        let mut lines = Lines::new(input);
        loop {
            while let Some(line) = lines.take() {
                let text = lines.text(line);
                if text.trim_ascii().is_empty() && !text.contains(&b'\t') {
                    continue;
                }
                let number = lines.number();
                let entry = parse(text).map_err(|what| anyhow!("line {number}: {what}"))?;
                self.add(&entry).with_context(|| format!("line {number}"))?;
            }
            self.write()?;
            self.bar.set_position(lines.taken_bytes());
            if !lines.wait()? {
                return Ok(());
            }
        }
    }

    fn csv(&mut self, input: impl Read) -> Result<()> {
        let mut reader = csv::CsvReader::new(input);
        while let Some(entry) = reader.read().map_err(|what| anyhow!(what))? {
            self.add(&entry).with_context(|| format!("line {}", reader.line()))?;
            self.bar.set_position(reader.bytes());
        }
        self.write()
    }

    fn pairs(&mut self, input: impl Read) -> Result<()> {
        let mut reader = pairs::PairReader::new(input);
        loop {
            let pairs = reader.read()?;
            if pairs.is_empty() {
                break;
            }
            for pair in pairs {
                self.add(&pairs::entry(pair))?;
            }
            self.write()?;
            self.bar.set_position(self.entries * 8);
        }
        match reader.left_over_bytes() {
            0 => Ok(()),
            bytes => Err(anyhow!(
                "the last {} are not a whole pair",
                human::counted(bytes as u64, "byte")
            )),
        }
    }

    fn add(&mut self, Entry { key, value, expires_at_micros }: &Entry) -> Result<()> {
        // The engine rejects a whole batch for one invalid entry.
        if key.len() > terrane::MAX_KEY_LEN {
            let (found, most) = (human::bytes(key.len() as u64), terrane::MAX_KEY_LEN);
            return Err(anyhow!("the key has {found}; keys have at most {most} bytes"));
        }
        if value.len() > terrane::MAX_VALUE_LEN {
            let (found, most) = (human::bytes(value.len() as u64), terrane::MAX_VALUE_LEN);
            return Err(anyhow!("the value has {found}; values have at most {most} bytes"));
        }
        if let Some(ingest) = &mut self.ingest {
            match expires_at_micros {
                Some(expires_at) => ingest.put_with_expiry(key, value, *expires_at)?,
                None => ingest.put(key, value)?,
            }
            self.entries += 1;
            self.user_bytes += (key.len() + value.len()) as u64;
            return Ok(());
        }
        match expires_at_micros {
            Some(expires_at) => {
                self.batch.put_with_expiry_in(&self.keyspace, key, value, *expires_at)
            }
            None => self.batch.put_in(&self.keyspace, key, value),
        };
        self.batch_bytes += key.len() + value.len();
        if self.batch_bytes >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    /// Writes the last batch, or commits the ingest.
    fn finish(&mut self) -> Result<()> {
        match self.ingest.take() {
            Some(ingest) => Ok(ingest.commit()?),
            None => self.write(),
        }
    }

    fn write(&mut self) -> Result<()> {
        let entries = self.batch.len() as u64;
        let done = if entries == 0 { Ok(()) } else { self.db.write(&self.batch) };
        self.batch.clear();
        let bytes = std::mem::take(&mut self.batch_bytes);
        done?;
        self.entries += entries;
        self.user_bytes += bytes as u64;
        Ok(())
    }
}
