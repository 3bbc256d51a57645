//! Runs the commands of a session.

use std::fs::File;
use std::io::{Read, Write};

use anyhow::{Context, Result, anyhow};
use terrane::{Db, WriteBatch};

use super::command::{self, Command, TOMBSTONE};
use super::depth::FixedDepth;
use super::pending::Pending;
use super::{number, statistics};
use crate::error::is_broken_pipe;
use crate::host::interrupt;
use crate::input::import_export::pairs::{PairReader, encode};
use crate::input::lines::Lines;

/// A session of the command language.
pub struct Cs265Session<'a, W> {
    db: &'a Db,
    pending: Pending,
    depth: Option<FixedDepth>,
    out: W,
    on_error: &'a mut dyn FnMut(anyhow::Error),
}

/// Whether to read another line.
#[derive(PartialEq, Eq)]
enum NextLine {
    Read,
    Stop,
}

impl<'a, W: Write> Cs265Session<'a, W> {
    /// Begins a session that writes answers to `out` and passes the error of each bad line to
    /// `on_error`. `buffer_entries` is the number of entries that fill the buffer.
    pub fn new(
        db: &'a Db,
        buffer_entries: u64,
        depth: Option<FixedDepth>,
        out: W,
        on_error: &'a mut dyn FnMut(anyhow::Error),
    ) -> Self {
        Self { db, pending: Pending::new(buffer_entries), depth, out, on_error }
    }

    /// Runs the lines of `input`.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, or an answer cannot be written.
    pub fn run(&mut self, input: impl Read) -> Result<()> {
        let mut lines = Lines::new(input);
        loop {
            while let Some(line) = lines.take() {
                let number = lines.number();
                if self.line(lines.text(line), number)? == NextLine::Stop {
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

    fn line(&mut self, line: &[u8], number: u64) -> Result<NextLine> {
        let done = match command::parse(line) {
            Ok(None) => Ok(()),
            Ok(Some(command)) => self.command(command, number),
            Err(message) => Err(anyhow!(message)),
        };
        let Err(error) = done else { return Ok(NextLine::Read) };
        if is_broken_pipe(&error) {
            return Err(error);
        }
        self.write_pending()?;
        self.fail(error, number)?;
        let is_full = self.depth.as_ref().is_some_and(FixedDepth::is_full);
        Ok(if is_full { NextLine::Stop } else { NextLine::Read })
    }

    fn fail(&mut self, error: anyhow::Error, line: u64) -> Result<()> {
        interrupt::wait_if_ending();
        self.out.flush()?;
        (self.on_error)(error.context(format!("line {line}")));
        Ok(())
    }

    /// Writes the pending puts and deletes.
    fn write_pending(&mut self) -> Result<()> {
        for (line, error) in self.pending.write(self.db) {
            self.fail(error.into(), line)?;
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
            self.reserve(key)?;
            self.pending.add(line, key, value);
            return if self.pending.is_full() { self.write_pending() } else { Ok(()) };
        }
        self.write_pending()?;
        match command {
            // The code above added the change to the pending changes.
            Command::Put { .. } | Command::Delete { .. } => Ok(()),
            Command::Get { key } => {
                if let Some(value) = self.db.get(encode(key))? {
                    write!(self.out, "{}", number(&value)?)?;
                }
                Ok(writeln!(self.out)?)
            }
            Command::Range { start, end } => self.range(start, end),
            Command::Load { path } => self.load(&path),
            Command::Statistics => statistics::write(self.db, &mut self.out),
        }
    }

    fn reserve(&mut self, key: i32) -> Result<()> {
        match &mut self.depth {
            Some(depth) => depth.reserve(key),
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

    /// Puts the pairs of a file. Pairs before an invalid pair are kept.
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
                    self.reserve(key)
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
