//! Links of the built pages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::files::read;
use super::markdown::resolved;

/// What was checked.
#[derive(Debug, Default)]
pub(super) struct Checked {
    pub(super) pages: usize,
    pub(super) links: usize,
}

/// The identifiers and the links of a page.
struct Page {
    ids: BTreeSet<String>,
    links: Vec<String>,
}

/// Checks that every link of every page within a directory leads to a file, and to an identifier in it if it names
/// one.
pub(super) fn check(site: &Path) -> Result<Checked, String> {
    let mut files = BTreeSet::new();
    collect(site, site, &mut files)?;
    let is_page = |name: &&String| name.ends_with(".html") && !name.starts_with("docs/explorer/");
    let mut pages = BTreeMap::new();
    for name in files.iter().filter(is_page) {
        let text = read(&site.join(name))?;
        let page = Page {
            ids: values(&text, "id").collect(),
            links: values(&text, "href").chain(values(&text, "src")).collect(),
        };
        pages.insert(name.as_str(), page);
    }
    let (mut checked, mut broken) = (Checked::default(), Vec::new());
    for (name, page) in &pages {
        checked.pages += 1;
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        for link in &page.links {
            let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = path.split('?').next().unwrap_or_default();
            // The page of an error is served at any path.
            if path.contains(':') || path.starts_with("//") || *name == "404.html" {
                continue;
            }
            checked.links += 1;
            let target = match path {
                "" => Some((*name).to_owned()),
                path => resolved(directory, path).map(|target| {
                    match path.ends_with('/') || target.is_empty() {
                        true => format!("{target}/index.html").trim_start_matches('/').to_owned(),
                        false => target,
                    }
                }),
            };
            let target = target.filter(|target| files.contains(target));
            let has_anchor = |target: &str| {
                anchor.is_empty() || pages.get(target).is_none_or(|page| page.ids.contains(anchor))
            };
            if !target.is_some_and(|target| has_anchor(&target)) {
                broken.push(format!("{name}: {link}"));
            }
        }
    }
    if broken.is_empty() {
        Ok(checked)
    } else {
        Err(format!("broken links:\n{}", broken.join("\n")))
    }
}

/// Collects the files below a directory, relative to the site.
fn collect(site: &Path, directory: &Path, files: &mut BTreeSet<String>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path: PathBuf = entry.map_err(failed)?.path();
        if path.is_dir() {
            collect(site, &path, files)?;
        } else if let Ok(name) = path.strip_prefix(site) {
            files.insert(name.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// Returns the values of an attribute, with the escapes that occur in links resolved.
fn values(html: &str, attribute: &str) -> impl Iterator<Item = String> {
    let before = format!(" {attribute}=\"");
    let parts: Vec<String> = html
        .split(&before)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(|value| value.replace("&amp;", "&").replace("%20", " "))
        .collect();
    parts.into_iter()
}
