//! The page of the explorer: a WebAssembly module and scripts, in one file that the command contains.
//!
//! The page is committed, so that a build of the command needs neither Node nor another target. It is always
//! built by the oldest supported toolchain and without the paths of the machine, so that machines with Linux build
//! the same bytes, and a check can compare them.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::ci::{MINIMUM_RUST, has_minimum_rust};
use crate::step::{StepResult, root, step, target_dir, toolchain_cargo};

/// What to do with the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PageMode {
    /// Build it, and put it where the command is built.
    Write,
    /// Build it, and fail if the committed one differs.
    Check,
}

const TARGET: &str = "wasm32-unknown-unknown";

/// The most bytes of the page.
const BYTES_MAX: u64 = 1 << 20;

/// Builds the page.
pub(crate) fn run(mode: PageMode) -> StepResult {
    for (tool, what) in [("npm", "Node 20.19 or newer, with npm"), ("rustup", "rustup")] {
        crate::tool::require(tool, what).map_err(|_| format!("the page needs {what}"))?;
    }
    let module = module()?;
    let npm = |arguments: &[&str]| {
        let mut command = Command::new("npm");
        command.args(arguments).current_dir(root().join("explorer"));
        command
    };
    step("packages of the page", &mut npm(&["ci", "--no-audit", "--no-fund", "--loglevel=error"]))?;
    step("page", npm(&["run", "--silent", "build"]).env("EXPLORER_MODULE", &module))?;
    let failed = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let built = root().join("explorer/dist/index.html");
    let page = fs::read(&built).map_err(|error| failed("the built page", error))?;
    if page.len() as u64 > BYTES_MAX {
        return Err(format!("the page has {} bytes, and may have {BYTES_MAX}", page.len()));
    }
    let committed = root().join("crates/terrane-cli/page/explorer.html");
    match mode {
        PageMode::Write => fs::write(&committed, page).map_err(|error| failed("the page", error)),
        PageMode::Check if fs::read(&committed).is_ok_and(|before| before == page) => Ok(()),
        PageMode::Check => Err(format!(
            "{} is not what its sources give; run 'cargo xtask page'",
            committed.display()
        )),
    }
}

/// Builds the WebAssembly module, and returns its path.
fn module() -> Result<PathBuf, String> {
    if !has_minimum_rust() {
        return Err(format!("the page needs Rust {MINIMUM_RUST}, which cannot be installed"));
    }
    let mut add = Command::new("rustup");
    add.args(["target", "add", TARGET, "--toolchain", MINIMUM_RUST]);
    step("the standard library of the module", &mut add)?;
    let directory = target_dir().join("page");
    let mut build = toolchain_cargo(MINIMUM_RUST, ".", ["rustc", "--quiet", "--locked"]);
    build
        .args(["--package", "terrane-explorer", "--lib", "--crate-type", "cdylib"])
        .args(["--profile", "page", "--target", TARGET])
        .env("CARGO_TARGET_DIR", &directory)
        .env("CARGO_ENCODED_RUSTFLAGS", flags().join("\x1f"));
    step("module", &mut build)?;
    Ok(directory.join(TARGET).join("page/terrane_explorer.wasm"))
}

/// Returns flags that keep the paths of the machine out of the module.
fn flags() -> Vec<String> {
    let home = |name: &str, default: &str| {
        let fallback = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(default));
        std::env::var_os(name).map(PathBuf::from).or_else(fallback)
    };
    let remap = |from: PathBuf, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let mut flags = vec![remap(root(), "/terrane")];
    flags.extend(home("CARGO_HOME", ".cargo").map(|path| remap(path, "/cargo")));
    flags.extend(home("RUSTUP_HOME", ".rustup").map(|path| remap(path, "/rustup")));
    flags
}
