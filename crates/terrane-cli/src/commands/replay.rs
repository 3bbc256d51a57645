//! `terrane replay`: plays a file of operations, as the papers' workload generator (KVBench) writes
//! them.
//!
//! | line | operation |
//! |---|---|
//! | `I KEY VALUE`, `U KEY VALUE` | sets the value of a key |
//! | `D KEY` | removes a key |
//! | `R FROM TO` | removes a range of keys |
//! | `Q KEY` | looks a key up |
//! | `S FROM TO` | reads a range of keys |
//!
//! Words are parted by blanks, keys are compared as bytes, and TO is not included, as in the later of
//! the harnesses that were published; `--inclusive` includes it, as the generator counts. An insert
//! of a key that is there sets it, which the generator does since 2025.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde::Serialize;
use terrane::Db;
use terrane_workload::{Latency, LatencyMicros};

use crate::commands::design::spec;
use crate::engine_flags::EngineFlags;
use crate::exit::Exit;
use crate::human;
use crate::json::{JsonLatency, SCHEMA, write_line};
use crate::lines::Lines;
use crate::scratch::Scratch;
use crate::table::{Align, lines, table};
use crate::{interrupt, progress};

const EXAMPLES: &str = "\
Operations, a line each:
  I KEY VALUE   insert         Q KEY        look up      R FROM TO   remove a range
  U KEY VALUE   update         D KEY        remove       S FROM TO   read a range

Examples:
  terrane replay workload.txt --design 'leveling T=4; memtable=vector; buffer=16MiB'
  load_gen -I 100000 -Q 1000 && terrane replay workload.txt --durability none";

/// Play a file of operations as KVBench writes them, and tell what they took.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// The file, or - for standard input
    file: PathBuf,

    /// Play it on the database in this directory, made if there is none, instead of a temporary one
    #[arg(long, value_name = "DIR")]
    db: Option<PathBuf>,

    /// The design of a new database; see `terrane design list`
    #[arg(long, value_name = "SPEC")]
    design: Option<String>,

    /// Ranges hold their last key
    #[arg(long)]
    inclusive: bool,

    /// Tell it as an object for programs
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    engine: EngineFlags,
}

/// What a line asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation<'a> {
    Put { key: &'a [u8], value: &'a [u8], is_update: bool },
    Delete(&'a [u8]),
    DeleteRange(&'a [u8], &'a [u8]),
    Get(&'a [u8]),
    Scan(&'a [u8], &'a [u8]),
}

/// The kinds of operations, in the order in which they are told.
const KINDS: [&str; 6] = ["insert", "update", "delete", "delete range", "lookup", "scan"];

impl<'a> Operation<'a> {
    /// `None` for an empty line.
    fn parse(line: &'a [u8]) -> Result<Option<Self>, String> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { return Ok(None) };
        let rest: Vec<&[u8]> = words.by_ref().take(3).collect();
        let operation = match (first, &rest[..]) {
            (b"I", [key, value]) => Self::Put { key, value, is_update: false },
            (b"U", [key, value]) => Self::Put { key, value, is_update: true },
            (b"D", [key]) => Self::Delete(key),
            (b"R", [start, end]) => Self::DeleteRange(start, end),
            (b"Q", [key]) => Self::Get(key),
            (b"S", [start, end]) => Self::Scan(start, end),
            (b"I" | b"U", _) => return Err("a key and a value are expected".into()),
            (b"D" | b"Q", _) => return Err("a key is expected".into()),
            (b"R" | b"S", _) => return Err("two keys are expected".into()),
            _ => {
                let word = String::from_utf8_lossy(first);
                return Err(format!("'{word}' is no operation; there are I, U, D, R, Q and S"));
            }
        };
        Ok(Some(operation))
    }

    /// Its place in [`KINDS`].
    fn kind(self) -> usize {
        match self {
            Self::Put { is_update, .. } => usize::from(is_update),
            Self::Delete(_) => 2,
            Self::DeleteRange(..) => 3,
            Self::Get(_) => 4,
            Self::Scan(..) => 5,
        }
    }
}

/// What the operations of a kind took, and what they found.
#[derive(Debug, Clone, Default)]
struct Played {
    times: Latency,
    found: u64,
}

#[derive(Serialize)]
struct JsonKind {
    operation: &'static str,
    count: u64,
    /// Keys that were looked up and are there, or entries that were read.
    found: u64,
    latency_micros: JsonLatency,
}

#[derive(Serialize)]
struct JsonReplay {
    schema: u32,
    design: String,
    durability: String,
    operations: u64,
    seconds: f64,
    settle_seconds: f64,
    write_amplification: f64,
    kinds: Vec<JsonKind>,
}

impl ReplayArgs {
    /// Plays the file.
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
        let mut played: [Played; KINDS.len()] = Default::default();
        let spinner = progress::spinner("replaying");
        let begun = Instant::now();
        let done = self.play(&db, input, &mut played);
        let took = begun.elapsed();
        interrupt::wait_if_ending();
        spinner.finish_and_clear();
        let settled = done.and_then(|()| Ok(db.wait_for_compactions()?));
        let settle = begun.elapsed() - took;
        let told = settled.and_then(|()| self.tell(&db, &played, took, settle));
        // A database that stays must be whole, also when a line was wrong.
        let closed = db.close();
        told?;
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

    fn play(&self, db: &Db, input: Box<dyn Read>, played: &mut [Played]) -> Result<()> {
        let mut input = Lines::new(input);
        loop {
            while let Some(line) = input.take() {
                let at = || format!("{}, line {}", self.file.display(), input.number());
                let operation = Operation::parse(input.text(line))
                    .map_err(|message| anyhow!(message))
                    .with_context(at)?;
                let Some(operation) = operation else { continue };
                let begun = Instant::now();
                let found = self.carry_out(db, operation).with_context(at)?;
                let of_kind = &mut played[operation.kind()];
                of_kind.times.record(begun.elapsed());
                of_kind.found += found;
            }
            let more = input.wait().with_context(|| format!("cannot read {}", self.file.display()));
            if !more? {
                return Ok(());
            }
        }
    }

    /// How many entries it found.
    fn carry_out(&self, db: &Db, operation: Operation<'_>) -> terrane::Result<u64> {
        match operation {
            Operation::Put { key, value, .. } => db.put(key, value).map(|()| 0),
            Operation::Delete(key) => db.delete(key).map(|()| 0),
            Operation::DeleteRange(start, end) if self.inclusive => {
                db.delete_range(start..=end).map(|()| 0)
            }
            Operation::DeleteRange(start, end) => db.delete_range(start..end).map(|()| 0),
            Operation::Get(key) => Ok(u64::from(db.get(key)?.is_some())),
            Operation::Scan(start, end) => {
                let entries = match self.inclusive {
                    true => db.range(start..=end)?,
                    false => db.range(start..end)?,
                };
                entries.map(|entry| entry.map(|_| 1)).sum()
            }
        }
    }

    fn tell(&self, db: &Db, played: &[Played], took: Duration, settle: Duration) -> Result<()> {
        let stats = db.stats();
        let operations: u64 = played.iter().map(|of_kind| of_kind.times.samples()).sum();
        let kinds = || KINDS.iter().zip(played).filter(|(_, of_kind)| of_kind.times.samples() > 0);
        let mut out = io::stdout().lock();
        if self.json {
            let of_kind = |(operation, of_kind): (&&'static str, &Played)| JsonKind {
                operation,
                count: of_kind.times.samples(),
                found: of_kind.found,
                latency_micros: JsonLatency::of(&of_kind.times.summary()),
            };
            let replay = JsonReplay {
                schema: SCHEMA,
                design: db.design().to_string(),
                durability: db.durability().to_string(),
                operations,
                seconds: took.as_secs_f64(),
                settle_seconds: settle.as_secs_f64(),
                write_amplification: stats.write_amplification(),
                kinds: kinds().map(of_kind).collect(),
            };
            return Ok(write_line(&mut out, &replay)?);
        }
        let right = |name| (name, Align::Right);
        let columns = ["count", "found", "mean µs", "P50", "P99", "P99.9", "longest"].map(right);
        let headers: Vec<_> = std::iter::once(("operation", Align::Left)).chain(columns).collect();
        let mut rows = table(&headers);
        for (name, of_kind) in kinds() {
            let LatencyMicros { mean, p50, p99, p99_9, max, .. } = of_kind.times.summary();
            let found = match *name {
                "lookup" | "scan" => human::count(of_kind.found),
                _ => "-".to_owned(),
            };
            let numbers = [mean, p50, p99, p99_9, max].map(human::number);
            let first = [(*name).to_owned(), human::count(of_kind.times.samples()), found];
            rows.add_row(first.into_iter().chain(numbers));
        }
        lines(&rows).try_for_each(|line| writeln!(out, "{line}"))?;
        let rate = operations as f64 / took.as_secs_f64().max(1e-9);
        writeln!(
            out,
            "{} in {}, {} a second; settled after {} more\n\n{}",
            human::counted(operations, "operation"),
            human::duration(took),
            human::count(rate as u64),
            human::duration(settle),
            db.tree()
        )?;
        Ok(writeln!(out, "write amplification {}", human::number(stats.write_amplification()))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_the_generator_writes() {
        let put = |is_update| Operation::Put { key: b"aB3", value: b"xyz", is_update };
        for (line, wanted) in [
            ("I aB3 xyz", Ok(Some(put(false)))),
            ("U aB3 xyz", Ok(Some(put(true)))),
            // It leaves a blank at the end of these.
            ("D aB3 ", Ok(Some(Operation::Delete(b"aB3")))),
            ("R a b", Ok(Some(Operation::DeleteRange(b"a", b"b")))),
            ("Q 17\r", Ok(Some(Operation::Get(b"17")))),
            ("S 1 22", Ok(Some(Operation::Scan(b"1", b"22")))),
            ("", Ok(None)),
            ("I a", Err("a key and a value are expected")),
            ("I a b c", Err("a key and a value are expected")),
            ("Q", Err("a key is expected")),
            ("S a", Err("two keys are expected")),
            ("X a", Err("'X' is no operation; there are I, U, D, R, Q and S")),
        ] {
            let found = Operation::parse(line.as_bytes());
            assert_eq!(found, wanted.map_err(str::to_owned), "{line}");
        }
    }
}
