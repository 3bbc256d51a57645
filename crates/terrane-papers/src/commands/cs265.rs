//! `terrane-papers cs265`: Dent's tree, with the commands of CS 265 on standard input. The experiment
//! `dent` alternates it with Dent's program, so that both are processes that read a pipe. `terrane cs265`
//! is the command for people.

use std::io::{self, BufWriter};

use anyhow::Result;
use clap::Args;
use terrane_lab::cs265::{Cs265Session, DentTree};
use terrane_lab::host::scratch::Scratch;
use terrane_policy::design::MemtableKind;

/// The buffer of answers, which are flushed before a wait for input.
const OUT_BYTES: usize = 64 << 10;

/// Run the CS 265 command language from standard input
#[derive(Debug, Clone, Args)]
pub(super) struct Cs265Args {
    #[arg(short)]
    buffer: Option<u32>,

    #[arg(short)]
    fanout: Option<u32>,

    /// Dent's program limits its depth; this tree grows as needed
    #[arg(short)]
    depth: Option<u32>,

    #[arg(short, default_value_t = 4)]
    threads: u32,

    #[arg(short = 'r')]
    bits: Option<f64>,

    #[arg(long)]
    memtable: Option<MemtableKind>,

    #[arg(long)]
    direct: bool,
}

impl Cs265Args {
    /// Runs the commands on standard input.
    pub(super) fn run(&self) -> Result<()> {
        let scratch = Scratch::temporary("terrane-cs265-")?;
        let tree = DentTree {
            buffer_pages: self.buffer,
            fanout: self.fanout,
            bits: self.bits,
            threads: self.threads,
            memtable: self.memtable,
            direct: self.direct,
        };
        let db = tree.open_temporary(scratch.path())?;
        let out = BufWriter::with_capacity(OUT_BYTES, io::stdout().lock());
        let mut failed = None;
        let mut on_error = |error| failed = Some(error);
        Cs265Session::new(&db, tree.buffer_entries(), None, out, &mut on_error)
            .run(io::stdin().lock())?;
        db.close()?;
        failed.map_or(Ok(()), Err)
    }
}
