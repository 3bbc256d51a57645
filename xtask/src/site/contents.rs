//! The documents by part, from `docs/README.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;

use super::files::{page_of, read};
use super::markdown::{links, resolved, title};

/// A part of the table of contents.
#[derive(Debug)]
struct Part {
    title: String,
    /// The documents, each with those that it lists itself.
    documents: Vec<(String, Vec<String>)>,
}

/// The table of contents.
#[derive(Debug)]
pub(super) struct Contents {
    parts: Vec<Part>,
}

/// Lists of documents, each in a directory of its own.
const INDEX: &str = "/README.md";

impl Contents {
    /// Reads the table of contents of a checkout.
    pub(super) fn read(root: &Path) -> Result<Self, String> {
        let text = read(&root.join("docs/README.md"))?;
        let mut parts: Vec<Part> = Vec::new();
        let is_known = |parts: &[Part], name: &str| {
            let mut documents = parts.iter().flat_map(|part| &part.documents);
            documents.any(|(known, _)| known == name)
        };
        // Each part is a table whose head names its readers.
        for table in text.split("\n\n").filter(|table| table.starts_with("| ")) {
            let head = table.lines().next().unwrap_or_default();
            let mut part =
                Part { title: capital(head.trim_matches(['|', ' '])), documents: Vec::new() };
            for row in table.lines().skip(2) {
                // Descriptions may refer to other documents.
                let Some(cell) = row.split('|').nth(1) else { continue };
                for (_, link) in links(cell) {
                    let name = match link.as_str() {
                        "adr" => "docs/adr/README.md".to_owned(),
                        link => resolved("docs", link)
                            .ok_or_else(|| format!("docs/README.md: {link}"))?,
                    };
                    if !name.ends_with(".md") || is_known(&parts, &name) {
                        continue;
                    }
                    let below = below(root, &name)?;
                    part.documents.push((name, below));
                }
            }
            parts.push(part);
        }
        Ok(Self { parts })
    }

    /// Returns the names of all documents, from the root of the repository.
    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        let documents = self.parts.iter().flat_map(|part| &part.documents);
        let names = documents.flat_map(|(name, below)| std::iter::once(name).chain(below));
        std::iter::once("docs/README.md".to_owned()).chain(names.cloned().collect::<Vec<_>>())
    }

    /// Returns true for a document of the last part, which commands write.
    pub(super) fn is_appendix(&self, name: &str) -> bool {
        let last = self.parts.last().map(|part| &part.documents);
        let mut documents = last.into_iter().flatten();
        documents.any(|(known, below)| known == name || below.iter().any(|one| one == name))
    }

    /// Returns the table of contents for mdBook.
    pub(super) fn summary(&self, documents: &BTreeMap<String, String>) -> String {
        let title_of =
            |name: &str| documents.get(name).map_or_else(|| name.to_owned(), |text| title(text));
        let mut text = "# Summary\n\n[Terrane](index.md)\n[Documents](docs/index.md)\n".to_owned();
        for part in &self.parts {
            let _ = write!(text, "\n# {}\n\n", part.title);
            for (name, below) in &part.documents {
                let _ = writeln!(text, "- [{}]({})", title_of(name), page_of(name));
                for name in below {
                    let _ = writeln!(text, "  - [{}]({})", title_of(name), page_of(name));
                }
            }
        }
        text + "\n[Security](SECURITY.md)\n"
    }
}

/// Returns the documents in the directory of an index, in the order in which it names them, then the others.
fn below(root: &Path, index: &str) -> Result<Vec<String>, String> {
    let Some(directory) = index.strip_suffix(INDEX) else { return Ok(Vec::new()) };
    let text = read(&root.join(index))?;
    let failed = |error: std::io::Error| format!("{directory}: {error}");
    let mut present = BTreeSet::new();
    for entry in fs::read_dir(root.join(directory)).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") {
            present.insert(format!("{directory}/{name}"));
        }
    }
    present.remove(index);
    let mut names = Vec::new();
    for (_, link) in links(&text) {
        let path = link.split('#').next().unwrap_or_default();
        names.extend(resolved(directory, path).filter(|name| present.remove(name)));
    }
    names.extend(present);
    Ok(names)
}

fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}
