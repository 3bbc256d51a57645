//! Parses requests: arrays of bulk strings, and inline commands.
//!
//! ```text
//! *2\r\n$3\r\nGET\r\n$3\r\nkey\r\n        an array of bulk strings
//! GET key\r\n                             an inline command; words may be quoted
//! ```
//!
//! 1. The parser copies nothing: it returns where the arguments are in the buffer.
//! 2. It continues where it stopped when a request arrives in parts, so that the cost of a request is
//!    linear in its length however it is split. Positions are relative to the start of the request.
//! 3. It allocates for arguments that have arrived, never for a length that a client announces.

use super::arguments::{Arguments, Span};

/// The longest inline command, and the longest line with a length.
const MAX_LINE: usize = 64 << 10;

/// Limits of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestLimits {
    /// The maximum number of arguments, including the name of the command.
    pub(crate) arguments: usize,
    /// The maximum length of an argument.
    pub(crate) bulk_bytes: usize,
    /// The maximum length of a request.
    pub(crate) request_bytes: usize,
}

/// A request that violates the protocol or a limit. The connection cannot be used any longer, because
/// the end of the request is unknown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProtocolError(pub(crate) String);

/// How far a request was parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A request of this many bytes is complete. It has no arguments if it was an empty line.
    Complete(usize),
    /// The request is incomplete.
    Incomplete,
}

/// Parses one request after another.
#[derive(Debug, Default)]
pub(crate) struct RequestParser {
    spans: Vec<Span>,
    /// Unquoted arguments of an inline command, one after the other.
    inline: Vec<u8>,
    is_inline: bool,
    /// The number of arguments to come; `None` before the first line.
    left: Option<usize>,
    /// The announced length of the argument that begins at `at`.
    bulk: Option<usize>,
    /// The position up to which the request is parsed.
    at: usize,
}

impl RequestParser {
    /// Returns a parser.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Forgets the current request.
    pub(crate) fn reset(&mut self) {
        self.spans.clear();
        self.inline.clear();
        self.is_inline = false;
        self.left = None;
        self.bulk = None;
        self.at = 0;
    }

    /// Returns the bytes that the parser keeps in memory.
    pub(crate) fn memory(&self) -> usize {
        self.spans.capacity() * size_of::<Span>() + self.inline.capacity()
    }

    /// Parses the request at the start of `buffer`. After `Incomplete`, the caller calls again with the
    /// same bytes and more; after `Complete`, it uses [`Self::arguments`], then calls [`Self::reset`].
    ///
    /// # Errors
    /// The request violates the protocol or a limit.
    pub(crate) fn parse(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
    ) -> Result<Parsed, ProtocolError> {
        if self.left.is_none() {
            match buffer.first() {
                None => return Ok(Parsed::Incomplete),
                Some(b'*') => {}
                Some(_) => return self.parse_inline(buffer, limits),
            }
            let Some(count) = self.number(buffer, b'*', limits)? else {
                return Ok(Parsed::Incomplete);
            };
            // Redis ignores an array without elements, and one that is null.
            let count = usize::try_from(count).unwrap_or(0);
            if count > limits.arguments {
                return Err(error("invalid multibulk length"));
            }
            self.left = Some(count);
        }
        self.parse_arguments(buffer, limits)
    }

    fn parse_arguments(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
    ) -> Result<Parsed, ProtocolError> {
        while let Some(left) = self.left.filter(|left| *left > 0) {
            let len = match self.bulk {
                Some(len) => len,
                None => {
                    if let Some(other) = buffer.get(self.at).filter(|byte| **byte != b'$') {
                        let found = char::from(*other).escape_default();
                        return Err(error(&format!("expected '$', got '{found}'")));
                    }
                    let Some(len) = self.number(buffer, b'$', limits)? else {
                        return Ok(Parsed::Incomplete);
                    };
                    let len = usize::try_from(len).ok().filter(|len| *len <= limits.bulk_bytes);
                    let len = len.ok_or_else(|| error("invalid bulk length"))?;
                    if self.at + len + 2 > limits.request_bytes {
                        return Err(too_large(limits));
                    }
                    self.bulk = Some(len);
                    len
                }
            };
            let end = self.at + len;
            let Some(line_end) = buffer.get(end..end + 2) else { return Ok(Parsed::Incomplete) };
            if line_end != b"\r\n" {
                return Err(error("expected CRLF after a bulk string"));
            }
            self.push(self.at, len)?;
            self.at = end + 2;
            self.bulk = None;
            self.left = Some(left - 1);
        }
        Ok(Parsed::Complete(self.at))
    }

    /// Reads a line with a mark and a number at the position, and moves past it.
    fn number(
        &mut self,
        buffer: &[u8],
        mark: u8,
        limits: &RequestLimits,
    ) -> Result<Option<i64>, ProtocolError> {
        let rest = buffer.get(self.at..).unwrap_or_default();
        let what = if mark == b'*' { "multibulk" } else { "bulk" };
        let mut value: i64 = 0;
        let mut is_negative = false;
        for (index, byte) in rest.iter().enumerate().skip(1) {
            match byte {
                b'0'..=b'9' if index <= 20 => {
                    let digit = i64::from(byte - b'0');
                    let next = value.checked_mul(10).and_then(|value| value.checked_add(digit));
                    value = next.ok_or_else(|| error(&format!("invalid {what} length")))?;
                }
                b'-' if index == 1 => is_negative = true,
                b'\r' if index > 1 => match rest.get(index + 1) {
                    None => return Ok(None),
                    Some(b'\n') => {
                        self.at += index + 2;
                        if self.at > limits.request_bytes {
                            return Err(too_large(limits));
                        }
                        return Ok(Some(if is_negative { -value } else { value }));
                    }
                    Some(_) => return Err(error(&format!("invalid {what} length"))),
                },
                _ => return Err(error(&format!("invalid {what} length"))),
            }
        }
        Ok(None)
    }

    fn push(&mut self, start: usize, len: usize) -> Result<(), ProtocolError> {
        let span = Span::of_range(start..start.saturating_add(len));
        self.spans.push(span.ok_or_else(|| error("too big request"))?);
        Ok(())
    }

    fn parse_inline(
        &mut self,
        buffer: &[u8],
        limits: &RequestLimits,
    ) -> Result<Parsed, ProtocolError> {
        let searched = buffer.get(self.at..).unwrap_or_default();
        let Some(offset) = searched.iter().position(|byte| *byte == b'\n') else {
            self.at = buffer.len();
            if self.at > MAX_LINE.min(limits.request_bytes) {
                return Err(error("too big inline request"));
            }
            return Ok(Parsed::Incomplete);
        };
        let end = self.at + offset;
        if end > MAX_LINE.min(limits.request_bytes) {
            return Err(error("too big inline request"));
        }
        self.at = end + 1;
        self.is_inline = true;
        let line = buffer.get(..end).unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut rest = line;
        while let Some(first) = rest.iter().position(|byte| !byte.is_ascii_whitespace()) {
            rest = rest.get(first..).unwrap_or_default();
            let start = self.inline.len();
            let used = unquote(rest, &mut self.inline)
                .ok_or_else(|| error("unbalanced quotes in request"))?;
            rest = rest.get(used..).unwrap_or_default();
            self.push(start, self.inline.len() - start)?;
            if self.spans.len() > limits.arguments {
                return Err(error("too many arguments in an inline request"));
            }
        }
        Ok(Parsed::Complete(self.at))
    }

    /// Returns whether the request is an inline command, whose arguments are not in the buffer.
    pub(crate) fn is_inline(&self) -> bool {
        self.is_inline
    }

    /// Returns the arguments of a complete request at the start of `buffer`.
    pub(crate) fn arguments<'a>(&'a self, buffer: &'a [u8]) -> Arguments<'a> {
        let bytes = if self.is_inline { &self.inline[..] } else { buffer };
        Arguments::new(bytes, &self.spans)
    }
}

/// Appends a word of an inline command, without its quotes, and returns its length; `None` if a quote is
/// unterminated.
fn unquote(text: &[u8], out: &mut Vec<u8>) -> Option<usize> {
    let quote = *text.first()?;
    if quote != b'"' && quote != b'\'' {
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        out.extend_from_slice(text.get(..end)?);
        return Some(end);
    }
    let mut at = 1;
    loop {
        let byte = *text.get(at)?;
        at += 1;
        if byte == quote {
            let is_end = text.get(at).is_none_or(u8::is_ascii_whitespace);
            return is_end.then_some(at);
        }
        if byte != b'\\' || (quote == b'\'' && text.get(at) != Some(&b'\'')) {
            out.push(byte);
            continue;
        }
        let escaped = *text.get(at)?;
        at += 1;
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        out.push(match escaped {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'b' => 8,
            b'a' => 7,
            b'x' => match text.get(at..at + 2).and_then(hex) {
                Some(byte) => {
                    at += 2;
                    byte
                }
                None => b'x',
            },
            other => other,
        });
    }
}

#[cold]
fn error(text: &str) -> ProtocolError {
    ProtocolError(text.to_owned())
}

#[cold]
fn too_large(limits: &RequestLimits) -> ProtocolError {
    ProtocolError(format!("a request has at most {} bytes", limits.request_bytes))
}

#[cfg(test)]
#[path = "request/tests.rs"]
mod tests;
