//! Reads lines, and reports when the next read may block.
//!
//! A program on the other end of a pipe waits for an answer before it writes more. A reader of
//! lines must therefore flush its output before it blocks, but not after every line: a file of a
//! million lines would otherwise take a million system calls.
//!
//! ```text
//! loop {
//!     while let Some(line) = lines.take() { carry out lines.text(line) }
//!     write everything out
//!     if !lines.wait()? { break }
//! }
//! ```

use std::io::{self, Read};
use std::ops::Range;

/// The size of a read in bytes: large enough to make system calls negligible.
const READ_BYTES: usize = 256 << 10;

/// A buffered reader of lines.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// The part of the buffer that was read but not returned yet.
    unread: Range<usize>,
    /// `buffer[unread.start..searched]` contains no line end.
    searched: usize,
    /// The number of the last line returned, from 1.
    number: u64,
    /// Bytes of all lines returned.
    taken_bytes: u64,
    is_at_end: bool,
    /// The last byte of a line; `None` until the first line decides it.
    line_end: Option<u8>,
}

impl<R: Read> Lines<R> {
    /// Creates a reader of the lines of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; READ_BYTES],
            unread: 0..0,
            searched: 0,
            number: 0,
            taken_bytes: 0,
            is_at_end: false,
            line_end: Some(b'\n'),
        }
    }

    /// Creates a reader of lines that end in a line feed, or, if the first line does, in a lone carriage return. The
    /// return before a line feed is part of the line.
    pub fn of_any_system(input: R) -> Self {
        Self { line_end: None, ..Self::new(input) }
    }

    /// Returns the byte that ends a line.
    pub fn line_end(&self) -> u8 {
        self.line_end.unwrap_or(b'\n')
    }

    /// Returns the range of the next buffered line, without its line end, for [`Lines::text`]; `None`
    /// if the buffer holds no complete line. The last line needs no line end.
    pub fn take(&mut self) -> Option<Range<usize>> {
        let line_end = self.line_end.or_else(|| self.find_line_end());
        let unsearched = &self.buffer[self.searched..self.unread.end];
        let found = line_end.and_then(|end| unsearched.iter().position(|&byte| byte == end));
        let (end, next) = match found {
            Some(offset) => (self.searched + offset, self.searched + offset + 1),
            None if self.is_at_end && !self.unread.is_empty() => (self.unread.end, self.unread.end),
            None => {
                // The byte after a return decides the line end.
                let is_undecided = self.line_end.is_none() && unsearched.ends_with(b"\r");
                self.searched = self.unread.end - usize::from(is_undecided);
                return None;
            }
        };
        let line = self.unread.start..end;
        self.taken_bytes += (next - self.unread.start) as u64;
        self.unread.start = next;
        self.searched = next;
        self.number += 1;
        Some(line)
    }

    /// Decides the line end by the first line; `None` if the buffer does not hold its end.
    fn find_line_end(&mut self) -> Option<u8> {
        let unread = &self.buffer[self.searched..self.unread.end];
        let at = unread.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?;
        self.line_end = match &unread[at..] {
            [b'\r'] if !self.is_at_end => None,
            [b'\r', b'\n', ..] | [b'\n', ..] => Some(b'\n'),
            _ => Some(b'\r'),
        };
        self.line_end
    }

    /// Returns the text of the line that [`Lines::take`] returned last.
    pub fn text(&self, line: Range<usize>) -> &[u8] {
        &self.buffer[line]
    }

    /// Returns the number of the last line, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the bytes of all lines returned, including line ends.
    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Reads more input, and blocks until it arrives; returns false at the end of the input.
    pub fn wait(&mut self) -> io::Result<bool> {
        if self.is_at_end {
            return Ok(false);
        }
        self.buffer.copy_within(self.unread.clone(), 0);
        self.searched -= self.unread.start;
        self.unread = 0..self.unread.len();
        if self.buffer.len() - self.unread.end < READ_BYTES / 2 {
            // The line does not fit. Doubling the buffer keeps the total copying linear.
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let count = loop {
            match self.input.read(&mut self.buffer[self.unread.end..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other?,
            }
        };
        self.unread.end += count;
        self.is_at_end = count == 0;
        Ok(count > 0 || !self.unread.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that returns one chunk at a time.
    struct Parts(Vec<Vec<u8>>);

    impl Read for Parts {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let part = self.0.remove(0);
            let count = part.len().min(buffer.len());
            buffer[..count].copy_from_slice(&part[..count]);
            if count < part.len() {
                self.0.insert(0, part[count..].to_vec());
            }
            Ok(count)
        }
    }

    /// Reads all lines and writes a `|` wherever the reader waited for input.
    fn read(parts: &[&str]) -> String {
        let mut lines =
            Lines::new(Parts(parts.iter().map(|part| part.as_bytes().into()).collect()));
        let mut text = String::new();
        loop {
            while let Some(line) = lines.take() {
                let line = String::from_utf8(lines.text(line).to_vec()).unwrap();
                text.push_str(&format!("{}={line} ", lines.number()));
            }
            text.push('|');
            if !lines.wait().unwrap() {
                return text;
            }
        }
    }

    #[test]
    fn lines_are_whole_for_any_chunking() {
        assert_eq!(read(&[]), "|");
        assert_eq!(read(&["a\nb\n"]), "|1=a 2=b |");
        assert_eq!(read(&["a\nb"]), "|1=a |2=b |");
        assert_eq!(read(&["a", "b\n\nc", "\n"]), "||1=ab 2= |3=c |");
    }

    #[test]
    fn the_first_line_decides_the_line_end() {
        let read = |parts: &[&str]| {
            let parts = parts.iter().map(|part| part.as_bytes().into()).collect();
            let (mut lines, mut texts) = (Lines::of_any_system(Parts(parts)), Vec::new());
            loop {
                while let Some(line) = lines.take() {
                    texts.push(lines.text(line).escape_ascii().to_string());
                }
                if !lines.wait().unwrap() {
                    return texts.join("|");
                }
            }
        };
        assert_eq!(read(&["a\nb\rc\n"]), "a|b\\rc");
        assert_eq!(read(&["a\r\nb"]), "a\\r|b");
        assert_eq!(read(&["a\r", "\nb\n"]), "a\\r|b");
        assert_eq!(read(&["a", "b\r", "c\rd\ne"]), "ab|c|d\\ne");
        assert_eq!(read(&["a\r"]), "a");
        assert_eq!(read(&["a"]), "a");
    }

    #[test]
    fn lines_longer_than_the_buffer_are_read() {
        let long = "x".repeat(3 * READ_BYTES + 7);
        let text = read(&["a\n", &long, "y\nz\n"]);
        assert!(text.contains(&format!("2={long}y 3=z ")));
    }
}
