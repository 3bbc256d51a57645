//! The age of measured figures: each page names the commit at which its figures were measured, and a
//! release needs figures that are not older than the code that they are about.

use std::path::Path;
use std::process::Command;

use crate::step::root;

/// The code on whose speed a figure depends, unless the page is listed in [`OTHER_CODE`].
const ENGINE: &[&str] = &["crates/terrane", "crates/terrane-memtable", "crates/terrane-policy"];

/// Pages about other code.
const OTHER_CODE: [(&str, &[&str]); 4] = [
    (
        "docs/simulator.md",
        &[
            "crates/terrane",
            "crates/terrane-memtable",
            "crates/terrane-policy",
            "crates/terrane-sim",
        ],
    ),
    ("docs/recorded.md", &["crates/terrane-policy"]),
    ("docs/stability-map.md", &["crates/terrane-policy", "crates/terrane-sim"]),
    ("docs/papers/stability-simulated.md", &["crates/terrane-policy", "crates/terrane-sim"]),
];

/// Folders with pages; those of `docs/results` are data.
const FOLDERS: [&str; 4] = [".", "docs", "docs/guide", "docs/papers"];

/// Returns a problem for each page whose figures are older than their code.
pub(crate) fn problems() -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    for folder in FOLDERS {
        let entries = std::fs::read_dir(root().join(folder));
        let entries = entries.map_err(|error| format!("{folder}: {error}"))?.flatten();
        let mut pages: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| Path::new(name).extension().is_some_and(|it| it == "md"))
            .filter(|name| name != "CHANGELOG.md")
            .map(|name| if folder == "." { name } else { format!("{folder}/{name}") })
            .collect();
        pages.sort();
        for page in pages {
            let text = std::fs::read_to_string(root().join(&page));
            let text = text.map_err(|error| format!("{page}: {error}"))?;
            problems.extend(
                undated(&text).map(|line| format!("{page}: '{line}' does not say at which commit")),
            );
            for commit in commits(&text) {
                problems.extend(age_problem(&page, commit));
            }
        }
    }
    Ok(problems)
}

/// Returns the commits that a page names, each once.
fn commits(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = text
        .split("at commit ")
        .skip(1)
        .map(|rest| rest.split(|letter: char| !letter.is_ascii_hexdigit()).next().unwrap_or(""))
        .filter(|commit| commit.len() >= 7)
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// Returns the lines that introduce measurements without a commit.
fn undated(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| line.starts_with("Measured on") && commits(line).is_empty())
}

fn age_problem(page: &str, commit: &str) -> Option<String> {
    let other = OTHER_CODE.iter().find(|(name, _)| *name == page);
    let code = other.map_or(ENGINE, |(_, code)| code);
    let mut command = Command::new("git");
    command.current_dir(root()).args(["rev-list", "--count", &format!("{commit}..HEAD"), "--"]);
    // Only code that is compiled into a program: tests and manifests change no figure.
    command.args(code.iter().map(|path| format!("{path}/src")));
    let output = command.output().ok().filter(|output| output.status.success());
    let Some(output) = output else {
        return Some(format!("{page}: git does not know the commit {commit} of its figures"));
    };
    match String::from_utf8_lossy(&output.stdout).trim() {
        "0" => None,
        count => Some(format!(
            "{page}: its figures of {commit} are {count} commits older than {}; measure them again",
            code.join(", ")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_found_in_text() {
        let text = "Measured on 2026-11-27 at commit 3010ea51, on\nAMD\n\nat commit 3010ea51 and (at commit \
                    0c670f7c88f9). at commit time.";
        assert_eq!(commits(text), ["0c670f7c88f9", "3010ea51"]);
        assert_eq!(undated(text).count(), 0);
        assert_eq!(
            undated("Measured on Friday, on\nMeasured at").next(),
            Some("Measured on Friday, on")
        );
    }

    #[test]
    fn pages_about_other_code_exist() {
        for (page, code) in OTHER_CODE {
            assert!(root().join(page).is_file(), "{page}");
            assert!(code.iter().all(|path| root().join(path).is_dir()), "{page}");
        }
    }

    #[test]
    fn figures_of_a_commit_that_does_not_exist_are_a_problem() {
        assert!(age_problem("README.md", "0000000000").is_some());
    }
}
