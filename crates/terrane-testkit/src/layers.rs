//! The layers of a crate: each module has a rank and imports only from lower ranks, and cycles of
//! files are short.
//!
//! Imports are read from the tokens of the sources: `use` declarations, and paths in code that begin
//! with `crate`, `super`, `self`, a child module or an imported name. A path counts as an import of
//! the file that declares the name, which is found by following `pub use`. Code under
//! `#[cfg(test)]` is left out. Method calls do not count as imports, because tokens have no types.

mod cycles;
mod graph;
mod imports;
mod ranks;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use graph::{Cycle, MissingFile, ModuleGraph};
pub use ranks::RankTable;

/// Checks the imports of a crate against the crate's table of ranks in `docs/ARCHITECTURE.md`. A
/// test of the crate passes `env!("CARGO_MANIFEST_DIR")` as `manifest_dir`.
///
/// # Panics
/// When an import breaks a rank, a module has no rank, or a file cannot be read.
#[allow(clippy::panic, reason = "a failed test is a panic")]
#[allow(clippy::disallowed_methods, reason = "the table is a file")]
pub fn assert_ranks(manifest_dir: &str) {
    let dir = Path::new(manifest_dir);
    let name = dir.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let path = dir.join("../../docs/ARCHITECTURE.md");
    let document = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let table = RankTable::parse(&document, name)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let wrong = table.violations(&read(dir));
    assert!(
        wrong.is_empty(),
        "{name} breaks its table of ranks in docs/ARCHITECTURE.md:\n{}",
        wrong.join("\n")
    );
}

/// Checks that at most `limit` files of the crate in `manifest_dir` import each other in a cycle.
///
/// # Panics
/// When a cycle is longer, or a file cannot be read.
#[allow(clippy::panic, reason = "a failed test is a panic")]
pub fn assert_cycles(manifest_dir: &str, limit: usize) {
    for cycle in read(Path::new(manifest_dir)).cycles() {
        let (len, imports) = (cycle.files.len(), cycle.imports.join("\n"));
        assert!(len <= limit, "{len} files import each other, at most {limit} may:\n{imports}");
    }
}

#[allow(clippy::panic, reason = "a failed test is a panic")]
fn read(dir: &Path) -> ModuleGraph {
    ModuleGraph::read(&dir.join("src")).unwrap_or_else(|error| panic!("{error}"))
}
