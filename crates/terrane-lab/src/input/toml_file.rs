//! TOML files written by users.

use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

use crate::error::usage;

/// Reads a file.
///
/// # Errors
/// If the file cannot be read or does not match `T`; the error names the line.
pub fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let wrong = |error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        usage(format!("{}, line {line}: {}", path.display(), error.message()))
    };
    toml::from_str(&text).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.toml");
        std::fs::write(&path, "a = 1\nb = 2\n").unwrap();
        assert_eq!(read::<toml::Table>(&path).unwrap().len(), 2);
        std::fs::write(&path, "a = 1\nb\n").unwrap();
        let message = read::<toml::Table>(&path).unwrap_err().to_string();
        assert!(message.contains("plan.toml") && message.contains("line 2: "), "{message}");
    }
}
