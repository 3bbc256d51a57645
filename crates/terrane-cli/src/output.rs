//! Standard output for data, for people, and for documents that may go to a file.

use std::io::{self, StdoutLock, Write};
use std::path::Path;

use anyhow::{Context, Result};

use crate::terminal::columns;
use crate::wrap::wrapped;

/// Writes a document to a file, or to standard output.
pub(crate) fn write_document(file: Option<&Path>, text: &str) -> Result<()> {
    match file {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => Ok(self::text().write_all(text.as_bytes())?),
    }
}

/// Standard output, locked. Its errors name it.
pub(crate) struct Stdout(StdoutLock<'static>);

/// Returns standard output.
pub(crate) fn stdout() -> Stdout {
    Stdout(io::stdout().lock())
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(named)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(named)
    }
}

/// Standard output for people: breaks lines to fit the terminal, but not in a file or a pipe.
pub(crate) struct Text {
    out: Stdout,
    columns: Option<usize>,
    /// A line that has no end yet.
    line: Vec<u8>,
}

/// Returns standard output for people.
pub(crate) fn text() -> Text {
    Text { out: stdout(), columns: columns(), line: Vec::new() }
}

/// Returns standard output for people, or for JSON, whose lines are never broken.
pub(crate) fn text_or_json(is_json: bool) -> Text {
    let columns = if is_json { None } else { columns() };
    Text { out: stdout(), columns, line: Vec::new() }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(columns) = self.columns else { return self.out.write(bytes) };
        self.line.extend_from_slice(bytes);
        if let Some(end) = self.line.iter().rposition(|&byte| byte == b'\n') {
            let rest = self.line.split_off(end + 1);
            let lines = std::mem::replace(&mut self.line, rest);
            match String::from_utf8(lines) {
                Ok(lines) => self.out.write_all(wrapped(&lines, columns).as_bytes())?,
                Err(lines) => self.out.write_all(lines.as_bytes())?,
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        let _ = self.out.write_all(&self.line);
    }
}

/// Names standard output in an error, and keeps the kind of the error.
fn named(error: io::Error) -> io::Error {
    // `write_all` retries after an interruption.
    match error.kind() {
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, format!("cannot write to standard output: {error}")),
    }
}
