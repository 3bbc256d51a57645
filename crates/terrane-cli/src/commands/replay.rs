//! `terrane replay`: replays a file of operations in the format of KVBench, the papers' workload
//! generator.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::Args;
use terrane::Db;
use terrane_lab::host::scratch::Scratch;
use terrane_lab::input::spec;
use terrane_lab::output::json::write_line;
use terrane_lab::replay::{JsonReplay, ReplayReport, replay};
use terrane_workload::LatencyMicros;

use crate::control::ControlFlag;
use crate::engine_flags::EngineFlags;
use crate::exit::Exit;
use crate::output;
use crate::table::{Align, lines, table};
use crate::terminal::picture_columns;
use terrane_lab::output::human;

const EXAMPLES: &str = "\
Operations, a line each:
  I KEY VALUE  insert    Q KEY  look up    R FROM TO  remove a range
  U KEY VALUE  update    D KEY  remove     S FROM TO  read a range

Examples:
  terrane replay workload.txt --design 'leveling T=4; memtable=vector'
  load_gen -I 100000 -Q 1000 && terrane replay workload.txt --durability none";

/// Replay a file of operations in KVBench's format, and report their latencies
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// The file, or - for standard input
    file: PathBuf,

    /// The database to replay on, created if it does not exist [default: a temporary one]
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,

    /// The design of a new database; see `terrane design list`
    #[arg(long, value_name = "SPEC")]
    design: Option<String>,

    /// Include the last key of ranges
    #[arg(long)]
    inclusive: bool,

    /// Print a JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    control: ControlFlag,

    #[command(flatten)]
    engine: EngineFlags,
}

impl ReplayArgs {
    /// Replays the file.
    pub(crate) fn run(&self) -> Result<Exit> {
        let mut options = self.engine.options()?;
        if let Some(text) = &self.design {
            options = options.design(spec::parse(text)?);
        }
        let input = self.input()?;
        let (dir, _scratch) = match &self.db {
            Some(dir) => (dir.clone(), None),
            None => {
                let scratch = Scratch::temporary("terrane-replay-")?;
                (scratch.path().to_owned(), Some(scratch))
            }
        };
        let db = options.open(dir)?;
        let control = if self.db.is_some() { self.control.serve(&db) } else { None };
        let replayed = replay(&db, input, &self.file, self.inclusive);
        let printed = replayed.and_then(|report| self.print(&db, &report));
        // Close a database that is kept even if a line was invalid.
        drop(control);
        let closed = db.close();
        printed?;
        closed?;
        Ok(Exit::Done)
    }

    fn input(&self) -> Result<Box<dyn Read>> {
        if self.file.as_os_str() == "-" {
            return Ok(Box::new(io::stdin().lock()));
        }
        let file = File::open(&self.file);
        Ok(Box::new(file.with_context(|| format!("cannot open {}", self.file.display()))?))
    }

    fn print(&self, db: &Db, report: &ReplayReport) -> Result<()> {
        let mut out = output::text_or_json(self.json);
        if self.json {
            return Ok(write_line(&mut out, &JsonReplay::of(report))?);
        }
        let right = |name| (name, Align::Right);
        let columns = ["count", "found", "mean µs", "p50", "p99", "p99.9", "max"].map(right);
        let headers: Vec<_> = std::iter::once(("operation", Align::Left)).chain(columns).collect();
        let mut rows = table(&headers);
        for kind in &report.kinds {
            let LatencyMicros { mean, p50, p99, p99_9, max, .. } = kind.latency;
            let found = kind.found.map_or("-".to_owned(), human::count);
            let numbers = [mean, p50, p99, p99_9, max].map(human::number);
            let first = [kind.operation.to_owned(), human::count(kind.count), found];
            rows.add_row(first.into_iter().chain(numbers));
        }
        lines(&rows).try_for_each(|line| writeln!(out, "{line}"))?;
        let rate = report.operations as f64 / report.took.as_secs_f64().max(1e-9);
        writeln!(
            out,
            "{} in {}, {} per second; settled after {} more\n\n{:columns$}",
            human::counted(report.operations, "operation"),
            human::duration(report.took),
            human::count(rate as u64),
            human::duration(report.settle),
            db.tree(),
            columns = picture_columns()
        )?;
        let written = report.write_amplification.map_or("-".to_owned(), human::number);
        Ok(writeln!(out, "write amplification {written}")?)
    }
}
