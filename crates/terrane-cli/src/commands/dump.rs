//! `terrane dump`: writes the entries of a database in a format of `load`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use terrane::Keyspace;

use crate::exit::{Exit, usage};
use crate::format_flag::FormatFlag;
use crate::open::{self, DEFAULT_KEYSPACE};
use crate::output;
use terrane_lab::host::progress;
use terrane_lab::input::import_export::{Entry, EntryFormat, EntryWriter, Parts, WriteOptions};
use terrane_lab::input::kv_literal::{
    self, KeyBounds, all_keys, parse_range_argument, prefix_bounds,
};
use terrane_lab::output::human;

const OUT_BYTES: usize = 256 << 10;

/// The number of entries between two updates of the progress.
const PROGRESS_EVERY: u64 = 4096;

const EXAMPLES: &str = "\
Formats: see `terrane load --help`. csv has a header, tsv only if values may expire:
then both have a third column, expires_at_micros, which is empty for values that
do not expire. In jsonl, bytes that are not UTF-8 are {\"hex\":\"ff00\"}. csv has all
bytes as they are.

Examples:
  terrane dump ./db > all.tsv
  terrane dump ./db users.jsonl --prefix user:
  terrane dump ./db --keys-only > keys.txt
  terrane dump ./db numbers.dat --keyspace numbers";

/// Write the entries of a database, in order, in a format of `terrane load`
///
/// The database is opened read-only, so it may be in use. `terrane load` reads every dump back, with the expiry times
/// of values, if it has the same flags --keys-only and --raw.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DumpArgs {
    /// The directory of the database
    db: PathBuf,

    /// The output file, which must not exist without --force [default: standard output]
    file: Option<PathBuf>,

    /// The format [default: from the file extension; tsv for standard output]
    #[arg(long, value_name = "FORMAT")]
    format: Option<FormatFlag>,

    /// Write keys without values
    #[arg(long)]
    keys_only: bool,

    /// Write tsv without escapes. Stops at an entry that could not be read back, such as one with a line end
    #[arg(long)]
    raw: bool,

    /// The keyspace
    #[arg(long, value_name = "NAME", default_value = DEFAULT_KEYSPACE)]
    keyspace: String,

    /// Only the keys of a range, such as a..m
    #[arg(long, value_name = "RANGE", conflicts_with = "prefix")]
    range: Option<String>,

    /// Only the keys with this prefix
    #[arg(long, value_name = "PREFIX")]
    prefix: Option<String>,

    /// Overwrite an existing file
    #[arg(long)]
    force: bool,
}

impl DumpArgs {
    /// Writes the entries.
    pub(crate) fn run(&self) -> Result<Exit> {
        let format = self.format()?;
        let bounds = self.bounds()?;
        let db = open::read_only(&self.db)?;
        let keyspace = open::keyspace(&db, &self.keyspace)?;
        let to_file = self.file.as_deref().filter(|path| path.as_os_str() != "-");
        let entries = match to_file {
            None => self.write(&keyspace, bounds, format, &mut output::stdout())?,
            Some(path) => {
                let mut file = self.create(path)?;
                let entries = self
                    .write(&keyspace, bounds, format, &mut file)
                    .with_context(|| format!("{} is incomplete", path.display()))?;
                let about = human::counted(entries, "entry");
                let _ = writeln!(io::stderr(), "wrote {about} to {}", path.display());
                entries
            }
        };
        let others = open::other_keyspaces(&db, &self.keyspace);
        if !others.is_empty() && entries > 0 {
            let others = others.join(", ");
            let _ = writeln!(io::stderr(), "note: keyspaces not dumped: {others}; see --keyspace");
        }
        Ok(Exit::Done)
    }

    fn create(&self, path: &Path) -> Result<File> {
        let is_taken = !self.force && std::fs::metadata(path).is_ok_and(|found| found.is_file());
        if is_taken {
            return Err(anyhow!("{} exists already; use --force to overwrite it", path.display()));
        }
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).open(path);
        file.with_context(|| format!("cannot write {}", path.display()))
    }

    fn format(&self) -> Result<EntryFormat> {
        let path = self.file.as_deref().filter(|path| path.as_os_str() != "-");
        // A device or a pipe is like standard output.
        let is_special = |path: &Path| {
            std::fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir())
        };
        let format = match (self.format, path) {
            (Some(format), _) => format.into(),
            (None, None) => EntryFormat::Tsv,
            (None, Some(path)) => match EntryFormat::of_path(path) {
                Some(format) => format,
                None if is_special(path) => EntryFormat::Tsv,
                None => {
                    let path = path.display();
                    return Err(usage(format!("unknown format of {path}; add --format")));
                }
            },
        };
        if self.raw && format != EntryFormat::Tsv {
            return Err(usage(format!("--raw does not apply to the format {}", format.name())));
        }
        if self.keys_only && format == EntryFormat::Pairs {
            return Err(usage("--keys-only does not apply to the format pairs"));
        }
        Ok(format)
    }

    fn bounds(&self) -> Result<KeyBounds> {
        let bad = |error: kv_literal::LiteralError| usage(error.to_string());
        match (&self.range, &self.prefix) {
            (Some(range), _) => parse_range_argument(range).map_err(bad),
            (None, Some(prefix)) => Ok(prefix_bounds(&kv_literal::parse_all(prefix).map_err(bad)?)),
            (None, None) => Ok(all_keys()),
        }
    }
    /// Writes the entries and counts them.
    fn write(
        &self,
        keyspace: &Keyspace,
        bounds: KeyBounds,
        format: EntryFormat,
        out: &mut dyn Write,
    ) -> Result<u64> {
        let mut out = BufWriter::with_capacity(OUT_BYTES, out);
        let about = keyspace.approximate_len(bounds.clone()).unwrap_or(0);
        let parts = if self.keys_only { Parts::Keys } else { Parts::Entries };
        // The database is open for reading only, so the answer holds for all entries.
        let has_expiry = keyspace.may_expire();
        let options = WriteOptions { format, parts, has_expiry, is_raw: self.raw };
        let mut writer = EntryWriter::new(options);
        let mut entries = keyspace.range(bounds)?;
        let bar = progress::bar(about, "dumping");
        writer.begin(&mut out)?;
        let mut count = 0;
        let done = loop {
            match entries.advance() {
                Ok(true) => {}
                Ok(false) => break Ok(count),
                Err(error) => break Err(error.into()),
            }
            let (key, value, expires_at_micros) =
                (entries.key(), entries.value(), entries.expires_at_micros());
            writer.write(&mut out, Entry { key, value, expires_at_micros })?;
            count += 1;
            if count % PROGRESS_EVERY == 0 {
                // The number of entries is an estimate.
                bar.set_length(about.max(count));
                bar.set_position(count);
                bar.set_message(human::counted(count, "entry"));
            }
        };
        bar.finish_and_clear();
        // The entries before an error are written as well.
        out.flush()?;
        done
    }
}
