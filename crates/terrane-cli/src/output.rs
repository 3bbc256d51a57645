//! Standard output, and documents that go there or to a file.

use std::io::{self, StdoutLock, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a document to a file, or to standard output.
pub(crate) fn write_document(file: Option<&Path>, text: &str) -> Result<()> {
    match file {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => Ok(stdout().write_all(text.as_bytes())?),
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

/// Names standard output in an error, which keeps its kind.
fn named(error: io::Error) -> io::Error {
    // `write_all` retries after an interruption.
    match error.kind() {
        io::ErrorKind::Interrupted => error,
        kind => io::Error::new(kind, format!("cannot write to standard output: {error}")),
    }
}
