//! The archive of the command, with manual pages, completions and licences.
//!
//! Its layout is that of `/usr`, so that `tar --strip-components 1 -C ~/.local` installs all of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::{self, Place, copy, list, sizes, write};
use super::{archive, compile, glibc, notices, session};
use crate::report::{Made, Stop};
use crate::step::root;
use crate::tool::{expect, output};

/// The shells with completions, and where they look for them below a prefix.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/terrane"),
    ("zsh", "share/zsh/site-functions/_terrane"),
    ("fish", "share/fish/vendor_completions.d/terrane.fish"),
];

/// The directory of the manual pages below a prefix.
pub(super) const PAGES: &str = "share/man/man1";

/// The directory of documents and licences below a prefix.
pub(super) const DOCUMENTS: &str = "share/doc/terrane";

/// Returns the name of the archive's directory; the archive has `.tar.gz` after it. `cargo binstall`
/// composes the same name from `crates/terrane-cli/Cargo.toml`.
pub(super) fn name(version: &str, target: &str) -> String {
    format!("terrane-{version}-{target}")
}

/// Unpacks the archive into a fresh directory, and returns its top directory.
pub(super) fn unpacked(place: &Place, purpose: &str) -> Result<PathBuf, String> {
    let archive = place.files().join(name(&place.version, &place.target) + ".tar.gz");
    archive::unpack(&archive, &place.fresh(purpose)?)
}

pub(super) fn make(place: &Place) -> Made {
    let built = compile::command(place)?;
    let dir = place.fresh("command")?.join(name(&place.version, &place.target));
    let program = dir.join("bin/terrane");
    copy(&built, &program)?;
    output(Command::new(&program).args(["man", "--out"]).arg(dir.join(PAGES)))?;
    for (shell, path) in COMPLETIONS {
        let completions = output(Command::new(&program).args(["completions", shell]))?;
        write(&dir.join(path), completions)?;
    }
    for document in ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        copy(&root().join(document), &dir.join(DOCUMENTS).join(document))?;
    }
    let crates = notices::dependencies(place)?;
    write(&dir.join(DOCUMENTS).join("THIRD-PARTY"), notices::text(&crates)?)?;
    let packed = archive::pack(place, &dir)?;
    Ok(sizes(&[packed])? + &needs(place, &program)?)
}

/// Returns the C library that the command needs. A released command must run with the oldest one.
fn needs(place: &Place, program: &Path) -> Result<String, Stop> {
    let Some(minor) = glibc::needed(program)? else { return Ok(String::new()) };
    let oldest = glibc::OLDEST;
    if place.is_strict && minor > oldest {
        return Err(format!(
            "the command needs glibc 2.{minor}; build it on a system with 2.{oldest}"
        )
        .into());
    }
    Ok(format!("; needs glibc 2.{minor} (released files: at most 2.{oldest})"))
}

/// Runs the unpacked command without an environment.
pub(super) fn try_out(place: &Place) -> Made {
    let prefix = unpacked(place, "command-used")?;
    let session = session::run(&prefix.join("bin/terrane"), &place.version, &prefix)?;
    let pages = pages(&prefix.join(PAGES))?;
    for (shell, path) in COMPLETIONS {
        expect(&place::read(&prefix.join(path))?, "terrane")
            .map_err(|error| format!("{shell}: {error}"))?;
    }
    check_contents(&prefix.join("bin/terrane"))?;
    Ok(format!("{session}; {pages} manual pages, {} completions", COMPLETIONS.len()))
}

/// Counts the manual pages. That of the command and that of `serve` must be in the format of `man`.
fn pages(dir: &Path) -> Result<usize, String> {
    for name in ["terrane.1", "terrane-serve.1"] {
        expect(&place::read(&dir.join(name))?, ".TH terrane")?;
    }
    Ok(list(dir)?.len())
}

/// The command must contain neither the directories of the machine that built it, nor a table of symbols:
/// the section of an ELF file with this name.
fn check_contents(program: &Path) -> Result<(), String> {
    let bytes = fs::read(program).map_err(|error| format!("{}: {error}", program.display()))?;
    let dirs = [root(), compile::cargo_home()].map(|dir| dir.to_string_lossy().into_owned());
    for text in dirs.iter().map(String::as_str).chain(["\0.symtab\0"]) {
        if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            return Err(format!("{} contains {text:?}", program.display()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::place::TARGETS;
    use super::*;

    /// Returns the value of a key in a table of the manifest of `terrane-cli`.
    fn manifest_value(key: &str) -> String {
        let manifest = place::read(&root().join("crates/terrane-cli/Cargo.toml")).unwrap();
        let table = manifest.split_once("[package.metadata.binstall]\n").unwrap().1;
        let table = table.split("\n[").next().unwrap();
        let line = table.lines().find(|line| line.starts_with(&format!("{key} = "))).unwrap();
        line.split('"').nth(1).unwrap().to_owned()
    }

    #[test]
    fn binstall_looks_for_the_archive_and_the_command_that_are_made() {
        for target in TARGETS {
            let fill = |template: &str| {
                [
                    ("{ repo }", "https://github.com/terrane-db/terrane"),
                    ("{ version }", "1.2.3"),
                    ("{ target }", target),
                    ("{ bin }", "terrane"),
                    ("{ binary-ext }", ""),
                ]
                .iter()
                .fold(template.to_owned(), |text, (variable, value)| text.replace(variable, value))
            };
            let name = name("1.2.3", target);
            assert_eq!(
                fill(&manifest_value("pkg-url")),
                format!(
                    "https://github.com/terrane-db/terrane/releases/download/v1.2.3/{name}.tar.gz"
                )
            );
            assert_eq!(fill(&manifest_value("bin-dir")), format!("{name}/bin/terrane"));
        }
        assert_eq!(manifest_value("pkg-fmt"), "tgz");
    }

    #[test]
    fn the_workflow_builds_each_platform() {
        let workflow = place::read(&root().join(".github/workflows/release.yml")).unwrap();
        for target in TARGETS {
            assert!(workflow.contains(&format!("target: {target}\n")), "{target}");
        }
        let count = workflow.matches("target: ").count();
        assert_eq!(count, TARGETS.len());
    }
}
