//! Replays a file of operations in the format of the papers' workload generator (KVBench).
//!
//! | line | operation |
//! |---|---|
//! | `I KEY VALUE`, `U KEY VALUE` | sets the value of a key |
//! | `D KEY` | removes a key |
//! | `R FROM TO` | removes a range of keys |
//! | `Q KEY` | looks up a key |
//! | `S FROM TO` | reads a range of keys |
//!
//! Words are separated by blanks, and keys compare as bytes. TO is excluded, as in the later of the
//! published harnesses, unless the options include it, which matches the generator. An insert
//! overwrites an existing key, like the generator since 2025.

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use terrane::Db;
use terrane_workload::{Latency, LatencyMicros};

use crate::json::{JsonLatency, SCHEMA};
use crate::lines::Lines;
use crate::{interrupt, progress};

/// The operation of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayOperation<'a> {
    Put { key: &'a [u8], value: &'a [u8], is_update: bool },
    Delete(&'a [u8]),
    DeleteRange(&'a [u8], &'a [u8]),
    Get(&'a [u8]),
    Scan(&'a [u8], &'a [u8]),
}

/// The kinds of operations, in the order of reports.
const KINDS: [&str; 6] = ["insert", "update", "delete", "delete range", "lookup", "scan"];

impl<'a> ReplayOperation<'a> {
    /// Parses a line; `None` if it is empty.
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
            (b"I" | b"U", _) => return Err("expected a key and a value".into()),
            (b"D" | b"Q", _) => return Err("expected a key".into()),
            (b"R" | b"S", _) => return Err("expected two keys".into()),
            _ => {
                let word = String::from_utf8_lossy(first);
                return Err(format!(
                    "unknown operation '{word}'; known operations: I, U, D, R, Q, S"
                ));
            }
        };
        Ok(Some(operation))
    }

    /// Returns the index in [`KINDS`].
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

/// The latencies of a kind of operation, and the entries it found.
#[derive(Debug, Clone, Default)]
struct KindReplay {
    times: Latency,
    found: u64,
}

/// The results of one kind of operation.
#[derive(Debug)]
pub struct KindReport {
    /// The name of the kind.
    pub operation: &'static str,
    /// The number of operations.
    pub count: u64,
    /// Keys found by lookups, or entries read by scans; `None` for writes.
    pub found: Option<u64>,
    /// The latencies.
    pub latency: LatencyMicros,
}

/// The result of a replay.
#[derive(Debug)]
pub struct ReplayReport {
    /// The design of the database.
    pub design: String,
    /// The durability of the database.
    pub durability: String,
    /// The number of operations of all kinds.
    pub operations: u64,
    /// The time of all operations.
    pub took: Duration,
    /// The time until all due compactions were done.
    pub settle: Duration,
    /// Bytes written to tables per byte the user wrote.
    pub write_amplification: f64,
    /// The kinds with at least one operation.
    pub kinds: Vec<KindReport>,
}

/// A replay as a line of JSON.
#[derive(Serialize)]
pub struct JsonReplay {
    schema: u32,
    design: String,
    durability: String,
    operations: u64,
    seconds: f64,
    settle_seconds: f64,
    write_amplification: f64,
    kinds: Vec<JsonKind>,
}

#[derive(Serialize)]
struct JsonKind {
    operation: &'static str,
    count: u64,
    /// Keys found by lookups, or entries read by scans.
    found: u64,
    latency_micros: JsonLatency,
}

impl JsonReplay {
    /// Returns a report as JSON.
    pub fn of(report: &ReplayReport) -> Self {
        let kind = |kind: &KindReport| JsonKind {
            operation: kind.operation,
            count: kind.count,
            found: kind.found.unwrap_or(0),
            latency_micros: JsonLatency::of(&kind.latency),
        };
        Self {
            schema: SCHEMA,
            design: report.design.clone(),
            durability: report.durability.clone(),
            operations: report.operations,
            seconds: report.took.as_secs_f64(),
            settle_seconds: report.settle.as_secs_f64(),
            write_amplification: report.write_amplification,
            kinds: report.kinds.iter().map(kind).collect(),
        }
    }
}

/// Replays `input`, which is called `name` in errors, and lets the database settle. With
/// `is_inclusive`, ranges include their last key.
///
/// # Errors
///
/// If a line is not an operation, the input cannot be read, or the database fails.
pub fn replay(
    db: &Db,
    input: Box<dyn Read>,
    name: &Path,
    is_inclusive: bool,
) -> Result<ReplayReport> {
    let mut replayed: [KindReplay; KINDS.len()] = Default::default();
    let spinner = progress::spinner("replaying");
    let begun = Instant::now();
    let done = replay_lines(db, input, name, is_inclusive, &mut replayed);
    let took = begun.elapsed();
    interrupt::wait_if_ending();
    spinner.finish_and_clear();
    done?;
    db.wait_for_compactions()?;
    let kinds = KINDS.into_iter().zip(&replayed).filter(|(_, kind)| kind.times.samples() > 0);
    let report = |(operation, kind): (&'static str, &KindReplay)| KindReport {
        operation,
        count: kind.times.samples(),
        found: matches!(operation, "lookup" | "scan").then_some(kind.found),
        latency: kind.times.summary(),
    };
    Ok(ReplayReport {
        design: db.design().to_string(),
        durability: db.durability().to_string(),
        operations: replayed.iter().map(|kind| kind.times.samples()).sum(),
        took,
        settle: begun.elapsed() - took,
        write_amplification: db.stats().write_amplification(),
        kinds: kinds.map(report).collect(),
    })
}

fn replay_lines(
    db: &Db,
    input: Box<dyn Read>,
    name: &Path,
    is_inclusive: bool,
    replayed: &mut [KindReplay],
) -> Result<()> {
    let mut input = Lines::new(input);
    loop {
        while let Some(line) = input.take() {
            let at = || format!("{}, line {}", name.display(), input.number());
            let operation = ReplayOperation::parse(input.text(line))
                .map_err(|message| anyhow!(message))
                .with_context(at)?;
            let Some(operation) = operation else { continue };
            let begun = Instant::now();
            let found = operation.run(db, is_inclusive).with_context(at)?;
            let kind = &mut replayed[operation.kind()];
            kind.times.record(begun.elapsed());
            kind.found += found;
        }
        if !input.wait().with_context(|| format!("cannot read {}", name.display()))? {
            return Ok(());
        }
    }
}

impl ReplayOperation<'_> {
    /// Executes the operation and returns the number of entries it found.
    fn run(self, db: &Db, is_inclusive: bool) -> terrane::Result<u64> {
        match self {
            Self::Put { key, value, .. } => db.put(key, value).map(|()| 0),
            Self::Delete(key) => db.delete(key).map(|()| 0),
            Self::DeleteRange(start, end) if is_inclusive => {
                db.delete_range(start..=end).map(|()| 0)
            }
            Self::DeleteRange(start, end) => db.delete_range(start..end).map(|()| 0),
            Self::Get(key) => Ok(u64::from(db.get(key)?.is_some())),
            Self::Scan(start, end) => {
                let entries = match is_inclusive {
                    true => db.range(start..=end)?,
                    false => db.range(start..end)?,
                };
                entries.map(|entry| entry.map(|_| 1)).sum()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_what_the_generator_writes() {
        let put = |is_update| ReplayOperation::Put { key: b"aB3", value: b"xyz", is_update };
        for (line, wanted) in [
            ("I aB3 xyz", Ok(Some(put(false)))),
            ("U aB3 xyz", Ok(Some(put(true)))),
            // The generator writes a trailing blank after deletes.
            ("D aB3 ", Ok(Some(ReplayOperation::Delete(b"aB3")))),
            ("R a b", Ok(Some(ReplayOperation::DeleteRange(b"a", b"b")))),
            ("Q 17\r", Ok(Some(ReplayOperation::Get(b"17")))),
            ("S 1 22", Ok(Some(ReplayOperation::Scan(b"1", b"22")))),
            ("", Ok(None)),
            ("I a", Err("expected a key and a value")),
            ("I a b c", Err("expected a key and a value")),
            ("Q", Err("expected a key")),
            ("S a", Err("expected two keys")),
            ("X a", Err("unknown operation 'X'; known operations: I, U, D, R, Q, S")),
        ] {
            let found = ReplayOperation::parse(line.as_bytes());
            assert_eq!(found, wanted.map_err(str::to_owned), "{line}");
        }
    }
}
