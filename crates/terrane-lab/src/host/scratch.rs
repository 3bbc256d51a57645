//! Temporary directories, which are removed at the end, on an error, and when the process is
//! interrupted.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::host::interrupt;

/// A directory that is removed when the value is dropped.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
}

impl Scratch {
    /// Creates a directory in the system's temporary directory.
    pub fn temporary(prefix: &str) -> Result<Self> {
        let made = tempfile::Builder::new().prefix(prefix).tempdir();
        let parent = std::env::temp_dir();
        let made = made.with_context(|| {
            let parent = parent.display();
            format!("cannot create a directory in {parent}; set TMPDIR to a writable directory")
        })?;
        Ok(Self::of(made.keep()))
    }

    /// Registers a directory that exists or is about to be created.
    pub fn of(path: PathBuf) -> Self {
        interrupt::remove_when_interrupted(&path);
        Self { path }
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        interrupt::wait_if_ending();
        interrupt::remove(&self.path);
        interrupt::keep(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_directories_are_removed_with_their_contents() {
        let scratch = Scratch::temporary("terrane-test-").unwrap();
        let path = scratch.path().to_owned();
        std::fs::create_dir(path.join("sub")).unwrap();
        std::fs::write(path.join("sub/file"), "x").unwrap();
        drop(scratch);
        assert!(!path.exists());
    }
}
