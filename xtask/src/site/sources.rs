//! Links of the documents as they are in the repository.

use std::path::Path;
use std::process::Command;

use super::files::read;
use super::markdown::{anchors, links, resolved};

/// Returns the names of the tracked files.
pub(super) fn tracked(root: &Path) -> Result<Vec<String>, String> {
    let output = Command::new("git").arg("ls-files").current_dir(root).output();
    let output = output.map_err(|error| format!("git ls-files: {error}"))?;
    let names = String::from_utf8_lossy(&output.stdout);
    Ok(names.lines().map(str::to_owned).collect())
}

/// Checks that every relative link of every document leads to a tracked file, and to a heading if it names one.
/// Returns the number of links.
pub(super) fn check(root: &Path) -> Result<usize, String> {
    let files = tracked(root)?;
    let is_there =
        |path: &str| files.iter().any(|file| file == path || file.starts_with(&format!("{path}/")));
    let (mut checked, mut broken) = (0, Vec::new());
    for name in files.iter().filter(|name| name.ends_with(".md")) {
        let text = read(&root.join(name))?;
        let directory = name.rsplit_once('/').map_or("", |(directory, _)| directory);
        for (line, link) in links(&text) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            if path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let target =
                if path.is_empty() { Some(name.clone()) } else { resolved(directory, path) };
            let is_right = match target.filter(|target| target.is_empty() || is_there(target)) {
                None => false,
                Some(target) if anchor.is_empty() || !target.ends_with(".md") => true,
                Some(target) => anchors(&read(&root.join(target))?).contains(anchor),
            };
            if !is_right {
                broken.push(format!("{name}:{line}: {link}"));
            }
        }
    }
    if broken.is_empty() {
        Ok(checked)
    } else {
        Err(format!("broken links:\n{}", broken.join("\n")))
    }
}
