//! Packages the published crates as their users will get them.

use std::process::Command;

use crate::step::{StepResult, cargo, step};

/// The published crates, each after its dependencies. All other crates have `publish = false`.
const PUBLISHED: &[&str] = &[
    "terrane-policy",
    "terrane-memtable",
    "terrane",
    "terrane-workload",
    "terrane-sim",
    "terrane-lab",
    "terrane-server",
    "terrane-control",
    "terrane-backup",
    "terrane-cli",
];

/// Rehearses the publication of all crates: packages each crate with its metadata, and builds it
/// from its package with the packages of earlier crates as dependencies. Needs the registry, and
/// takes some minutes.
pub(crate) fn run() -> StepResult {
    step("package", &mut packages(&["publish", "--dry-run", "--allow-dirty"]))
}

/// Packages all crates without building them, which takes a second and finds missing files,
/// metadata and versions.
pub(crate) fn check() -> StepResult {
    step("package", &mut packages(&["package", "--no-verify", "--offline", "--allow-dirty"]))
}

/// Publishes all crates, each after its dependencies.
pub(crate) fn publish() -> StepResult {
    step("publish", &mut packages(&["publish"]))
}

fn packages(arguments: &[&str]) -> Command {
    let mut command = cargo(arguments.iter().copied());
    for name in PUBLISHED {
        command.args(["--package", name]);
    }
    command
}
