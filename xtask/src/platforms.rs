//! Type checks of the engine for the platforms that it supports.
//!
//! Tests run on the platform of the machine. For the others, the compiler checks the engine and its
//! dependencies, which needs neither a linker nor the libraries of the platform. A release checks the
//! command too.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::report::{Made, Stop};
use crate::step::{StepResult, cargo, step, target_dir};

/// The supported platforms, as docs/limits.md lists them, except Linux on x86-64, where the tests run.
const TARGETS: &[&str] =
    &["aarch64-apple-darwin", "x86_64-pc-windows-msvc", "aarch64-unknown-linux-gnu"];

/// How many of them CI checks: one with each operating system, of which one has the other processor.
const IN_CI: usize = 2;

/// How long the standard library of a platform may take to arrive.
const INSTALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Checks the engine for the platforms that CI checks. See [`check_all`].
pub(crate) fn check() -> StepResult {
    check_those(&TARGETS[..IN_CI])
}

/// Checks the engine for every platform whose standard library is installed or can be. Without a
/// network, the others are skipped, and the output says so.
pub(crate) fn check_all() -> StepResult {
    check_those(TARGETS)
}

fn check_those(targets: &[&str]) -> StepResult {
    let mut can_install = true;
    for target in targets {
        let is_there = is_installed(target) || can_install && install(target);
        if !is_there {
            // Installing the next one would take as long to fail.
            can_install = false;
            println!("==> platform {target} SKIPPED: run 'rustup target add {target}'");
            continue;
        }
        let mut command = cargo(["check", "--package", "terrane", "--target", target]);
        // In a shared target directory, these flags and targets would make the other steps rebuild.
        command
            .env("RUSTFLAGS", "--deny warnings")
            .env("CARGO_TARGET_DIR", target_dir().join("platforms"));
        step(&format!("platform {target}"), &mut command)?;
    }
    Ok(())
}

/// Checks the command without the features that compile C, for which a cross compiler would be needed.
pub(crate) fn check_command(target: &str) -> Made {
    if !is_installed(target) && !install(target) {
        return Err(Stop::Skipped(format!("run 'rustup target add {target}'")));
    }
    let mut command = cargo(["check", "--locked", "--package", "terrane-cli", "--target", target]);
    command.env("CARGO_TARGET_DIR", target_dir().join("platforms"));
    step(&format!("command for {target}"), &mut command)?;
    Ok("the command type-checks; the workflow builds and uses it".into())
}

fn is_installed(target: &str) -> bool {
    let list = Command::new("rustup").args(["target", "list", "--installed"]).output();
    list.is_ok_and(|list| String::from_utf8_lossy(&list.stdout).lines().any(|line| line == target))
}

fn install(target: &str) -> bool {
    let mut command = Command::new("rustup");
    command.args(["target", "add", target]).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    let deadline = Instant::now() + INSTALL_TIMEOUT;
    while Instant::now() < deadline {
        match child.try_wait() {
            Ok(None) => thread::sleep(Duration::from_millis(100)),
            ended => {
                return ended.is_ok_and(|status| status.is_some_and(|status| status.success()));
            }
        }
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}
