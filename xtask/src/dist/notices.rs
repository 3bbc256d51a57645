//! The licences of the crates in the command, which must accompany a binary.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::compile::{FEATURES, cargo_home};
use super::place::{Place, list};
use crate::step::cargo;
use crate::tool::output;

/// A crate from the registry.
pub(super) struct Dependency {
    pub name: String,
    version: String,
    /// The expression in its manifest, such as `MIT OR Apache-2.0`.
    license: String,
    /// Its sources.
    dir: PathBuf,
}

/// Returns the crates whose code is in the command on this platform.
pub(super) fn dependencies(place: &Place) -> Result<Vec<Dependency>, String> {
    let mut tree = cargo(["tree", "--locked", "--package", "terrane-cli", "--features", FEATURES]);
    tree.args(["--target", &place.target, "--edges", "normal,no-proc-macro", "--prefix", "none"]);
    tree.args(["--format", "{p}|{l}"]);
    // Cargo unpacks crates into one directory for each registry.
    let sources = list(&cargo_home().join("registry/src"))?;
    let lines = output(&mut tree)?;
    // A crate that was printed before ends with `(*)`; one of this repository has its path in brackets.
    let lines: BTreeSet<&str> = lines.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let mut dependencies = Vec::new();
    for line in lines.into_iter().filter(|line| !line.is_empty() && !line.contains(" (/")) {
        let (package, license) =
            line.split_once('|').ok_or_else(|| format!("cargo tree: {line}"))?;
        let (name, version) =
            package.split_once(" v").ok_or_else(|| format!("cargo tree: {line}"))?;
        let directory = format!("{name}-{version}");
        let dir = sources.iter().map(|root| root.join(&directory)).find(|dir| dir.is_dir());
        dependencies.push(Dependency {
            name: name.to_owned(),
            version: version.to_owned(),
            license: license.to_owned(),
            dir: dir.ok_or_else(|| format!("no sources of {directory}"))?,
        });
    }
    Ok(dependencies)
}

/// Returns the list of the crates with their licences, and then every text once, with the crates that
/// it covers.
pub(super) fn text(dependencies: &[Dependency]) -> Result<String, String> {
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut list = String::new();
    for dependency in dependencies {
        let name = format!("{} {}", dependency.name, dependency.version);
        list += &format!("{name}: {}\n", dependency.license);
        for text in license_texts(&dependency.dir)? {
            texts.entry(text).or_default().push(name.clone());
        }
    }
    let mut notices = format!(
        "The command `terrane` contains the Rust standard library (MIT OR Apache-2.0) and these crates:\n\n\
         {list}"
    );
    for (text, names) in texts {
        notices += &format!("\n{}\n{}\n\n{}\n", "=".repeat(80), names.join(", "), text.trim());
    }
    Ok(notices)
}

/// Returns the contents of the files in which a crate states its licence.
fn license_texts(dir: &Path) -> Result<Vec<String>, String> {
    let mut texts = Vec::new();
    for path in list(dir)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let is_license = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        if is_license && path.is_file() {
            let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            texts.push(String::from_utf8_lossy(&bytes).replace('\r', ""));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_appear_once_with_all_crates_that_they_cover() {
        let root = std::env::temp_dir().join(format!("terrane-notices-{}", std::process::id()));
        let dependency = |name: &str, own: &str| {
            let dir = root.join(name);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("LICENSE-APACHE"), "Apache\r\n").unwrap();
            fs::write(dir.join("license-mit.txt"), own).unwrap();
            fs::write(dir.join("lib.rs"), "code").unwrap();
            let (version, license) = ("1.0.0".to_owned(), "MIT OR Apache-2.0".to_owned());
            Dependency { name: name.to_owned(), version, license, dir }
        };
        let notices = text(&[dependency("a", "by A"), dependency("b", "by B")]).unwrap();
        assert!(notices.contains("\na 1.0.0: MIT OR Apache-2.0\nb 1.0.0: MIT"), "{notices}");
        assert!(notices.contains("\na 1.0.0, b 1.0.0\n\nApache\n"), "{notices}");
        assert!(notices.contains("\na 1.0.0\n\nby A\n"), "{notices}");
        assert!(notices.contains("\nb 1.0.0\n\nby B\n"), "{notices}");
        assert!(!notices.contains("code"), "{notices}");
        fs::remove_dir_all(root).unwrap();
    }
}
