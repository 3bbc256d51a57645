//! Reads, names and copies files.

use std::fs;
use std::path::Path;

use crate::step::StepResult;

/// Returns a text file; an error names it.
pub(super) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the page of a document: mdBook shows the index of a directory at its address.
pub(super) fn page_of(name: &str) -> String {
    name.strip_suffix("README.md")
        .map_or_else(|| name.to_owned(), |directory| format!("{directory}index.md"))
}

/// Copies a directory into another one.
pub(super) fn copy_all(from: &Path, to: &Path) -> StepResult {
    let failed = |error: std::io::Error| format!("{}: {error}", from.display());
    for entry in fs::read_dir(from).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let (source, target) = (entry.path(), to.join(entry.file_name()));
        if source.is_dir() {
            fs::create_dir_all(&target).map_err(failed)?;
            copy_all(&source, &target)?;
        } else {
            fs::copy(&source, &target).map_err(failed)?;
        }
    }
    Ok(())
}
