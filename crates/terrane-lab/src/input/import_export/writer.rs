//! Writes entries in a format that [`super::EntryReader`] reads back.

use std::io::{self, Write};

use anyhow::{Result, anyhow};

use super::columns::{EXPIRY, KEY, VALUE};
use super::entry::{Entry, EntryFormat};
use super::{csv, jsonl, pairs, source, tsv};
use crate::input::kv_literal;

/// What to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteOptions {
    /// The format.
    pub format: EntryFormat,
    /// Keys with or without their values.
    pub parts: Parts,
    /// Values may expire. CSV and TSV then have a column for the expiry times, which the header names.
    pub has_expiry: bool,
    /// TSV without escapes.
    pub is_raw: bool,
}

/// The parts of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parts {
    /// Keys and values.
    Entries,
    /// Keys only.
    Keys,
}

/// A writer of entries.
#[derive(Debug)]
pub struct EntryWriter {
    options: WriteOptions,
    is_first: bool,
}

impl EntryWriter {
    /// Writes as `options` say.
    pub fn new(options: WriteOptions) -> Self {
        Self { options, is_first: true }
    }

    /// Writes the header, if the format has one.
    ///
    /// # Errors
    ///
    /// If `out` cannot be written.
    pub fn begin(&self, out: &mut dyn Write) -> io::Result<()> {
        let WriteOptions { format, parts, has_expiry, .. } = self.options;
        let separator = match format {
            EntryFormat::Csv => ",",
            EntryFormat::Tsv if has_expiry => "\t",
            _ => return Ok(()),
        };
        let names = [Some(KEY), parts.values(VALUE), has_expiry.then_some(EXPIRY[0])];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        writeln!(out, "{}", names.join(separator))
    }

    /// Writes an entry.
    ///
    /// # Errors
    ///
    /// If `out` cannot be written, or if the format cannot store the entry; the last line may then be incomplete.
    pub fn write(&mut self, out: &mut dyn Write, entry: Entry<&[u8]>) -> Result<()> {
        let is_first = std::mem::replace(&mut self.is_first, false);
        match self.options.format {
            EntryFormat::Jsonl if self.options.parts == Parts::Keys => {
                Ok(jsonl::write_key(out, entry)?)
            }
            EntryFormat::Jsonl => Ok(jsonl::write(out, entry)?),
            EntryFormat::Pairs => write_pair(out, entry),
            EntryFormat::Csv => self.row(out, entry, csv::write_field),
            EntryFormat::Tsv if !self.options.is_raw => self.tsv(out, entry),
            EntryFormat::Tsv => self.raw(out, entry, is_first),
        }
    }

    fn tsv(&self, out: &mut dyn Write, entry: Entry<&[u8]>) -> Result<()> {
        if entry.key.is_empty() && self.options.parts == Parts::Keys && !self.options.has_expiry {
            return Err(anyhow!(
                "the empty key would be a blank line; use another --format for keys without values"
            ));
        }
        self.row(out, entry, tsv::write_field)
    }

    fn row(
        &self,
        out: &mut dyn Write,
        entry: Entry<&[u8]>,
        write_field: fn(&mut dyn Write, usize, &[u8]) -> io::Result<()>,
    ) -> Result<()> {
        write_field(out, 0, entry.key)?;
        let mut columns = 1;
        if self.options.parts == Parts::Entries {
            write_field(out, columns, entry.value)?;
            columns += 1;
        }
        if self.options.has_expiry {
            let expiry = entry.expires_at_micros.map(|micros| micros.to_string());
            write_field(out, columns, expiry.unwrap_or_default().as_bytes())?;
        } else if entry.expires_at_micros.is_some() {
            return Err(anyhow!(
                "{} expires, but the header has no column for it",
                print(entry.key)
            ));
        }
        Ok(out.write_all(b"\n")?)
    }

    fn raw(&self, out: &mut dyn Write, entry: Entry<&[u8]>, is_first: bool) -> Result<()> {
        let has_value = self.options.parts == Parts::Entries;
        let columns = 1 + usize::from(has_value) + usize::from(self.options.has_expiry);
        let is_mark = is_first && source::is_marked(entry.key);
        if is_mark || !tsv::write_raw(out, entry, has_value, columns)? {
            return Err(anyhow!(
                "{} has a tab, a line end or a mark, which raw lines cannot contain; leave out --raw",
                print(entry.key)
            ));
        }
        match entry.expires_at_micros {
            Some(micros) if self.options.has_expiry => write!(out, "\t{micros}")?,
            Some(_) => {
                let key = print(entry.key);
                return Err(anyhow!("{key} expires, but the header has no column for it"));
            }
            None if self.options.has_expiry => out.write_all(b"\t")?,
            None => {}
        }
        Ok(out.write_all(b"\n")?)
    }
}

impl Parts {
    fn values(self, name: &'static str) -> Option<&'static str> {
        (self == Self::Entries).then_some(name)
    }
}

fn print(key: &[u8]) -> String {
    format!("the entry of {}", kv_literal::print(key))
}

fn write_pair(out: &mut dyn Write, entry: Entry<&[u8]>) -> Result<()> {
    let Entry { key, value, expires_at_micros } = entry;
    if expires_at_micros.is_some() {
        let key = kv_literal::print(key);
        return Err(anyhow!(
            "the value of {key} has an expiry time, which pairs cannot have; use another --format"
        ));
    }
    if pairs::write(out, key, value)? {
        return Ok(());
    }
    Err(anyhow!("{} is not a pair of 32-bit numbers; use another --format", print(key)))
}
