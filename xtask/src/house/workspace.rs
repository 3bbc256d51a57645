//! The files of the repository that the house rules cover.

use std::path::{Path, PathBuf};

use terrane_testkit::layers::ModuleGraph;

/// A file with its path below the root of the repository.
pub(super) struct TextFile {
    pub path: String,
    pub text: String,
}

/// A crate with its modules, except test modules.
pub(super) struct CrateSources {
    /// The folder of the sources, such as `crates/terrane/src`.
    pub dir: String,
    pub graph: ModuleGraph,
}

/// Everything that is measured.
pub(super) struct Workspace {
    pub crates: Vec<CrateSources>,
    /// Rust sources, including tests.
    pub sources: Vec<TextFile>,
    /// Markdown.
    pub documents: Vec<TextFile>,
}

/// Folders with code of this project.
const CODE: &[&str] = &["crates", "xtask", "compare", "fuzz"];

/// The crate of tests, which has no production code.
const TESTS: &str = "crates/terrane-tests/";

impl Workspace {
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let mut paths = Vec::new();
        collect(root, root, &mut paths)?;
        paths.sort();
        let mut workspace = Self { crates: Vec::new(), sources: Vec::new(), documents: Vec::new() };
        for path in paths {
            let text = || {
                std::fs::read_to_string(root.join(&path))
                    .map_err(|error| format!("{path}: {error}"))
            };
            let is_code = CODE.iter().any(|dir| path.starts_with(&format!("{dir}/")));
            let is_root = path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
            if is_code && is_root && !path.starts_with(TESTS) {
                workspace.add_crate(root, &path)?;
            }
            if path.ends_with(".rs") && is_code {
                workspace.sources.push(TextFile { text: text()?, path });
            } else if path.ends_with(".md") {
                workspace.documents.push(TextFile { text: text()?, path });
            }
        }
        Ok(workspace)
    }

    fn add_crate(&mut self, root: &Path, path: &str) -> Result<(), String> {
        let dir = path.rsplit_once('/').map_or(path, |(dir, _)| dir).to_owned();
        // A command has a `main.rs` and a `lib.rs`; `lib.rs` comes first.
        if !self.crates.iter().any(|known| known.dir == dir) {
            let graph =
                ModuleGraph::read(&root.join(&dir)).map_err(|error| format!("{dir}: {error}"))?;
            self.crates.push(CrateSources { dir, graph });
        }
        Ok(())
    }

    pub(super) fn source(&self, path: &str) -> Option<&TextFile> {
        self.sources.iter().find(|file| file.path == path)
    }

    /// Returns true if a source is a module outside of tests.
    pub(super) fn is_production(&self, path: &str) -> bool {
        self.crates.iter().any(|each| {
            let below = path.strip_prefix(&each.dir).and_then(|rest| rest.strip_prefix('/'));
            below.is_some_and(|below| each.graph.files().any(|file| file == below))
        })
    }
}

/// Adds the files below `dir`, except build outputs and hidden files.
fn collect(root: &Path, dir: &Path, paths: &mut Vec<String>) -> Result<(), String> {
    let fail = |error: std::io::Error| format!("{}: {error}", dir.display());
    for entry in std::fs::read_dir(dir).map_err(fail)? {
        let path: PathBuf = entry.map_err(fail)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with('.') || name == "target" || name == "artifacts" || name == "corpus" {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, paths)?;
        } else if let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str) {
            paths.push(path.replace('\\', "/"));
        }
    }
    Ok(())
}
