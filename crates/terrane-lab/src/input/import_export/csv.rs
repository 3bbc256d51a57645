//! CSV (RFC 4180): fields with commas, quotes or line ends are quoted, so keys and values may be any bytes.
//!
//! A dump begins with its header: `key,value`, and `expires_at_micros` if values may expire. Other files may lack a
//! header. A quote inside an unquoted field is part of the text; text after a closing quote, and a quote that is
//! never closed, are errors, because they are the traces of a quote that swallows rows.

use std::io::{self, Write};

use terrane::{MAX_KEY_LEN, MAX_VALUE_LEN};

use super::fields::Fields;
use crate::output::human;

/// The most bytes of a row: no entry has more, so a longer row has a quote that is not closed.
const ROW_BYTES_MAX: usize = MAX_KEY_LEN + MAX_VALUE_LEN;

/// A field with more line breaks probably swallowed rows.
pub(super) const BREAKS_MAX: u64 = 1000;

/// Splits lines into fields. A row has several lines if a quoted field contains line breaks.
#[derive(Debug)]
pub(super) struct CsvSplitter {
    delimiter: u8,
    /// The line that opened the quote of the current field, if that field goes on in the next line.
    opened_line: Option<u64>,
    /// The line breaks in the current field.
    breaks: u64,
    /// The lines that opened fields with more than [`BREAKS_MAX`] line breaks.
    long_fields: Vec<u64>,
}

impl CsvSplitter {
    pub(super) fn new(delimiter: u8) -> Self {
        Self { delimiter, opened_line: None, breaks: 0, long_fields: Vec::new() }
    }

    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Returns true if the next line continues a row.
    pub(super) fn is_inside(&self) -> bool {
        self.opened_line.is_some()
    }

    /// Returns the lines that opened fields with very many line breaks.
    pub(super) fn long_fields(&self) -> &[u64] {
        &self.long_fields
    }

    /// Adds a line, and returns true if the row is complete. `line_end` is the byte after the line.
    pub(super) fn add(
        &mut self,
        line: &[u8],
        number: u64,
        line_end: u8,
        fields: &mut Fields,
    ) -> Result<bool, String> {
        let mut rest = line;
        let mut opened_line = self.opened_line.take();
        if opened_line.is_none() {
            fields.clear();
        }
        loop {
            if let Some(opened) = opened_line.take() {
                match self.quoted(rest, opened, line_end, fields)? {
                    Some(after) => rest = after,
                    None => return Ok(false),
                }
                match rest.split_first() {
                    None | Some((b'\r', [])) => {
                        fields.end();
                        return Ok(true);
                    }
                    Some((byte, after)) if *byte == self.delimiter => {
                        fields.end();
                        rest = after;
                    }
                    Some(_) => return Err(after_quote(opened, number)),
                }
            }
            if let [b'"', after @ ..] = rest {
                (rest, opened_line, self.breaks) = (after, Some(number), 0);
                continue;
            }
            match rest.iter().position(|byte| *byte == self.delimiter) {
                Some(end) => {
                    fields.bytes().extend_from_slice(&rest[..end]);
                    fields.end();
                    rest = &rest[end + 1..];
                }
                None => {
                    let last = rest.strip_suffix(b"\r").unwrap_or(rest);
                    fields.bytes().extend_from_slice(last);
                    fields.end();
                    return Ok(true);
                }
            }
        }
    }

    /// Reads a quoted field up to its closing quote, and returns the text after it; `None` if it goes on in the next
    /// line.
    fn quoted<'a>(
        &mut self,
        text: &'a [u8],
        opened: u64,
        line_end: u8,
        fields: &mut Fields,
    ) -> Result<Option<&'a [u8]>, String> {
        let mut rest = text;
        while let Some(quote) = rest.iter().position(|byte| *byte == b'"') {
            fields.bytes().extend_from_slice(&rest[..quote]);
            rest = &rest[quote + 1..];
            match rest {
                [b'"', after @ ..] => {
                    fields.bytes().push(b'"');
                    rest = after;
                }
                _ => return Ok(Some(rest)),
            }
        }
        let bytes = fields.bytes();
        bytes.extend_from_slice(rest);
        bytes.push(line_end);
        if bytes.len() > ROW_BYTES_MAX {
            let most = human::bytes(ROW_BYTES_MAX as u64);
            return Err(format!("the quote opened in line {opened} is not closed within {most}"));
        }
        self.opened_line = Some(opened);
        self.breaks += 1;
        if self.breaks == BREAKS_MAX + 1 {
            self.long_fields.push(opened);
        }
        Ok(None)
    }

    /// Checks that no quote is open at the end of the file.
    pub(super) fn finish(&self) -> Result<(), String> {
        match self.opened_line {
            None => Ok(()),
            Some(line) => Err(format!(
                "the quote opened in line {line} is not closed; if it is part of the text, write it twice and quote the \
                 field"
            )),
        }
    }
}

fn after_quote(opened: u64, number: u64) -> String {
    let place = if opened == number {
        String::new()
    } else {
        format!(" in line {number}: the quote opened in line {opened} may have swallowed rows")
    };
    format!("text after a closing quote{place}; write a quote inside a quoted field twice")
}

/// Writes a field, after the comma that separates it from the one before.
pub(super) fn write_field(out: &mut dyn Write, index: usize, bytes: &[u8]) -> io::Result<()> {
    if index > 0 {
        out.write_all(b",")?;
    }
    let needs_quotes = |byte: &u8| matches!(byte, b'"' | b',' | b'\n' | b'\r');
    // A row of one empty field would be a blank line.
    if !bytes.iter().any(needs_quotes) && (index > 0 || !bytes.trim_ascii().is_empty()) {
        return out.write_all(bytes);
    }
    out.write_all(b"\"")?;
    for (part, text) in bytes.split(|byte| *byte == b'"').enumerate() {
        if part > 0 {
            out.write_all(b"\"\"")?;
        }
        out.write_all(text)?;
    }
    out.write_all(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rows of a text, with `|` between fields.
    fn rows(text: &str) -> Result<Vec<String>, String> {
        let (mut splitter, mut fields) = (CsvSplitter::new(b','), Fields::default());
        let mut rows = Vec::new();
        for (index, line) in text.lines().enumerate() {
            // `lines` removes the return of a line end.
            if splitter.add(line.as_bytes(), index as u64 + 1, b'\n', &mut fields)? {
                rows.push(fields.names().join("|"));
            }
        }
        splitter.finish().map(|()| rows)
    }

    #[test]
    fn quotes_protect_commas_quotes_and_line_breaks() {
        assert_eq!(rows("a,b\n\"a,1\",\"say \"\"x\"\"\"").unwrap(), ["a|b", "a,1|say \"x\""]);
        assert_eq!(rows("a,\"1\n2\n\n3\",c\nd,").unwrap(), ["a|1\n2\n\n3|c", "d|"]);
        assert_eq!(rows("\"\",\"\"\n5\" inch,7").unwrap(), ["|", "5\" inch|7"]);
    }

    #[test]
    fn a_quote_that_is_not_closed_names_its_line() {
        let error = rows("a,1\nb,2\nc,\"5 inch\nd,4\ne,5").unwrap_err();
        assert!(error.starts_with("the quote opened in line 3 is not closed"), "{error}");
        let error = rows("a,1\nb,\"5 inch\nc,3\nd,\"4\"\n").unwrap_err();
        assert!(error.contains("opened in line 2 may have swallowed rows"), "{error}");
        let error = rows("a,\"b\"c").unwrap_err();
        assert!(error.starts_with("text after a closing quote; "), "{error}");
    }

    #[test]
    fn fields_with_very_many_line_breaks_are_noted() {
        let (mut splitter, mut fields) = (CsvSplitter::new(b','), Fields::default());
        let mut add = |line: &[u8], number| splitter.add(line, number, b'\n', &mut fields).unwrap();
        assert!(add(b"a,1", 1) && !add(b"b,\"", 2));
        assert!((3..=BREAKS_MAX + 2).all(|number| !add(b"x", number)));
        assert!(add(b"\"", BREAKS_MAX + 3));
        assert_eq!(splitter.long_fields(), [2]);
    }
}
