//! Lines of JSON on a socket: bounded in length, with time-outs in both directions.
//!
//! A client that sends endlessly fills a buffer of a fixed size and is then disconnected. A client
//! that does not read blocks only its own thread, until the time-out.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde::Serialize;

/// The number of bytes read at once.
const CHUNK: usize = 4096;

/// The outcome of a wait for a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    Line(Vec<u8>),
    /// No line yet.
    Nothing,
    /// The other end has closed the connection.
    End,
    /// The line is longer than allowed.
    TooLong,
}

/// The lines of a socket.
#[derive(Debug)]
pub(super) struct Lines {
    stream: UnixStream,
    read: Vec<u8>,
    /// The bytes of `read` without the end of a line.
    searched: usize,
    longest: usize,
    write_timeout: Duration,
}

impl Lines {
    /// Takes a socket. Lines to read may have at most `longest` bytes; a write fails after
    /// `write_timeout`.
    pub(super) fn new(
        stream: UnixStream,
        longest: usize,
        write_timeout: Duration,
    ) -> io::Result<Self> {
        // An accepted socket inherits this from its listener on some platforms.
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(write_timeout))?;
        Ok(Self { stream, read: Vec::new(), searched: 0, longest, write_timeout })
    }

    /// Waits for a line, for about `most`.
    pub(super) fn arrival(&mut self, most: Duration) -> io::Result<Arrival> {
        let begun = Instant::now();
        loop {
            if let Some(line) = self.take() {
                return Ok(Arrival::Line(line));
            }
            if self.read.len() > self.longest {
                return Ok(Arrival::TooLong);
            }
            let left = most.saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left))?;
            let mut chunk = [0; CHUNK];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Ok(Arrival::End),
                Ok(count) => self.read.extend_from_slice(chunk.get(..count).unwrap_or_default()),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut => return Ok(Arrival::Nothing),
                    ErrorKind::Interrupted => {}
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => return Ok(Arrival::End),
                    _ => return Err(error),
                },
            }
            if begun.elapsed() > most && !self.read.contains(&b'\n') {
                return Ok(Arrival::Nothing);
            }
        }
    }

    /// Takes the first line of the buffer, without its end.
    fn take(&mut self) -> Option<Vec<u8>> {
        let new = self.read.get(self.searched..).unwrap_or_default();
        let Some(end) = new.iter().position(|&byte| byte == b'\n') else {
            self.searched = self.read.len();
            return None;
        };
        let end = self.searched + end;
        if end > self.longest {
            return None;
        }
        let rest = self.read.split_off(end + 1);
        let mut line = std::mem::replace(&mut self.read, rest);
        line.pop();
        self.searched = 0;
        Some(line)
    }

    /// Writes a message as a line. Fails if the peer does not accept all of it in time.
    pub(super) fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let (mut rest, begun) = (line.as_slice(), Instant::now());
        while !rest.is_empty() {
            // A write that times out after sending some of the bytes returns their number.
            if begun.elapsed() >= self.write_timeout {
                return Err(ErrorKind::TimedOut.into());
            }
            match self.stream.write(rest) {
                Ok(count) => rest = rest.get(count..).unwrap_or_default(),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_millis(20);

    fn lines() -> (Lines, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Lines::new(ours, 10, SOON).unwrap(), theirs)
    }

    fn line(text: &str) -> Arrival {
        Arrival::Line(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_arrive_whole_whatever_their_pieces_are() {
        let (mut lines, mut other) = lines();
        other.write_all(b"one\ntw").unwrap();
        assert_eq!(lines.arrival(SOON).unwrap(), line("one"));
        assert_eq!(lines.arrival(SOON).unwrap(), Arrival::Nothing);
        other.write_all(b"o\n\nthree").unwrap();
        assert_eq!(lines.arrival(SOON).unwrap(), line("two"));
        assert_eq!(lines.arrival(SOON).unwrap(), line(""));
        drop(other);
        // An incomplete line is ignored.
        assert_eq!(lines.arrival(SOON).unwrap(), Arrival::End);
    }

    #[test]
    fn a_line_that_is_too_long_is_not_kept() {
        for text in ["0123456789a", "0123456789a\n"] {
            let (mut lines, mut other) = lines();
            other.write_all(text.as_bytes()).unwrap();
            assert_eq!(lines.arrival(SOON).unwrap(), Arrival::TooLong);
            assert!(lines.read.len() <= 10 + CHUNK);
        }
        let (mut lines, mut other) = lines();
        other.write_all(b"0123456789\n").unwrap();
        assert_eq!(lines.arrival(SOON).unwrap(), line("0123456789"));
    }

    #[test]
    fn a_client_that_does_not_read_is_left_after_the_time_out() {
        let (mut lines, _other) = lines();
        let begun = Instant::now();
        let error = lines.send(&"x".repeat(4 << 20)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
