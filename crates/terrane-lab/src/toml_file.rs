//! Files of TOML that a user wrote.

use std::path::Path;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;

use crate::error::usage;

/// What a file holds.
///
/// # Errors
/// It cannot be read, or holds something else; the line is told.
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
    fn the_line_that_is_wrong_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("plan.toml");
        std::fs::write(&path, "a = 1\nb = 2\n").unwrap();
        assert_eq!(read::<toml::Table>(&path).unwrap().len(), 2);
        std::fs::write(&path, "a = 1\nb\n").unwrap();
        let told = read::<toml::Table>(&path).unwrap_err().to_string();
        assert!(told.contains("plan.toml") && told.contains("line 2: "), "{told}");
    }
}
