//! Compiles the commit into release builds, so that every result names the measured code, wherever the
//! program runs. Other builds have no commit: nobody measures them, and they would recompile after
//! every commit.

use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var("PROFILE").is_ok_and(|profile| profile == "release")
        && let Some(commit) = commit().or_else(commit_of_package)
    {
        println!("cargo::rustc-env=TERRANE_COMMIT={commit}");
    }
}

/// Returns the commit of the checkout, with `-dirty` if tracked files differ from it; `None` outside of
/// one, for example in a published package, even if that is inside another repository.
fn commit() -> Option<String> {
    git(&["ls-files", "--error-unmatch", "../../xtask/Cargo.toml"])?;
    let git_dir = git(&["rev-parse", "--absolute-git-dir"])?;
    // Written by every commit, checkout and reset.
    println!("cargo::rerun-if-changed={git_dir}/logs/HEAD");
    for name in ["Cargo.lock", "Cargo.toml", "crates"] {
        println!("cargo::rerun-if-changed=../../{name}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let is_clean = git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if is_clean { commit } else { commit + "-dirty" })
}

/// Returns the commit that a published package was made from, which `cargo package` stores in it.
fn commit_of_package() -> Option<String> {
    let info = fs::read_to_string(".cargo_vcs_info.json").ok()?;
    let (_, after) = info.split_once("\"sha1\"")?;
    let commit = after.split('"').nth(1)?.get(..12)?;
    let is_dirty = info.replace(' ', "").contains("\"dirty\":true");
    Some(if is_dirty { format!("{commit}-dirty") } else { commit.to_owned() })
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
