//! The text form of a recording, one event per line:
//!
//! ```text
//! # Lines that start with # are comments.
//! system RocksDB 11.8.1
//! options compaction_pri=kRoundRobin; max_bytes_for_level_base=262144
//! load uniform
//! design rocksdb-leveling; base=256KiB; movement=round-robin
//! skipped 120
//! base 1
//! level 0 41=00003..=99871:64512,seq=901-956 40=00017..=99990:64512
//! level 1 33=00003..=10222:65301 35=10240..=21101:65127
//! cursor 1 10222
//!
//! flush 0 42=00011..=99612:64512
//! compact LevelL0FilesNum 0: 42 41 40 39 1: 33 35 -> 1: 43=00003..=09980:65411 44=…
//! move - 1: 44 -> 2
//! rest
//! base 4
//! ```
//!
//! Tables and keys are written as in the text form of a [`TreeShape`](crate::shape::TreeShape). The
//! tables of level 0 are listed newest first, those of other levels in key order. `cursor` gives
//! the last key that moved out of a level. `move` moves its inputs without rewriting them. The word
//! after `compact` and `move` is the system's own reason, or `-`.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use super::trace::{Event, SystemCompaction, Trace};
use crate::error::ParseError;
use crate::key_range::escape;
use crate::shape::{TableId, TableInfo, unescape};

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "system {}", self.system)?;
        writeln!(f, "options {}", self.options)?;
        writeln!(f, "load {}", self.load)?;
        writeln!(f, "design {}", self.design)?;
        writeln!(f, "skipped {}", self.skipped)?;
        writeln!(f, "base {}", self.base)?;
        for (level, tables) in self.start.iter().enumerate().filter(|(_, one)| !one.is_empty()) {
            write!(f, "level {level}")?;
            tables.iter().try_for_each(|table| write!(f, " {table}"))?;
            writeln!(f)?;
        }
        for (level, key) in &self.cursors {
            writeln!(f, "cursor {level} {}", escape(key))?;
        }
        writeln!(f)?;
        self.events.iter().try_for_each(|event| writeln!(f, "{event}"))
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flush { level, table } => write!(f, "flush {level} {table}"),
            Self::Compaction(compaction) => compaction.fmt(f),
            Self::Rest => f.write_str("rest"),
            Self::Base(level) => write!(f, "base {level}"),
        }
    }
}

impl fmt::Display for SystemCompaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.outputs.is_some() { "compact" } else { "move" };
        write!(f, "{verb} {}", self.reason)?;
        for (level, tables) in &self.inputs {
            write!(f, " {level}:")?;
            tables.iter().try_for_each(|table| write!(f, " {table}"))?;
        }
        write!(f, " -> {}", self.level)?;
        let Some(outputs) = &self.outputs else { return Ok(()) };
        f.write_str(":")?;
        outputs.iter().try_for_each(|table| write!(f, " {table}"))
    }
}

impl FromStr for Trace {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut trace = Self { base: 1, ..Self::default() };
        let lines = text.lines().map(str::trim);
        for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
            trace.take(line)?;
        }
        Ok(trace)
    }
}

impl Trace {
    fn take(&mut self, line: &str) -> Result<(), ParseError> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let wanted = || bad(line, "a line such as 'flush 0 42=a..=z:64KiB'");
        match word {
            "system" => self.system = rest.to_owned(),
            "options" => self.options = rest.to_owned(),
            "load" => self.load = rest.to_owned(),
            "design" => self.design = rest.to_owned(),
            "skipped" => self.skipped = rest.parse().map_err(|_| wanted())?,
            "base" if self.events.is_empty() => self.base = rest.parse().map_err(|_| wanted())?,
            "level" => {
                let (level, tables) = placed(rest).ok_or_else(wanted)?;
                if level >= LEVELS {
                    return Err(wanted());
                }
                self.start.resize_with(self.start.len().max(level + 1), Vec::new);
                self.start[level] = parse_tables(tables)?;
            }
            "cursor" => {
                let (level, key) = placed(rest).ok_or_else(wanted)?;
                self.cursors.push((level, unescape(key)?));
            }
            _ => self.events.push(parse_event(word, rest, line)?),
        }
        Ok(())
    }
}

/// More levels than any system has; a larger number is a mistake in the text.
const LEVELS: usize = 64;

fn bad(found: &str, expected: &str) -> ParseError {
    ParseError::new("recording", found, expected)
}

/// Splits `1 rest` and `1: rest`.
fn placed(text: &str) -> Option<(usize, &str)> {
    let (level, rest) = text.split_once(' ').unwrap_or((text, ""));
    Some((level.trim_end_matches(':').parse().ok()?, rest.trim()))
}

fn parse_tables(text: &str) -> Result<Vec<Arc<TableInfo>>, ParseError> {
    text.split_whitespace().map(|word| word.parse().map(Arc::new)).collect()
}

fn parse_event(word: &str, rest: &str, line: &str) -> Result<Event, ParseError> {
    let wanted = || bad(line, "flush, compact, move, rest or base");
    match word {
        "flush" => {
            let (level, table) = placed(rest).ok_or_else(wanted)?;
            Ok(Event::Flush { level, table: Arc::new(table.parse()?) })
        }
        "rest" => Ok(Event::Rest),
        "base" => rest.parse().map(Event::Base).map_err(|_| wanted()),
        "compact" | "move" => {
            let (inputs, output) = rest.split_once(" -> ").ok_or_else(wanted)?;
            let (reason, inputs) = inputs.split_once(' ').ok_or_else(wanted)?;
            let (level, outputs) = placed(output).ok_or_else(wanted)?;
            let outputs = (word == "compact").then(|| parse_tables(outputs)).transpose()?;
            let inputs = parse_inputs(inputs).ok_or_else(wanted)?;
            let reason = reason.to_owned();
            Ok(Event::Compaction(SystemCompaction { reason, inputs, level, outputs }))
        }
        _ => Err(wanted()),
    }
}

fn parse_inputs(text: &str) -> Option<Vec<(usize, Vec<TableId>)>> {
    let mut inputs: Vec<(usize, Vec<TableId>)> = Vec::new();
    for word in text.split_whitespace() {
        if let Some(level) = word.strip_suffix(':') {
            inputs.push((level.parse().ok()?, Vec::new()));
        } else {
            inputs.last_mut()?.1.push(TableId(word.parse().ok()?));
        }
    }
    Some(inputs)
}
