//! `terrane cs265`: the command language of Harvard's CS 265 on standard input, on Dent's tree.
//!
//! [`terrane_lab::cs265`] describes the language. A bad line is reported on standard error with its
//! number; the lines before and after it count, and the exit status is 1.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use terrane::{Db, Design, Durability, Options, ReadMode, WriteMode};
use terrane_lab::cs265::{Cs265Session, FixedDepth, PAGE_ENTRIES};
use terrane_lab::passing_storage::PassingStorage;
use terrane_lab::quantity::{count_in, number_in};
use terrane_lab::scratch::Scratch;
use terrane_policy::catalogue;
use terrane_policy::design::MemtableKind;

use crate::control::ControlFlag;
use crate::exit::{self, Exit};
use crate::open;
use crate::output;
use crate::terminal::{Paint, is_input_from_person};

/// The number of pages in the buffer without `-b`.
const PAGES_DEFAULT: u32 = 1000;

/// The size ratio of Dent's tree.
const DENT_FANOUT: u32 = 10;

/// The measured size of an entry in a memtable of the default kind, in bytes. Our buffer is limited
/// by bytes, and Dent's by entries.
const BUFFERED_ENTRY_BYTES: u64 = 49;

/// The buffer of answers, which are flushed before a wait for input.
const OUT_BYTES: usize = 64 << 10;

const EXAMPLES: &str = "\
Commands, a line each:
  p KEY VALUE  set       g KEY     get         r FROM TO  range, TO excluded
  d KEY        delete    l \"FILE\"  load pairs  s          statistics

Examples:
  printf 'p 10 7\\np 13 2\\nr 0 100\\n' | terrane cs265
  terrane cs265 -b 100 -f 4 -r 10 < workload.txt
  terrane cs265 --db ./db < workload.txt";

/// Run the CS 265 command language from standard input
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cs265Args {
    /// The buffer, in pages of 512 entries, which are 4096 bytes [default: 1000]
    #[arg(short, value_name = "PAGES", value_parser = count_in::<u32>(1..=1_000_000))]
    buffer: Option<u32>,

    /// Runs per level, and the size ratio between levels [default: 10]
    #[arg(short, value_name = "FANOUT", value_parser = count_in::<u32>(2..=1000))]
    fanout: Option<u32>,

    /// Levels of the tree with --fixed-depth; without it, the tree grows as needed
    #[arg(short, value_name = "DEPTH", default_value_t = 5, value_parser = count_in::<u32>(1..=u64::MAX))]
    depth: u32,

    /// Runs that a get reads at the same time, if they must be read from a disk
    #[arg(short, value_name = "THREADS", default_value_t = 4, value_parser = count_in::<u32>(1..=64))]
    threads: u32,

    /// Filter bits per key; may be a fraction [default: 0.5]
    #[arg(short = 'r', value_name = "BITS", value_parser = number_in(0.0..=64.0))]
    bits: Option<f64>,

    /// The kind of buffer, with its settings, such as 'skiplist' or 'vector(query=scan)'
    /// [default: that of the design `dent`]
    #[arg(long, value_name = "KIND")]
    memtable: Option<MemtableKind>,

    /// Read and write the tables past the page cache, and keep few of their blocks in memory
    #[arg(long)]
    direct: bool,

    /// Keep the data in a database in this directory, created if it does not exist
    /// [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,

    /// Fail when the tree would need more than DEPTH levels, as in the paper
    #[arg(long, conflicts_with = "db")]
    fixed_depth: bool,

    #[command(flatten)]
    control: ControlFlag,
}

impl Cs265Args {
    /// Runs the commands on standard input.
    pub(crate) fn run(&self) -> Result<Exit> {
        let scratch = match self.db {
            Some(_) => None,
            None => Some(Scratch::temporary("terrane-cs265-")?),
        };
        let db = self.open(scratch.as_ref())?;
        // Nobody knows the directory of a temporary database.
        let control = if scratch.is_none() { self.control.serve(&db) } else { None };
        let fanout = self.fanout.unwrap_or(DENT_FANOUT);
        if is_input_from_person() {
            let hint = "commands: p KEY VALUE, g KEY, r FROM TO, d KEY, l \"FILE\", s; Ctrl-D ends";
            let _ = writeln!(io::stderr(), "{}", Paint::stderr().dim(hint));
        }
        let depth = FixedDepth::new(self.buffer_entries(), fanout, self.depth);
        let out = BufWriter::with_capacity(OUT_BYTES, output::stdout());
        let mut failed = None;
        let mut on_error = |error: anyhow::Error| {
            failed = Some(exit::worse(failed, &error));
            exit::print_error(&error);
        };
        let depth = self.fixed_depth.then_some(depth);
        let done = Cs265Session::new(&db, self.buffer_entries(), depth, out, &mut on_error)
            .run(io::stdin().lock());
        // Close a database that is kept even if an answer could not be written.
        drop(control);
        let closed = db.close();
        done?;
        closed?;
        Ok(failed.unwrap_or(Exit::Done))
    }

    fn open(&self, scratch: Option<&Scratch>) -> Result<Db> {
        let mut options = Options::new();
        let threads = if self.threads == 1 { 0 } else { self.threads as usize };
        options = options.read_threads(threads);
        let path = match (&self.db, scratch) {
            (Some(path), _) => path,
            (None, Some(scratch)) => {
                // Dent's tree does not outlive its process either.
                options = options.durability(Durability::None).storage(Arc::new(PassingStorage));
                &scratch.path().to_owned()
            }
            (None, None) => return Err(anyhow!("no directory for the database")),
        };
        let has_settings = self.buffer.is_some()
            || self.fanout.is_some()
            || self.bits.is_some()
            || self.memtable.is_some();
        if self.direct {
            options = options.read_mode(ReadMode::Direct).write_mode(WriteMode::Direct);
        }
        if has_settings || self.direct || !open::is_database(path) {
            let design = self.design()?;
            let budget_bytes = match self.direct {
                true => design.buffer_bytes * 4 + (2 << 20),
                false => (design.buffer_bytes * 8).max(512 << 20),
            };
            options = options.memory_budget(budget_bytes).design(design);
        }
        Ok(options.open(path)?)
    }

    fn buffer_entries(&self) -> u64 {
        u64::from(self.buffer.unwrap_or(PAGES_DEFAULT)) * PAGE_ENTRIES
    }

    /// Returns Dent's design with the given settings.
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
        if let Some(kind) = self.memtable {
            design.memtable = kind;
        }
        if let Some(bits) = self.bits {
            design.filter_bits = terrane_policy::design::PerLevel::all(bits);
        }
        design.validate().map_err(|error| exit::usage(error.to_string()))?;
        Ok(design)
    }
}
