//! `terrane cs265`: the command language of Harvard's CS 265 on standard input, on Dent's tree.
//!
//! | command | answer |
//! |---|---|
//! | `p KEY VALUE` | none; sets the value of a key |
//! | `g KEY` | a line: the value, or nothing |
//! | `r KEY KEY` | a line: `key:value` with blanks between, first key included, last one not |
//! | `d KEY` | none; removes a key |
//! | `l "PATH"` | none; sets all pairs of a binary file |
//! | `s` | statistics, see [`statistics`] |
//!
//! Keys are signed 32-bit numbers, values too, but for -2147483648, which is Dent's tombstone. A
//! line that is none of these is an error on standard error with its number; the lines before and
//! after it count, and the exit status is 1.
//!
//! The depth of a tree is no limit here, unless `--fixed-depth` asks for the paper's; see
//! [`room`].

mod command;
mod pending;
mod room;
mod statistics;

use std::fs::File;
use std::io::{self, BufWriter, StdoutLock, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use terrane::policy::catalogue;
use terrane::{Db, Design, Durability, Options, WriteBatch};

use self::command::{Command, TOMBSTONE};
use self::pending::Pending;
use self::room::Room;
use crate::entries::pairs::{PairReader, decode, encode};
use crate::exit::{self, Exit};
use crate::open;
use terrane_lab::interrupt;
use terrane_lab::lines::Lines;
use terrane_lab::passing_storage::PassingStorage;
use terrane_lab::quantity::{count_in, number_in};
use terrane_lab::scratch::Scratch;

/// Entries of a page, of which `-b` gives the number: Dent's pages have 4096 bytes, his entries 8.
const PAGE_ENTRIES: u64 = 512;

/// Pages of the buffer, unless `-b` says otherwise.
const PAGES_DEFAULT: u32 = 1000;

/// Bytes that an entry takes in a memtable of the default kind, measured: a buffer is full by its
/// bytes, and Dent's by its entries.
const BUFFERED_ENTRY_BYTES: u64 = 49;

/// Answers that are held back while there is input at hand, in bytes.
const OUT_BYTES: usize = 64 << 10;

const EXAMPLES: &str = "\
Commands, a line each:
  p KEY VALUE   set            g KEY       get           r FROM TO   range, TO not included
  d KEY         delete         l \"FILE\"    load pairs    s           statistics

Examples:
  printf 'p 10 7\\np 13 2\\nr 0 100\\n' | terrane cs265
  terrane cs265 -b 100 -f 4 -r 10 < workload.txt
  terrane cs265 --db ./db < workload.txt";

/// Run the CS 265 command language from standard input.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cs265Args {
    /// The buffer, in pages of 512 entries, which are 4096 bytes [default: 1000]
    #[arg(short, value_name = "PAGES", value_parser = count_in::<u32>(1..=1_000_000))]
    buffer: Option<u32>,

    /// Runs that a level gathers, and the size ratio between levels [default: 10]
    #[arg(short, value_name = "FANOUT", value_parser = count_in::<u32>(2..=1000))]
    fanout: Option<u32>,

    /// Levels of the tree, with --fixed-depth; without, it grows as it must
    #[arg(short, value_name = "DEPTH", default_value_t = 5, value_parser = count_in::<u32>(1..=u64::MAX))]
    depth: u32,

    /// Threads that search the runs for each get and range; 1 for none beside the caller
    #[arg(short, value_name = "THREADS", default_value_t = 4, value_parser = count_in::<u32>(1..=64))]
    threads: u32,

    /// Filter bits for each key; may be a fraction [default: 0.5]
    #[arg(short = 'r', value_name = "BITS", value_parser = number_in(0.0..=64.0))]
    bits: Option<f64>,

    /// Keep the data in a database in this directory, made if there is none, instead of a
    /// temporary one
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,

    /// End with an error when the tree would need more than DEPTH levels, as in the paper
    #[arg(long, conflicts_with = "db")]
    fixed_depth: bool,
}

impl Cs265Args {
    /// Carries out what is on standard input.
    pub(crate) fn run(&self) -> Result<Exit> {
        let scratch = match self.db {
            Some(_) => None,
            None => Some(Scratch::temporary("terrane-cs265-")?),
        };
        let db = self.open(scratch.as_ref())?;
        let mut session = Session {
            db,
            pending: Pending::new(self.buffer_entries()),
            room: self.fixed_depth.then(|| Room::new(self)),
            out: BufWriter::with_capacity(OUT_BYTES, io::stdout().lock()),
            failed: None,
        };
        let done = session.run();
        // A database that stays must be whole, also when an answer could not be written.
        let closed = session.db.close();
        done?;
        closed?;
        Ok(session.failed.unwrap_or(Exit::Done))
    }

    fn open(&self, scratch: Option<&Scratch>) -> Result<Db> {
        let mut options = Options::new();
        let threads = if self.threads == 1 { 0 } else { self.threads as usize };
        options = options.read_threads(threads);
        let path = match (&self.db, scratch) {
            (Some(path), _) => path,
            (None, Some(scratch)) => {
                // Dent's tree lives no longer than the process either.
                options = options.durability(Durability::None).storage(Arc::new(PassingStorage));
                &scratch.path().to_owned()
            }
            (None, None) => return Err(anyhow!("there is no directory for the database")),
        };
        let has_settings = self.buffer.is_some() || self.fanout.is_some() || self.bits.is_some();
        if has_settings || !open::is_there(path) {
            let design = self.design()?;
            let budget_bytes = (design.buffer_bytes * 8).max(512 << 20);
            options = options.memory_budget(budget_bytes).design(design);
        }
        Ok(options.open(path)?)
    }

    fn buffer_entries(&self) -> u64 {
        u64::from(self.buffer.unwrap_or(PAGES_DEFAULT)) * PAGE_ENTRIES
    }

    /// Dent's design with the settings that were given.
    fn design(&self) -> Result<Design> {
        let entry = catalogue::find("dent").context("the design 'dent' is missing")?;
        let mut design = (entry.design)();
        design.buffer_bytes = self.buffer_entries() * BUFFERED_ENTRY_BYTES;
        if let Some(fanout) = self.fanout {
            design.strategy.size_ratio = fanout;
            design.strategy.level0_runs = fanout;
            let limits = &mut design.constraint;
            limits.delay_runs = limits.delay_runs.max(2 * fanout);
            limits.stop_runs = limits.stop_runs.max(4 * fanout);
        }
        if let Some(bits) = self.bits {
            design.filter_bits = terrane::policy::design::PerLevel::all(bits);
        }
        design.validate().map_err(|error| exit::usage(error.to_string()))?;
        Ok(design)
    }
}

/// A run of the language.
struct Session {
    db: Db,
    pending: Pending,
    room: Option<Room>,
    out: BufWriter<StdoutLock<'static>>,
    failed: Option<Exit>,
}

/// Whether the next line is to be read.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

impl Session {
    fn run(&mut self) -> Result<()> {
        let mut lines = Lines::new(io::stdin().lock());
        loop {
            while let Some(line) = lines.take() {
                let number = lines.number();
                if self.line(lines.text(line), number)? == Next::End {
                    return self.out.flush().map_err(Into::into);
                }
            }
            self.write_pending()?;
            self.out.flush()?;
            if !lines.wait().context("cannot read standard input")? {
                return Ok(());
            }
        }
    }

    fn line(&mut self, line: &[u8], number: u64) -> Result<Next> {
        let done = match command::parse(line) {
            Ok(None) => Ok(()),
            Ok(Some(command)) => self.command(command, number),
            Err(message) => Err(anyhow!(message)),
        };
        let Err(error) = done else { return Ok(Next::GoOn) };
        if exit::is_broken_pipe(&error) {
            return Err(error);
        }
        self.write_pending()?;
        self.complain(error, number)?;
        let is_full = self.room.as_ref().is_some_and(Room::is_full);
        Ok(if is_full { Next::End } else { Next::GoOn })
    }

    fn complain(&mut self, error: anyhow::Error, line: u64) -> Result<()> {
        interrupt::wait_if_ending();
        self.out.flush()?;
        self.failed = Some(exit::worse(self.failed, &error));
        crate::complain(&error.context(format!("line {line}")));
        Ok(())
    }

    /// Writes the puts and deletes that were put off.
    fn write_pending(&mut self) -> Result<()> {
        for (line, error) in self.pending.write(&self.db) {
            self.complain(error.into(), line)?;
        }
        Ok(())
    }

    fn command(&mut self, command: Command, line: u64) -> Result<()> {
        let change = match command {
            Command::Put { key, value } => Some((key, Some(value))),
            Command::Delete { key } => Some((key, None)),
            _ => None,
        };
        if let Some((key, value)) = change {
            self.take_room(key)?;
            self.pending.add(line, key, value);
            return if self.pending.is_full() { self.write_pending() } else { Ok(()) };
        }
        self.write_pending()?;
        match command {
            // Put off above.
            Command::Put { .. } | Command::Delete { .. } => Ok(()),
            Command::Get { key } => {
                if let Some(value) = self.db.get(encode(key))? {
                    write!(self.out, "{}", number(&value)?)?;
                }
                Ok(writeln!(self.out)?)
            }
            Command::Range { start, end } => self.range(start, end),
            Command::Load { path } => self.load(&path),
            Command::Statistics => statistics::write(&self.db, &mut self.out),
        }
    }

    fn take_room(&mut self, key: i32) -> Result<()> {
        match &mut self.room {
            Some(room) => room.take(key),
            None => Ok(()),
        }
    }

    fn range(&mut self, start: i32, end: i32) -> Result<()> {
        if start < end {
            let mut entries = self.db.range(encode(start)..encode(end))?;
            let mut is_first = true;
            while entries.advance()? {
                let (key, value) = (number(entries.key())?, number(entries.value())?);
                let blank = if is_first { "" } else { " " };
                write!(self.out, "{blank}{key}:{value}")?;
                is_first = false;
            }
        }
        Ok(writeln!(self.out)?)
    }

    /// Sets the pairs of a file; what is before a bad one stays.
    fn load(&mut self, path: &str) -> Result<()> {
        let file = File::open(path).with_context(|| format!("cannot open '{path}'"))?;
        let mut pairs = PairReader::new(file);
        let mut batch = WriteBatch::new();
        let mut count = 0_u64;
        loop {
            let some = pairs.read().with_context(|| format!("cannot read '{path}'"))?;
            if some.is_empty() {
                return Ok(());
            }
            let mut bad = None;
            for (key, value) in some {
                count += 1;
                let fits = if value == TOMBSTONE {
                    Err(anyhow!("pair {count} of '{path}': {}", command::VALUE_RANGE))
                } else {
                    self.take_room(key)
                };
                if let Err(error) = fits {
                    bad = Some(error);
                    break;
                }
                batch.put(encode(key), encode(value));
            }
            self.db.write(&batch)?;
            batch.clear();
            if let Some(error) = bad {
                return Err(error);
            }
        }
    }
}

/// A number of the database.
fn number(bytes: &[u8]) -> Result<i32> {
    decode(bytes).ok_or_else(|| {
        let literal = crate::literal::print(bytes);
        anyhow!("the database holds {literal}, which is no entry of CS 265")
    })
}
