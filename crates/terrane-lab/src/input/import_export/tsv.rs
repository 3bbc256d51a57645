//! Lines of key, tab, value.
//!
//! Tabs, line ends, backslashes, control characters and invalid UTF-8 are written as `\t`, `\n`, `\r`,
//! `\0`, `\\` and `\x` with two digits, so that the file is always text. In a file of keys and values without a
//! header, only the first tab of a line separates, so that a value may contain tabs. `\N`, alone in a column, is null,
//! as in the files of MySQL and PostgreSQL. Raw lines have no escapes.
//!
//! A dump has a header only if values may expire: `key`, `value`, `expires_at_micros`. A key with a byte order mark,
//! or one that consists of blanks, begins with an escape, so that no reader drops it.

use std::io::{self, Write};

use super::columns::{EXPIRY, KEY, VALUE};
use super::entry::Entry;
use super::fields::Fields;
use crate::output::json::hex;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Splits lines into fields.
#[derive(Debug)]
pub(super) struct TsvSplitter {
    delimiter: u8,
    is_raw: bool,
    /// The last line had an escape.
    has_escapes: bool,
}

impl TsvSplitter {
    pub(super) fn new(delimiter: u8, is_raw: bool) -> Self {
        Self { delimiter, is_raw, has_escapes: false }
    }

    pub(super) fn delimiter(&self) -> u8 {
        self.delimiter
    }

    /// Splits a line into at most `most` fields, the last of which may contain delimiters.
    pub(super) fn split(
        &mut self,
        line: &[u8],
        most: usize,
        fields: &mut Fields,
    ) -> Result<(), String> {
        fields.clear();
        self.has_escapes = false;
        let mut rest = line;
        loop {
            let end = rest.iter().position(|byte| *byte == self.delimiter);
            match end.filter(|_| fields.len() + 1 < most) {
                Some(end) => {
                    self.field(&rest[..end], fields)?;
                    rest = &rest[end + 1..];
                }
                None => return self.field(rest, fields),
            }
        }
    }

    fn field(&mut self, text: &[u8], fields: &mut Fields) -> Result<(), String> {
        if self.is_raw {
            fields.bytes().extend_from_slice(text);
        } else if text == b"\\N" {
            fields.end_null();
            return Ok(());
        } else {
            self.has_escapes |= unescape(text, fields.bytes())?;
        }
        fields.end();
        Ok(())
    }

    /// Returns true if the last line had escapes.
    pub(super) fn has_escapes(&self) -> bool {
        self.has_escapes
    }

    /// Returns true if a line has a delimiter.
    pub(super) fn separates(&self, line: &[u8]) -> bool {
        line.contains(&self.delimiter)
    }

    /// Returns the message about a line without a delimiter.
    pub(super) fn alone(&self) -> String {
        let name = match self.delimiter {
            b'\t' => "tab".to_owned(),
            other => format!("'{}'", char::from(other)),
        };
        format!("expected a {name} between key and value; if each line is a key, add --keys-only")
    }

    /// Returns true if a line is the header of a dump of values that may expire.
    pub(super) fn is_header(&self, line: &[u8]) -> bool {
        let mut names = line.split(|byte| *byte == self.delimiter);
        names.next() == Some(KEY.as_bytes())
            && names.next() == Some(VALUE.as_bytes())
            && names.next().is_some_and(|name| EXPIRY.iter().any(|known| known.as_bytes() == name))
            && names.next().is_none()
    }
}

/// Writes fields, each after the tab that separates it from the one before.
pub(super) fn write_field(out: &mut dyn Write, index: usize, bytes: &[u8]) -> io::Result<()> {
    if index > 0 {
        return write_tab(out).and_then(|()| write_escaped(out, bytes));
    }
    let is_dropped = bytes.starts_with(BYTE_ORDER_MARK) || bytes.trim_ascii().is_empty();
    let Some((first, rest)) = bytes.split_first().filter(|_| is_dropped) else {
        return write_escaped(out, bytes);
    };
    // The rest of a mark is not UTF-8, so it is escaped too.
    write!(out, "\\x{first:02x}")?;
    write_escaped(out, rest)
}

fn write_tab(out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"\t")
}

fn write_escaped(out: &mut dyn Write, bytes: &[u8]) -> io::Result<()> {
    for chunk in bytes.utf8_chunks() {
        let text = chunk.valid();
        let mut plain_from = 0;
        for (at, byte) in text.bytes().enumerate() {
            if !byte.is_ascii_control() && byte != b'\\' {
                continue;
            }
            out.write_all(&text.as_bytes()[plain_from..at])?;
            plain_from = at + 1;
            match byte {
                b'\t' => out.write_all(b"\\t")?,
                b'\n' => out.write_all(b"\\n")?,
                b'\r' => out.write_all(b"\\r")?,
                b'\0' => out.write_all(b"\\0")?,
                b'\\' => out.write_all(b"\\\\")?,
                other => write!(out, "\\x{other:02x}")?,
            }
        }
        out.write_all(&text.as_bytes()[plain_from..])?;
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}")?;
        }
    }
    Ok(())
}

/// Appends the bytes that a text stands for, and returns true if it has escapes.
fn unescape(text: &[u8], bytes: &mut Vec<u8>) -> Result<bool, String> {
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'\\') {
        bytes.extend_from_slice(&rest[..at]);
        let (byte, length) = escaped(&rest[at + 1..])?;
        bytes.push(byte);
        rest = &rest[at + 1 + length..];
    }
    bytes.extend_from_slice(rest);
    Ok(rest.len() < text.len())
}

/// Parses the text after the backslash of an escape, and returns the byte and the length of the
/// escape.
fn escaped(text: &[u8]) -> Result<(u8, usize), String> {
    let byte = match text {
        [b't', ..] => b'\t',
        [b'n', ..] => b'\n',
        [b'r', ..] => b'\r',
        [b'0', ..] => 0,
        [b'\\', ..] => b'\\',
        [b'x', high, low, ..] => {
            let digit = |byte: &u8| char::from(*byte).to_digit(16);
            let (Some(high), Some(low)) = (digit(high), digit(low)) else {
                return Err(bad_escape(&text[..3]));
            };
            return Ok(((high * 16 + low) as u8, 3));
        }
        // Earlier dumps marked expiry times so.
        [b'e', digits @ ..] if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => {
            return Err("invalid escape '\\e'; if it begins the expiry time of an earlier dump, replace it with a tab \
                 and add --expiry 3; if backslashes are part of the text, add --raw"
                .into());
        }
        _ => return Err(bad_escape(&text[..text.len().min(1)])),
    };
    Ok((byte, 1))
}

fn bad_escape(found: &[u8]) -> String {
    let found = match std::str::from_utf8(found) {
        Ok(text) => text.to_owned(),
        Err(_) => format!("0x{}", hex(found)),
    };
    format!(
        "invalid escape '\\{found}'; write \\\\ for a backslash, or \\t \\n \\r \\0 \\x00; if backslashes are part of \
         the text, add --raw"
    )
}

/// Writes an entry without escapes; returns false, and may have written a part, if its bytes could not be read back.
///
/// # Errors
///
/// If `out` cannot be written.
pub(super) fn write_raw(
    out: &mut dyn Write,
    entry: Entry<&[u8]>,
    has_value: bool,
    columns: usize,
) -> io::Result<bool> {
    let is_broken = |bytes: &[u8], may_have_tabs: bool| {
        bytes.iter().any(|byte| matches!(byte, b'\n' | b'\r') || (*byte == b'\t' && !may_have_tabs))
    };
    let is_lost = if has_value {
        // The line must not be taken for a header either.
        is_broken(entry.value, columns == 2)
            || (entry.key == KEY.as_bytes() && entry.value.starts_with(b"value\t"))
    } else {
        columns == 1 && entry.key.trim_ascii().is_empty()
    };
    if is_lost || is_broken(entry.key, false) {
        return Ok(false);
    }
    out.write_all(entry.key)?;
    if has_value {
        write_tab(out)?;
        out.write_all(entry.value)?;
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line_of(fields: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, field) in fields.iter().enumerate() {
            write_field(&mut out, index, field).unwrap();
        }
        out
    }

    fn split(line: &[u8], most: usize, is_raw: bool) -> Result<Vec<Option<Vec<u8>>>, String> {
        let mut fields = Fields::default();
        TsvSplitter::new(b'\t', is_raw).split(line, most, &mut fields)?;
        Ok((0..fields.len()).map(|at| fields.get(at).map(<[u8]>::to_vec)).collect())
    }

    #[test]
    fn lines_are_text_and_lines_of_other_programs_are_read() {
        assert_eq!(line_of(&[b"a", "caf\u{e9} x".as_bytes()]), "a\tcaf\u{e9} x".as_bytes());
        assert_eq!(line_of(&[b"\t\\\xff", b"\n\x07"]), b"\\t\\\\\\xff\t\\n\\x07");
        let some = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(split(b"a\tb\tc", 2, false), Ok(vec![some("a"), some("b\tc")]));
        assert_eq!(split(b"a\tb\tc", 9, false), Ok(vec![some("a"), some("b"), some("c")]));
        assert_eq!(split(b"\t", 2, false), Ok(vec![some(""), some("")]));
        assert_eq!(split(b"k\t\\N", 2, false), Ok(vec![some("k"), None]));
        assert_eq!(split(b"k\t\\N", 2, true), Ok(vec![some("k"), some("\\N")]));
        assert_eq!(split(b"C:\\new", 2, true), Ok(vec![some("C:\\new")]));
        for bad in ["C:\\dir\tv", "k\t\\", "k\t\\x1", "k\t\\xzz", "k\tx\\N", "k\tv\\e5"] {
            let error = split(bad.as_bytes(), 2, false).unwrap_err();
            assert!(error.contains("invalid escape") && error.contains("--raw"), "{bad}: {error}");
        }
        // An expiry time of an earlier dump must not become part of a value.
        assert!(split(b"k\t1\\e5", 2, false).unwrap_err().contains("--expiry 3"));
    }

    #[test]
    fn keys_that_readers_drop_begin_with_an_escape() {
        assert_eq!(line_of(&[b"\xef\xbb\xbfa"]), b"\\xef\\xbb\\xbfa");
        assert_eq!(line_of(&[b"  "]), b"\\x20 ");
        assert_eq!(line_of(&[b"a", b"  "]), b"a\t  ");
    }
}
