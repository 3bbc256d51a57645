//! Replays a file of operations in the format of the papers' workload generator (KVBench).
//!
//! | line | operation |
//! |---|---|
//! | `I KEY VALUE`, `U KEY VALUE` | sets the value of a key |
//! | `D KEY` | removes a key |
//! | `R FROM TO` | removes a range of keys |
//! | `Q KEY`, `P KEY` | looks up a key |
//! | `S FROM TO` | reads a range of keys |
//! | `SC FROM COUNT` | reads a number of entries |
//! | `RC FROM COUNT` | removes a number of keys |
//! | `FS`, `FE`, `#` … | nothing: the sections of Tectonic's files, and comments |
//!
//! `P`, `SC` and `RC` come from Tectonic, KVBench's successor. Words are separated by blanks, and keys
//! compare as bytes. After a line `# terrane trace, encoding=hex` keys and values are in hexadecimal
//! digits, and `-` is an empty value. TO is excluded, as in the later published harness; the
//! options can include it instead, which matches the generator. An insert overwrites an existing key,
//! like the generator since 2025.

use std::borrow::Cow;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use terrane::Db;
use terrane_workload::recording::TRACE_HEADER;
use terrane_workload::{Latency, LatencyMicros};

use crate::host::{interrupt, progress};
use crate::input::lines::Lines;
use crate::output::json::{JsonLatency, SCHEMA};

/// The operation of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReplayOperation<'a> {
    Put { key: Token<'a>, value: Token<'a>, is_update: bool },
    Delete(Token<'a>),
    DeleteRange(Token<'a>, Token<'a>),
    DeleteCount(Token<'a>, usize),
    Get(Token<'a>),
    Scan(Token<'a>, Token<'a>),
    ScanCount(Token<'a>, usize),
}

/// A key or value.
type Token<'a> = Cow<'a, [u8]>;

/// How keys and values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// As they are.
    Plain,
    /// In hexadecimal digits; `-` for an empty value.
    Hex,
}

impl Encoding {
    fn decode(self, word: &[u8]) -> Result<Token<'_>, String> {
        match (self, word) {
            (Self::Plain, _) => Ok(word.into()),
            (Self::Hex, b"-") => Ok(Cow::Owned(Vec::new())),
            (Self::Hex, _) => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16);
                let byte = |pair: &[u8]| match pair {
                    [high, low] => Some((digit(high)? << 4 | digit(low)?) as u8),
                    _ => None,
                };
                let bytes: Option<Vec<u8>> = word.chunks(2).map(byte).collect();
                bytes.map(Cow::Owned).ok_or_else(|| {
                    let word = String::from_utf8_lossy(word);
                    format!("'{word}' is not an even number of hexadecimal digits")
                })
            }
        }
    }
}

/// The kinds of operations, in the order of reports.
const KINDS: [&str; 6] = ["insert", "update", "delete", "delete range", "lookup", "scan"];

impl<'a> ReplayOperation<'a> {
    /// Parses a line; `None` if it is empty, a comment, or the border of a section.
    fn parse(line: &'a [u8], encoding: Encoding) -> Result<Option<Self>, String> {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(first) = words.next() else { return Ok(None) };
        if first.starts_with(b"#") || matches!(first, b"FS" | b"FE") {
            return Ok(None);
        }
        let rest: Vec<&[u8]> = words.by_ref().take(3).collect();
        let token = |word| encoding.decode(word);
        let operation = match (first, &rest[..]) {
            (b"I" | b"U", [key, value]) => {
                Self::Put { key: token(key)?, value: token(value)?, is_update: first == b"U" }
            }
            (b"D", [key]) => Self::Delete(token(key)?),
            (b"R", [start, end]) => Self::DeleteRange(token(start)?, token(end)?),
            (b"RC", [start, count]) => Self::DeleteCount(token(start)?, number(count)?),
            (b"Q" | b"P", [key]) => Self::Get(token(key)?),
            (b"S", [start, end]) => Self::Scan(token(start)?, token(end)?),
            (b"SC", [start, count]) => Self::ScanCount(token(start)?, number(count)?),
            (b"I" | b"U", _) => return Err("expected a key and a value".into()),
            (b"D" | b"Q" | b"P", _) => return Err("expected a key".into()),
            (b"R" | b"S", _) => return Err("expected two keys".into()),
            (b"RC" | b"SC", _) => return Err("expected a key and a number".into()),
            (b"M", _) => return Err("merges ('M') are not supported".into()),
            _ => {
                let word = String::from_utf8_lossy(first);
                return Err(format!(
                    "unknown operation '{word}'; known operations: I, U, D, R, RC, Q, P, S, SC"
                ));
            }
        };
        Ok(Some(operation))
    }

    /// Returns the index in [`KINDS`].
    fn kind(&self) -> usize {
        match self {
            Self::Put { is_update, .. } => usize::from(*is_update),
            Self::Delete(_) => 2,
            Self::DeleteRange(..) | Self::DeleteCount(..) => 3,
            Self::Get(_) => 4,
            Self::Scan(..) | Self::ScanCount(..) => 5,
        }
    }
}

fn number(word: &[u8]) -> Result<usize, String> {
    let number = std::str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("'{}' is not a number", String::from_utf8_lossy(word)))
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
    /// Bytes written to tables per byte the user wrote; `None` if the user wrote none.
    pub write_amplification: Option<f64>,
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
    write_amplification: Option<f64>,
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
            latency_micros: JsonLatency::of(Some(&kind.latency)),
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
    let mut encoding = Encoding::Plain;
    loop {
        while let Some(line) = input.take() {
            let at = || format!("{}, line {}", name.display(), input.number());
            let text = input.text(line);
            if text.trim_ascii_end() == TRACE_HEADER.as_bytes() {
                encoding = Encoding::Hex;
            }
            let operation = ReplayOperation::parse(text, encoding)
                .map_err(|message| anyhow!(message))
                .with_context(at)?;
            let Some(operation) = operation else { continue };
            let begun = Instant::now();
            let kind = &mut replayed[operation.kind()];
            let found = operation.run(db, is_inclusive).with_context(at)?;
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
            Self::DeleteCount(start, count) => {
                let mut entries = db.range(start.clone()..)?;
                let mut last = None;
                for _ in 0..count {
                    if !entries.advance()? {
                        break;
                    }
                    last = Some(entries.key().to_vec());
                }
                match last {
                    Some(last) => db.delete_range(start.into_owned()..=last).map(|()| 0),
                    None => Ok(0),
                }
            }
            Self::DeleteRange(start, end) if is_inclusive => {
                db.delete_range(start..=end).map(|()| 0)
            }
            Self::DeleteRange(start, end) => db.delete_range(start..end).map(|()| 0),
            Self::Get(key) => Ok(u64::from(db.get(key)?.is_some())),
            Self::ScanCount(start, count) => {
                let mut entries = db.range(start..)?;
                let mut found = 0;
                while found < count && entries.advance()? {
                    found += 1;
                }
                Ok(found as u64)
            }
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
        let token = |text: &'static [u8]| Cow::Borrowed(text);
        let put = |is_update| ReplayOperation::Put {
            key: token(b"aB3"),
            value: token(b"xyz"),
            is_update,
        };
        for (line, wanted) in [
            ("I aB3 xyz", Ok(Some(put(false)))),
            ("U aB3 xyz", Ok(Some(put(true)))),
            // The generator writes a trailing blank after deletes.
            ("D aB3 ", Ok(Some(ReplayOperation::Delete(token(b"aB3"))))),
            ("R a b", Ok(Some(ReplayOperation::DeleteRange(token(b"a"), token(b"b"))))),
            ("RC a 7", Ok(Some(ReplayOperation::DeleteCount(token(b"a"), 7)))),
            ("Q 17\r", Ok(Some(ReplayOperation::Get(token(b"17"))))),
            ("P 17", Ok(Some(ReplayOperation::Get(token(b"17"))))),
            ("S 1 22", Ok(Some(ReplayOperation::Scan(token(b"1"), token(b"22"))))),
            ("SC 1 22", Ok(Some(ReplayOperation::ScanCount(token(b"1"), 22)))),
            ("# a comment", Ok(None)),
            ("FS", Ok(None)),
            ("", Ok(None)),
            ("SC a b", Err("'b' is not a number")),
            ("M a b", Err("merges ('M') are not supported")),
            ("I a", Err("expected a key and a value")),
            ("I a b c", Err("expected a key and a value")),
            ("Q", Err("expected a key")),
            ("S a", Err("expected two keys")),
            ("X a", Err("unknown operation 'X'; known operations: I, U, D, R, RC, Q, P, S, SC")),
        ] {
            let found = ReplayOperation::parse(line.as_bytes(), Encoding::Plain);
            assert_eq!(found, wanted.map_err(str::to_owned), "{line}");
        }
        let hex = |line: &'static str| ReplayOperation::parse(line.as_bytes(), Encoding::Hex);
        let put = hex("I 00ff -").unwrap().unwrap();
        assert_eq!(
            put,
            ReplayOperation::Put { key: token(&[0, 255]), value: token(b""), is_update: false }
        );
        assert!(hex("Q 0").unwrap_err().contains("even number"));
        assert!(hex("Q 0g").unwrap_err().contains("hexadecimal"));
    }
}
