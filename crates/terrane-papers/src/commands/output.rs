//! Documents on standard output or in files.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, Result};

/// Writes a document to a file, or to standard output.
pub(super) fn write_document(file: Option<&Path>, text: &str) -> Result<()> {
    match file {
        Some(path) => {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
        }
        None => {
            let written = io::stdout().lock().write_all(text.as_bytes());
            written.context("cannot write to standard output")
        }
    }
}
