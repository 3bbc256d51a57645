//! The documents as a site: `cargo xtask site`.
//!
//! The documents are written for the code host, where links between them, and to sources, are relative. A copy
//! becomes the input of mdBook: links that leave the documents lead to the repository instead, appendices say that
//! a command has written them, and the explorer is beside them. `docs/README.md` lists all documents, and is the
//! table of contents.
//!
//! | module | one line |
//! |---|---|
//! | [`markdown`] | links and anchors of a document |
//! | [`sources`] | links of the documents as they are in the repository |
//! | [`contents`] | the documents by part, from `docs/README.md` |
//! | [`built`] | links of the built pages |
//! | [`files`] | reads, names and copies files |

mod built;
mod contents;
mod files;
mod markdown;
mod sources;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use self::contents::Contents;
use self::files::{copy_all, page_of, read};
use crate::step::{StepResult, root, step, target_dir};

/// The version of mdBook whose pages were looked at.
const MDBOOK: &str = "0.5.4";

/// Documents outside `docs` that are part of the site.
const OUTSIDE: [&str; 4] = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];

const BOOK: &str = r#"[book]
title = "Terrane"
language = "en"
src = "pages"

[build]
build-dir = "site"
create-missing = false

[output.html]
git-repository-url = "REPOSITORY"
no-section-label = true

[output.html.playground]
runnable = false

[output.html.fold]
enable = true
level = 0
"#;

/// What an appendix says about itself.
const APPENDIX: &str =
    "> **Appendix.** Commands and tests write this page from measurements or from the source.\n\n";

/// Where the explorer is, which the site contains.
const EXPLORER: &str = "**[Open the explorer](explorer/index.html).**\n\n";

/// Where the site is built.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SiteArguments {
    out: Option<PathBuf>,
}

impl SiteArguments {
    /// Parses `[--out DIR]`.
    pub(crate) fn parse(words: &[&str]) -> Option<Self> {
        match *words {
            [] => Some(Self { out: None }),
            ["--out", dir] => Some(Self { out: Some(PathBuf::from(dir)) }),
            _ => None,
        }
    }
}

/// Builds the site, and checks every link of the documents and of its pages.
pub(crate) fn run(arguments: &SiteArguments) -> StepResult {
    let count = sources::check(&root())?;
    println!("    {count} links of the documents lead somewhere");
    let mdbook = mdbook()?;
    let work = target_dir().join("book");
    let failed = |error: std::io::Error| format!("{}: {error}", work.display());
    if work.exists() {
        fs::remove_dir_all(&work).map_err(failed)?;
    }
    let pages = work.join("pages");
    fs::create_dir_all(&pages).map_err(failed)?;
    let repository = repository()?;
    fs::write(work.join("book.toml"), BOOK.replace("REPOSITORY", &repository)).map_err(failed)?;
    copy_documents(&pages, &repository)?;
    step("site", Command::new(mdbook).arg("build").arg(&work))?;
    let site = work.join("site");
    let links = built::check(&site)?;
    println!("    {} links and anchors of {} pages lead somewhere", links.links, links.pages);
    if let Some(out) = &arguments.out {
        fs::create_dir_all(out).map_err(|error| format!("{}: {error}", out.display()))?;
        copy_all(&site, out)?;
    }
    println!("    {}", arguments.out.as_ref().unwrap_or(&site).join("index.html").display());
    Ok(())
}

/// Returns mdBook, which is installed under the target directory if the machine has none.
fn mdbook() -> Result<PathBuf, String> {
    let is_right = |program: &Path| {
        let output = Command::new(program).arg("--version").output();
        output.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).trim().ends_with(MDBOOK))
    };
    let found = PathBuf::from("mdbook");
    if is_right(&found) {
        return Ok(found);
    }
    let place = target_dir().join("tools/mdbook");
    let own = place.join("bin").join(format!("mdbook{}", std::env::consts::EXE_SUFFIX));
    if !is_right(&own) {
        let mut install = Command::new("cargo");
        install.args([
            "install",
            "mdbook",
            "--version",
            MDBOOK,
            "--locked",
            "--no-default-features",
        ]);
        install.args(["--features", "search", "--root"]).arg(&place);
        step("mdbook", &mut install)?;
    }
    Ok(own)
}

/// Returns the address of the repository.
fn repository() -> Result<String, String> {
    let manifest = read(&root().join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("repository = \""));
    let address = line.and_then(|rest| rest.split('"').next());
    address.map(str::to_owned).ok_or_else(|| "Cargo.toml names no repository".to_owned())
}

/// Writes the pages of the book, its table of contents and the explorer.
fn copy_documents(pages: &Path, repository: &str) -> StepResult {
    let contents = Contents::read(&root())?;
    let documents = documents(&contents)?;
    let write = |name: &str, bytes: &[u8]| {
        let path = pages.join(name);
        let written =
            path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, bytes));
        written.map_err(|error| format!("{}: {error}", path.display()))
    };
    for (name, text) in &documents {
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        let text = markdown::with_links(text, |link| {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                return None;
            }
            let target = markdown::resolved(directory, path)?;
            let anchor = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
            if documents.contains_key(&target) {
                return Some(format!("{}{anchor}", page_of(path)));
            }
            if documents.contains_key(&format!("{target}/README.md")) {
                return Some(format!("{}/index.md{anchor}", path.trim_end_matches('/')));
            }
            if is_picture(&target) {
                return None;
            }
            Some(format!("{repository}/blob/main/{target}{anchor}"))
        });
        let heading = match name.as_str() {
            "docs/explorer.md" => EXPLORER,
            name if contents.is_appendix(name) => APPENDIX,
            _ => "",
        };
        let (title, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
        write(&page_of(name), format!("{title}\n\n{heading}{rest}").as_bytes())?;
    }
    for name in sources::tracked(&root())?.iter().filter(|name| is_picture(name)) {
        let picture = fs::read(root().join(name)).map_err(|error| format!("{name}: {error}"))?;
        write(name, &picture)?;
    }
    write("SUMMARY.md", contents.summary(&documents).as_bytes())?;
    let explorer = root().join("crates/terrane-cli/page/explorer.html");
    let page = fs::read(&explorer).map_err(|error| format!("{}: {error}", explorer.display()))?;
    write("docs/explorer/index.html", &page)
}

/// Returns true for a picture of the documents.
fn is_picture(name: &str) -> bool {
    name.starts_with("docs/") && [".png", ".svg"].iter().any(|end| name.ends_with(end))
}

/// Returns the documents of the site by their names in the repository.
fn documents(contents: &Contents) -> Result<BTreeMap<String, String>, String> {
    let names = OUTSIDE.iter().map(|name| (*name).to_owned()).chain(contents.names());
    names.map(|name| Ok((name.clone(), read(&root().join(&name))?))).collect()
}

#[cfg(test)]
mod tests;
