//! Reads the entries of a text, whatever its format.
//!
//! ```text
//! loop {
//!     while let Some(entry) = reader.take()? { … }
//!     if !reader.wait()? { break }
//! }
//! ```

use std::io::{self, Read};

use super::columns::Columns;
use super::csv::CsvSplitter;
use super::entry::{Entry, EntryFormat};
use super::fields::Fields;
use super::jsonl::JsonReader;
use super::read_options::{Header, ReadOptions, RowError, Skipped, Taken};
use super::rows::Rows;
use super::source::Text;
use super::tsv::TsvSplitter;
use crate::input::lines::Lines;

/// The line in which an entry begins, from 1, and the entry.
pub type NumberedEntry<'a> = (u64, Entry<&'a [u8]>);

/// A reader of entries.
pub struct EntryReader<'a> {
    lines: Lines<Text<'a>>,
    parser: Parser,
    skip_lines: u64,
    from_line: u64,
    /// The line in which the last row began.
    line: u64,
    skipped: Skipped,
}

/// The rows of a format.
#[derive(Debug)]
enum Parser {
    Csv(CsvSplitter, Rows, Fields),
    Tsv(TsvSplitter, Rows, Fields, TabRule),
    Json(JsonReader),
}

/// How many tabs of a line separate columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TabRule {
    /// Only the first, unless the file has the header of a dump.
    Undecided,
    First,
    All,
}

impl<'a> EntryReader<'a> {
    /// Reads the entries of `input`. Returns the input if its format has no lines, which is [`super::pairs`].
    ///
    /// # Errors
    ///
    /// The input, unread.
    pub fn new<R: Read + 'a>(
        input: R,
        format: EntryFormat,
        options: &ReadOptions,
    ) -> Result<Self, R> {
        let delimiter = |default| options.delimiter.unwrap_or(default);
        let (rows, fields) = (Rows::new(options, format), Fields::default());
        let parser = match format {
            EntryFormat::Csv => Parser::Csv(CsvSplitter::new(delimiter(b',')), rows, fields),
            EntryFormat::Tsv => {
                let is_plain = options.columns == Columns::default();
                let tabs = match options.header {
                    Header::Detect if is_plain => TabRule::Undecided,
                    Header::Absent if is_plain => TabRule::First,
                    _ => TabRule::All,
                };
                let splitter = TsvSplitter::new(delimiter(b'\t'), options.is_raw);
                Parser::Tsv(splitter, rows, fields, tabs)
            }
            EntryFormat::Jsonl => Parser::Json(JsonReader::new(options)),
            EntryFormat::Pairs => return Err(input),
        };
        Ok(Self {
            lines: Lines::of_any_system(Text::new(input, options.encoding)),
            parser,
            skip_lines: options.skip_lines,
            from_line: options.from_line,
            line: 0,
            skipped: Skipped::default(),
        })
    }

    /// Returns the next entry that was read already, with its line; `None` if [`EntryReader::wait`] must read more.
    ///
    /// # Errors
    ///
    /// A row that is not an entry.
    pub fn take(&mut self) -> Result<Option<NumberedEntry<'_>>, RowError> {
        loop {
            let Some(line) = self.lines.take() else { return Ok(None) };
            let (number, line_end) = (self.lines.number(), self.lines.line_end());
            let is_inside = self.parser.is_inside();
            if !is_inside {
                self.line = number;
            }
            if number <= self.skip_lines {
                self.skipped.earlier += 1;
                continue;
            }
            let text = self.lines.text(line);
            if !is_inside && text.trim_ascii().is_empty() && !self.parser.is_row(text) {
                self.skipped.blank_lines += 1;
                continue;
            }
            let taken = self.parser.take(text, number, line_end);
            match taken.map_err(|what| RowError { line: self.line, what })? {
                None => {}
                Some(Taken::Header) => self.skipped.header_line = Some(self.line),
                Some(_) if self.line < self.from_line => self.skipped.earlier += 1,
                Some(Taken::Null) => self.skipped.nulls += 1,
                Some(Taken::Entry) => {
                    self.skipped.escaped += u64::from(self.parser.has_escapes());
                    return Ok(Some((self.line, self.parser.entry())));
                }
            }
        }
    }

    /// Reads more input, and blocks until it arrives; returns false at the end of the input.
    ///
    /// # Errors
    ///
    /// If the input cannot be read, or if it ends within a row.
    pub fn wait(&mut self) -> io::Result<bool> {
        let has_more = self.lines.wait()?;
        if !has_more {
            let unfinished = self.parser.finish();
            unfinished.map_err(|what| {
                io::Error::new(io::ErrorKind::UnexpectedEof, RowError { line: self.line, what })
            })?;
        }
        Ok(has_more)
    }

    /// Returns the line in which the next row begins, from 1.
    pub fn next_line(&self) -> u64 {
        if self.parser.is_inside() { self.line } else { self.lines.number() + 1 }
    }

    /// Returns the rows that are not entries.
    pub fn skipped(&self) -> Skipped {
        let long_fields = match &self.parser {
            Parser::Csv(splitter, ..) => splitter.long_fields().to_vec(),
            _ => Vec::new(),
        };
        Skipped { long_fields, ..self.skipped.clone() }
    }
}

impl Parser {
    /// Returns true if the next line continues a row.
    fn is_inside(&self) -> bool {
        matches!(self, Self::Csv(splitter, ..) if splitter.is_inside())
    }

    /// Returns true if a blank line is a row nevertheless: its columns consist of blanks.
    fn is_row(&self, text: &[u8]) -> bool {
        matches!(self, Self::Tsv(splitter, ..) if splitter.separates(text))
    }

    /// Takes a line; `None` if its row goes on in the next line.
    fn take(&mut self, text: &[u8], number: u64, line_end: u8) -> Result<Option<Taken>, String> {
        match self {
            Self::Json(reader) => reader.take(text).map(Some),
            Self::Csv(splitter, rows, fields) => {
                if !splitter.add(text, number, line_end, fields)? {
                    return Ok(None);
                }
                let taken = rows.take(fields, number);
                taken.map(Some).map_err(|what| with_delimiter(what, fields, splitter.delimiter()))
            }
            Self::Tsv(splitter, rows, fields, tabs) => {
                // Lines may end as on Windows.
                let text = text.strip_suffix(b"\r").unwrap_or(text);
                if *tabs == TabRule::Undecided {
                    let is_header = splitter.is_header(text);
                    *tabs = if is_header { TabRule::All } else { TabRule::First };
                }
                let is_first_only = *tabs == TabRule::First;
                splitter.split(text, if is_first_only { 2 } else { usize::MAX }, fields)?;
                if is_first_only && fields.len() == 1 {
                    return Err(with_delimiter(splitter.alone(), fields, splitter.delimiter()));
                }
                rows.take(fields, number).map(Some)
            }
        }
    }

    fn entry(&self) -> Entry<&[u8]> {
        match self {
            Self::Json(reader) => reader.entry(),
            Self::Csv(_, rows, fields) | Self::Tsv(_, rows, fields, _) => rows.entry(fields),
        }
    }

    fn has_escapes(&self) -> bool {
        matches!(self, Self::Tsv(splitter, ..) if splitter.has_escapes())
    }

    fn finish(&self) -> Result<(), String> {
        match self {
            Self::Csv(splitter, ..) => splitter.finish(),
            _ => Ok(()),
        }
    }
}

/// Adds the likely delimiter to a message, if a row has one column that contains another delimiter.
fn with_delimiter(what: String, fields: &Fields, delimiter: u8) -> String {
    let others = [b'\t', b';', b',', b'|'].into_iter().filter(|other| *other != delimiter);
    let mut likely = others.filter(|other| fields.len() == 1 && fields.text(0).contains(other));
    match likely.next() {
        None => what,
        Some(b'\t') => format!("{what}; if tabs separate columns, add --delimiter tab"),
        Some(b',') => format!("{what}; if commas separate columns, add --format csv"),
        Some(other) => {
            let other = char::from(other);
            format!("{what}; if '{other}' separates columns, add --delimiter '{other}'")
        }
    }
}
