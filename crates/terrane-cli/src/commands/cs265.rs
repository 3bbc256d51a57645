//! `terrane cs265`: the command language of Harvard's CS 265 on standard input, on Dent's tree.
//!
//! [`terrane_lab::cs265`] describes the language. A bad line is reported on standard error with its
//! number; the lines before and after it count, and the exit status is 1.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap::Args;
use terrane::Db;
use terrane_lab::cs265::{Cs265Session, DentTree, FixedDepth};
use terrane_lab::host::scratch::Scratch;
use terrane_lab::input::quantity::{count_in, number_in};
use terrane_policy::design::MemtableKind;

use crate::control::ControlFlag;
use crate::exit::{self, Exit};
use crate::open;
use crate::output;
use crate::terminal::{Paint, is_input_from_person};

/// The size of the buffer for answers, which is flushed before waiting for input.
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

    /// Runs that a get reads concurrently, if they must be read from a disk
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
        // No other process knows the directory of a temporary database.
        let control = if scratch.is_none() { self.control.serve(&db) } else { None };
        let tree = self.tree();
        if is_input_from_person() {
            let hint = "commands: p KEY VALUE, g KEY, r FROM TO, d KEY, l \"FILE\", s; Ctrl-D ends";
            let _ = writeln!(io::stderr(), "{}", Paint::stderr().dim(hint));
        }
        let entries = tree.buffer_entries();
        let depth = FixedDepth::new(entries, tree.fanout(), self.depth);
        let out = BufWriter::with_capacity(OUT_BYTES, output::stdout());
        let mut failed = None;
        let mut on_error = |error: anyhow::Error| {
            failed = Some(exit::worse(failed, &error));
            exit::print_error(&error);
        };
        let depth = self.fixed_depth.then_some(depth);
        let done =
            Cs265Session::new(&db, entries, depth, out, &mut on_error).run(io::stdin().lock());
        // Close a database that is kept even if an answer could not be written.
        drop(control);
        let closed = db.close();
        done?;
        closed?;
        Ok(failed.unwrap_or(Exit::Done))
    }

    fn open(&self, scratch: Option<&Scratch>) -> Result<Db> {
        match (&self.db, scratch) {
            (Some(dir), _) => self.tree().open(dir, open::is_database(dir)),
            (None, Some(scratch)) => self.tree().open_temporary(scratch.path()),
            (None, None) => Err(anyhow!("no directory for the database")),
        }
    }

    fn tree(&self) -> DentTree {
        DentTree {
            buffer_pages: self.buffer,
            fanout: self.fanout,
            bits: self.bits,
            threads: self.threads,
            memtable: self.memtable,
            direct: self.direct,
        }
    }
}
