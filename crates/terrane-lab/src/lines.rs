//! Reads lines, and says when it is about to wait for more.
//!
//! A program that talks to ours through pipes waits for its answer before it writes on. So who
//! reads lines must know when there are no more at hand, and write out what it has to say before
//! it waits; and it must not do so after every line, or a file of a million would take a million
//! system calls.
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

/// What is asked of the input at a time, in bytes: enough that system calls do not count.
const READ_BYTES: usize = 256 << 10;

/// The lines of an input.
#[derive(Debug)]
pub struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    /// What of the buffer was read and not taken yet.
    unread: Range<usize>,
    /// Up to where in the buffer there is no end of a line after the start of `unread`.
    searched: usize,
    /// The number of the line that was taken last, from 1.
    number: u64,
    /// Bytes of all lines that were taken.
    taken_bytes: u64,
    is_at_end: bool,
}

impl<R: Read> Lines<R> {
    /// The lines of `input`.
    pub fn new(input: R) -> Self {
        Self {
            input,
            buffer: vec![0; READ_BYTES],
            unread: 0..0,
            searched: 0,
            number: 0,
            taken_bytes: 0,
            is_at_end: false,
        }
    }

    /// The next line that is at hand: where [`Lines::text`] finds it, without its end. The last
    /// line needs none.
    pub fn take(&mut self) -> Option<Range<usize>> {
        let found = self.buffer[self.searched..self.unread.end].iter().position(|&b| b == b'\n');
        let (end, next) = match found {
            Some(offset) => (self.searched + offset, self.searched + offset + 1),
            None if self.is_at_end && !self.unread.is_empty() => (self.unread.end, self.unread.end),
            None => {
                self.searched = self.unread.end;
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

    /// A line that was just taken.
    pub fn text(&self, line: Range<usize>) -> &[u8] {
        &self.buffer[line]
    }

    /// The number of the line that was taken last, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Bytes of all lines that were taken, their ends included.
    pub fn taken_bytes(&self) -> u64 {
        self.taken_bytes
    }

    /// Waits for more input; false if there is none.
    pub fn wait(&mut self) -> io::Result<bool> {
        if self.is_at_end {
            return Ok(false);
        }
        self.buffer.copy_within(self.unread.clone(), 0);
        self.searched -= self.unread.start;
        self.unread = 0..self.unread.len();
        if self.buffer.len() - self.unread.end < READ_BYTES / 2 {
            // A line that does not fit; doubling keeps the copying linear.
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

    /// Gives its parts one at a time.
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

    /// All lines, with `|` where the reader waited for more.
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
    fn lines_are_whole_however_they_arrive() {
        assert_eq!(read(&[]), "|");
        assert_eq!(read(&["a\nb\n"]), "|1=a 2=b |");
        assert_eq!(read(&["a\nb"]), "|1=a |2=b |");
        assert_eq!(read(&["a", "b\n\nc", "\n"]), "||1=ab 2= |3=c |");
    }

    #[test]
    fn lines_longer_than_the_buffer_are_read() {
        let long = "x".repeat(3 * READ_BYTES + 7);
        let text = read(&["a\n", &long, "y\nz\n"]);
        assert!(text.contains(&format!("2={long}y 3=z ")));
    }
}
