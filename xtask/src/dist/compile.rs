//! Optimised builds that do not depend on where the repository and cargo's files are.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::place::Place;
use crate::step::{cargo, root};
use crate::tool::show;

/// The features of the released command. They need a C compiler, which whoever downloads it may not have.
pub(super) const FEATURES: &str = "object-store,tls,zstd";

/// Builds the command and returns its path.
pub(super) fn command(place: &Place) -> Result<PathBuf, String> {
    let mut command = cargo(["build", "--release", "--locked", "--target", &place.target]);
    command.args(["--package", "terrane-cli", "--features", FEATURES]);
    reproducible(&mut command, place, &root());
    show(&mut command)?;
    Ok(output_dir(place).join("terrane"))
}

/// Builds a shared and a static library. `link_argument` sets the name that programs load.
pub(super) fn library(place: &Place, package: &str, link_argument: &str) -> Result<(), String> {
    let mut command = cargo(["rustc", "--release", "--locked", "--target", &place.target]);
    command.args(["--package", package, "--lib", "--", "-C"]);
    command.arg(format!("link-arg={link_argument}"));
    reproducible(&mut command, place, &root());
    show(&mut command)
}

/// Returns the directory of the optimised programs and libraries.
pub(super) fn output_dir(place: &Place) -> PathBuf {
    place.build().join(&place.target).join("release")
}

/// Makes a build write equal files without symbols wherever `sources` and cargo's files are. The paths in
/// messages of panics then begin with `/terrane` or `/cargo`.
pub(super) fn reproducible(command: &mut Command, place: &Place, sources: &Path) {
    let cargo_home = cargo_home();
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    // A variable of the profile would not reach a package whose profile the manifest overrides.
    let strip = "-Cstrip=symbols".to_owned();
    let flags = [remap(sources, "/terrane"), remap(&cargo_home, "/cargo"), strip];
    let c_flags = format!("-ffile-prefix-map={}=/cargo", cargo_home.display());
    command
        .env("CARGO_TARGET_DIR", place.build())
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .env("CFLAGS", c_flags)
        .env("SOURCE_DATE_EPOCH", &place.epoch);
}

/// Returns the directory of cargo's files, such as the sources of dependencies.
pub(super) fn cargo_home() -> PathBuf {
    let default = || std::env::home_dir().unwrap_or_default().join(".cargo");
    std::env::var_os("CARGO_HOME").map_or_else(default, PathBuf::from)
}
