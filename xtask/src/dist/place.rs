//! The version, the platform and the directories of a release.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{host, root, target_dir};

/// The platforms with archives. The command's tests run on Linux; Windows has the crates and the wheel's
/// source only, because nobody has run the command there.
pub(crate) const TARGETS: [&str; 4] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
];

/// Where a release is made, and for what.
pub(super) struct Place {
    pub version: String,
    /// The platform of this machine, as Rust names it.
    pub target: String,
    /// The time that all files have: seconds since 1970.
    pub epoch: String,
    /// Whether the files are to be published, not tried only.
    pub is_strict: bool,
    dir: PathBuf,
}

impl Place {
    pub(super) fn of_this_machine(is_strict: bool) -> Result<Self, String> {
        let path = root().join("Cargo.toml");
        let manifest =
            fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let version = version_of(&manifest).ok_or("Cargo.toml has no workspace version")?;
        let target = host()?;
        let dir = target_dir().join("dist");
        let place = Self { version, target, epoch: epoch()?, is_strict, dir };
        make_dir(&place.files())?;
        Ok(place)
    }

    /// A place below `dir`, at the seventh second.
    #[cfg(test)]
    pub(super) fn in_directory(dir: &Path) -> Self {
        let (version, target, epoch) = ("1.0.0".into(), "TARGET".into(), "7".into());
        let place = Self { version, target, epoch, is_strict: false, dir: dir.to_owned() };
        make_dir(&place.files()).unwrap();
        place
    }

    /// Returns the directory of the finished files.
    pub(super) fn files(&self) -> PathBuf {
        self.dir.join("files")
    }

    /// Removes the finished files of earlier runs.
    pub(super) fn clear_files(&self) -> Result<(), String> {
        empty(&self.files())
    }

    /// Returns the directory of the compiler's output.
    pub(super) fn build(&self) -> PathBuf {
        self.dir.join("build")
    }

    /// Returns an empty directory for the contents of a file, or for its use.
    pub(super) fn fresh(&self, name: &str) -> Result<PathBuf, String> {
        let dir = self.dir.join("work").join(name);
        empty(&dir)?;
        Ok(dir)
    }

    /// Returns a directory that later runs reuse, such as that of a tool.
    pub(super) fn kept(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// Returns the version in `[workspace.package]`.
pub(crate) fn version_of(manifest: &str) -> Option<String> {
    let section = manifest.split_once("[workspace.package]")?.1;
    let line = section.lines().find(|line| line.starts_with("version = "))?;
    line.split('"').nth(1).map(str::to_owned)
}

/// Returns `SOURCE_DATE_EPOCH`, or the time of the commit.
fn epoch() -> Result<String, String> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(epoch);
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(root());
    let output = git.output().map_err(|error| format!("git: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if text.is_empty() { Err("no commit; set SOURCE_DATE_EPOCH".into()) } else { Ok(text) }
}

/// Makes an empty directory in place of one that may exist.
fn empty(dir: &Path) -> Result<(), String> {
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))?;
    }
    make_dir(dir)
}

pub(super) fn make_dir(dir: &Path) -> Result<(), String> {
    fs::create_dir_all(dir).map_err(|error| format!("{}: {error}", dir.display()))
}

/// Copies a file of the repository or of the build, and creates the directory of the copy.
pub(super) fn copy(from: &Path, to: &Path) -> Result<(), String> {
    make_dir(to.parent().unwrap_or(to))?;
    fs::copy(from, to).map_err(|error| format!("{}: {error}", from.display()))?;
    Ok(())
}

/// Returns the paths in a directory, sorted.
pub(super) fn list(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let fail = |error: std::io::Error| format!("{}: {error}", dir.display());
    let entries = fs::read_dir(dir).map_err(fail)?;
    let mut paths = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(fail)?;
    paths.sort();
    Ok(paths)
}

pub(super) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

pub(super) fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), String> {
    make_dir(path.parent().unwrap_or(path))?;
    fs::write(path, contents).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the sizes of files and their names, for the table.
pub(super) fn sizes(paths: &[PathBuf]) -> Result<String, String> {
    let mut texts = Vec::new();
    for path in paths {
        let bytes =
            fs::metadata(path).map_err(|error| format!("{}: {error}", path.display()))?.len();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        texts.push(format!("{name}, {}.{} MB", bytes / 1_000_000, bytes / 100_000 % 10));
    }
    Ok(texts.join("; "))
}
